-- fio: files and folders
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/fio/).
local native = ...
local ffi = require('ffi')
local errno = require('errno')

pcall(ffi.cdef, 'struct fio_handle { int fh; };')
pcall(ffi.cdef, 'int close(int fd);')

-- Numbers of <fcntl.h>, <sys/stat.h> and <unistd.h> on Linux.
local FLAGS = {
    O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 64, O_EXCL = 128, O_NOCTTY = 256,
    O_TRUNC = 512, O_APPEND = 1024, O_NONBLOCK = 2048, O_NDELAY = 2048, O_ASYNC = 8192,
    O_LARGEFILE = 0, O_NOATIME = 262144, O_CLOEXEC = 524288, O_SYNC = 1052672, O_PATH = 2097152,
}
local PLATFORM_FLAGS = {
    x64 = {O_DIRECT = 16384, O_DIRECTORY = 65536, O_NOFOLLOW = 131072, O_TMPFILE = 4259840},
    arm64 = {O_DIRECT = 65536, O_DIRECTORY = 16384, O_NOFOLLOW = 32768, O_TMPFILE = 4210688},
}
for name, value in pairs(PLATFORM_FLAGS[jit.arch] or {}) do
    FLAGS[name] = value
end
local MODES = {
    S_IRWXU = 448, S_IRUSR = 256, S_IWUSR = 128, S_IXUSR = 64, S_IRWXG = 56, S_IRGRP = 32,
    S_IWGRP = 16, S_IXGRP = 8, S_IRWXO = 7, S_IROTH = 4, S_IWOTH = 2, S_IXOTH = 1,
}
local WHENCE = {SEEK_SET = 0, SEEK_CUR = 1, SEEK_END = 2, SEEK_DATA = 3, SEEK_HOLE = 4}
-- 0777.
local MODE_DEFAULT = 511
-- What one call reads at most: src/fio.rs, READ_BYTES_MAX.
local CHUNK = 64 * 1024 * 1024
-- The longest text: it is there twice while it is put together, and Lua has 2 GiB.
local TEXT_BYTES_MAX = 1024 * 1024 * 1024

local fio = {c = {flag = FLAGS, mode = MODES, seek = WHENCE}}

-- The error object of box, or what looks like one where there is no box.
local function system_error(number)
    errno(number)
    local text = 'fio: ' .. errno.strerror(number)
    local make = debug.getregistry()['ladon.module_error']
    if make ~= nil then
        return make('SystemError', text, number)
    end
    return setmetatable({type = 'SystemError', message = text, errno = number}, {
        __tostring = function()
            return text
        end,
    })
end

-- A function of paths that answers true, or false and the error.
local function simple(name, usage, count)
    local run = native[name]
    fio[name] = function(...)
        for at = 1, count do
            if type((select(at, ...))) ~= 'string' then
                error('Usage: fio.' .. usage, 2)
            end
        end
        local result, number = run(...)
        if result == nil then
            return false, system_error(number)
        end
        return true
    end
end

simple('rename', 'rename(oldpath, newpath)', 2)
simple('link', 'link(target, linkpath)', 2)
simple('symlink', 'symlink(target, linkpath)', 2)
simple('unlink', 'unlink(pathname)', 1)
simple('rmdir', 'rmdir(pathname)', 1)

-- Handles of files.

local methods = {}
local handle_type = ffi.typeof('struct fio_handle')

local function failed(number, result)
    return result, system_error(number)
end

local function is_buffer(value)
    return type(value) == 'cdata'
end

local function address(pointer)
    return tonumber(ffi.cast('uintptr_t', ffi.cast('const char *', pointer)))
end

-- Reads so many bytes, fewer at the end.
local function read_text(handle, count, offset)
    if count > TEXT_BYTES_MAX then
        error(('Failed to allocate %.0f bytes in ibuf'):format(tonumber(count)), 0)
    end
    local parts, total = {}, 0
    repeat
        local wanted = math.min(count - total, CHUNK)
        local text, number = native.read(handle.fh, wanted, offset and offset + total or -1)
        if text == nil then
            return failed(number, nil)
        end
        parts[#parts + 1] = text
        total = total + #text
    until #text < wanted or total >= count
    return table.concat(parts)
end

local function read_buffer(handle, buffer, count, offset)
    local result, number = native.read_into(handle.fh, address(buffer), count, offset or -1)
    if result == nil then
        return failed(number, nil)
    end
    return result
end

function methods.read(handle, buffer, size)
    if is_buffer(buffer) then
        return read_buffer(handle, buffer, size)
    end
    size = buffer
    if size == nil then
        local found, number = native.fstat(handle.fh)
        if found == nil then
            return failed(number, nil)
        end
        size = found.size
    end
    return read_text(handle, size)
end

function methods.pread(handle, buffer, size, offset)
    if is_buffer(buffer) then
        return read_buffer(handle, buffer, size, offset or 0)
    end
    return read_text(handle, buffer, size or 0)
end

local function written(result, number)
    if result == nil then
        return failed(number, false)
    end
    return true
end

function methods.write(handle, data, size)
    if is_buffer(data) then
        return written(native.write_from(handle.fh, address(data), size, -1))
    end
    return written(native.write(handle.fh, tostring(data), -1))
end

function methods.pwrite(handle, data, size, offset)
    if is_buffer(data) then
        return written(native.write_from(handle.fh, address(data), size, offset or 0))
    end
    return written(native.write(handle.fh, tostring(data), size or 0))
end

function methods.seek(handle, offset, whence)
    if whence == nil then
        whence = WHENCE.SEEK_SET
    elseif type(whence) == 'string' then
        if WHENCE[whence] == nil then
            error('fio.seek(): unknown whence: ' .. whence, 2)
        end
        whence = WHENCE[whence]
    end
    local place = native.seek(handle.fh, tonumber(offset), tonumber(whence))
    return place or -1
end

local function on_handle(name)
    local run = native[name]
    methods[name == 'ftruncate' and 'truncate' or name] = function(handle, argument)
        return written(run(handle.fh, argument or 0))
    end
end

on_handle('ftruncate')
on_handle('fsync')
on_handle('fdatasync')

local KINDS = {
    is_fifo = 0x1000, is_chr = 0x2000, is_dir = 0x4000, is_blk = 0x6000, is_reg = 0x8000,
    is_link = 0xa000, is_sock = 0xc000,
}
local stat_methods = {}
for name, kind in pairs(KINDS) do
    stat_methods[name] = function(found)
        return bit.band(found.mode, 0xf000) == kind
    end
end
local Stat = {__index = stat_methods}

local function shown_stat(found, number)
    if found == nil then
        return failed(number, nil)
    end
    return setmetatable(found, Stat)
end

function methods.stat(handle)
    return shown_stat(native.fstat(handle.fh))
end

function methods.close(handle)
    local result, number = native.close(handle.fh)
    handle.fh = -1
    if result == nil then
        return failed(number, false)
    end
    return true
end

ffi.metatype(handle_type, {
    __index = methods,
    -- A finalizer must not leave its fiber.
    __gc = function(handle)
        if handle.fh >= 0 then
            ffi.C.close(handle.fh)
            handle.fh = -1
        end
    end,
})
-- A number of names, of a table of names, or of a number.
local function number_of(value, names, what)
    if value == nil then
        return 0
    elseif type(value) == 'number' then
        return value
    elseif type(value) ~= 'table' then
        value = {value}
    end
    local sum = 0
    for _, name in pairs(value) do
        if type(name) == 'number' then
            sum = bit.bor(sum, name)
        elseif names[name] == nil then
            error(('fio.open(): unknown %s: %s'):format(what, tostring(name)), 3)
        else
            sum = bit.bor(sum, names[name])
        end
    end
    return sum
end

function fio.open(path, flags, mode)
    if type(path) ~= 'string' then
        error('Usage: fio.open(path[, flags[, mode]])', 2)
    end
    flags = number_of(flags, FLAGS, 'flag')
    mode = mode == nil and MODE_DEFAULT or number_of(mode, MODES, 'mode')
    local number, code = native.open(path, flags, mode)
    if number == nil then
        return failed(code, nil)
    end
    return handle_type(number)
end

-- Paths.

function fio.pathjoin(first, ...)
    local count = select('#', ...)
    if first == nil and count == 0 then
        return '.'
    end
    local parts = {first, ...}
    for at = 1, count + 1 do
        if parts[at] == nil then
            error(('fio.pathjoin(): undefined path part %d'):format(at), 2)
        end
        parts[at] = tostring(parts[at])
    end
    local joined
    for at = 1, count + 1 do
        local part = parts[at]
        if part ~= '' then
            joined = joined == nil and part or joined .. '/' .. part
        end
    end
    if joined == nil then
        return '.'
    end
    joined = joined:gsub('/+', '/')
    if #joined > 1 and joined:sub(-1) == '/' then
        joined = joined:sub(1, -2)
    end
    return joined
end

function fio.basename(path, suffix)
    if type(path) ~= 'string' then
        error('Usage: fio.basename(path[, suffix])', 2)
    end
    local name = path:match('[^/]*$')
    if type(suffix) == 'string' and #suffix > 0 and name:sub(-#suffix) == suffix then
        name = name:sub(1, -#suffix - 1)
    end
    return name
end

function fio.dirname(path)
    if type(path) ~= 'string' then
        error('Usage: fio.dirname(path)', 2)
    end
    while #path > 1 and path:sub(-1) == '/' do
        path = path:sub(1, -2)
    end
    local folder = path:match('^(.*)/[^/]*$')
    if folder == nil then
        return '.'
    end
    folder = folder:gsub('/+$', '')
    return folder == '' and '/' or folder
end

function fio.cwd()
    local folder, number = native.cwd()
    if folder == nil then
        return failed(number, nil)
    end
    return folder
end

function fio.abspath(path)
    if type(path) ~= 'string' then
        error('Usage: fio.abspath(path)', 2)
    end
    if path:sub(1, 1) ~= '/' then
        path = fio.cwd() .. '/' .. path
    end
    local parts = {}
    for part in path:gmatch('[^/]+') do
        if part == '..' then
            parts[#parts] = nil
        elseif part ~= '.' then
            parts[#parts + 1] = part
        end
    end
    return '/' .. table.concat(parts, '/')
end

-- Files.

function fio.stat(path)
    if type(path) ~= 'string' then
        error('Usage: fio.stat(pathname)', 2)
    end
    return shown_stat(native.stat(path, true))
end

function fio.lstat(path)
    if type(path) ~= 'string' then
        error('Usage: fio.lstat(pathname)', 2)
    end
    return shown_stat(native.stat(path, false))
end

function fio.readlink(path)
    if type(path) ~= 'string' then
        error('Usage: fio.readlink(pathname)', 2)
    end
    local target, number = native.readlink(path)
    if target == nil then
        return failed(number, nil)
    end
    return target
end

function fio.truncate(path, length)
    if type(path) ~= 'string' then
        error('Usage: fio.truncate(pathname[, newlen])', 2)
    end
    return written(native.truncate(path, length or 0))
end

function fio.mkdir(path, mode)
    if type(path) ~= 'string' then
        error('Usage fio.mkdir(pathname[, mode])', 2)
    end
    return written(native.mkdir(path, mode or MODE_DEFAULT))
end

function fio.chmod(path, mode)
    if type(path) ~= 'string' or tonumber(mode) == nil then
        error('Usage: fio.chmod(pathname, mode)', 2)
    end
    return written(native.chmod(path, tonumber(mode)))
end

-- The number of an owner that is a number or a name.
local function id_of(value, look)
    if tonumber(value) ~= nil then
        return tonumber(value)
    end
    local found = look(tostring(value))
    return found and found.id
end

function fio.chown(path, user, group)
    if type(path) ~= 'string' or user == nil or group == nil then
        error('Usage: fio.chown(pathname, owner, group)', 2)
    end
    local uid = id_of(user, require('pwd').getpw)
    local gid = id_of(group, require('pwd').getgr)
    if uid == nil or gid == nil then
        return failed(errno.EINVAL, false)
    end
    return written(native.chown(path, uid, gid))
end

function fio.utime(path, accessed, modified)
    if type(path) ~= 'string' or accessed ~= nil and type(accessed) ~= 'number'
        or modified ~= nil and type(modified) ~= 'number' then
        error('Usage: fio.utime(filepath[, atime[, mtime]])', 2)
    end
    accessed = accessed or require('clock').realtime()
    return written(native.utime(path, accessed, modified or accessed))
end

function fio.umask(mask)
    if mask ~= nil then
        return native.umask(mask)
    end
    -- The system tells the mask only where it is set.
    local before = native.umask(0)
    native.umask(before)
    return before
end

function fio.sync()
    native.sync()
    return true
end

function fio.chdir(path)
    if type(path) ~= 'string' then
        error('Usage: fio.chdir(path)', 2)
    end
    return native.chdir(path) ~= nil
end

function fio.tempdir()
    local folder, number = native.tempdir()
    if folder == nil then
        return failed(number, nil)
    end
    return folder
end

function fio.glob(pattern)
    if type(pattern) ~= 'string' then
        error('Usage: fio.glob(pattern)', 2)
    end
    local paths, number = native.glob(pattern)
    if paths == nil then
        return failed(number, nil)
    end
    return paths
end

function fio.listdir(path)
    if type(path) ~= 'string' then
        error('Usage: fio.listdir(path)', 2)
    end
    local names, number = native.listdir(path)
    if names == nil then
        return nil, ("can't listdir %s: %s"):format(path, tostring(system_error(number)))
    end
    return names
end

-- Trees.

function fio.mktree(path, mode)
    if type(path) ~= 'string' then
        error('Usage: fio.mktree(path[, mode])', 2)
    end
    local at = path:sub(1, 1) == '/' and '/' or ''
    for part in fio.abspath(path):gmatch('[^/]+') do
        at = (at == '' or at == '/') and '/' .. part or at .. '/' .. part
        local found = fio.stat(at)
        if found == nil or not found:is_dir() then
            local is_made, err = fio.mkdir(at, mode)
            if not is_made and not (err.errno == errno.EEXIST and found == nil) then
                return false, ('Error creating directory %s: %s'):format(
                    at, errno.strerror(err.errno))
            end
        end
    end
    return true
end

local function remove_tree(path)
    local names, err = fio.listdir(path)
    if names == nil then
        return nil, err
    end
    for _, name in ipairs(names) do
        local full = fio.pathjoin(path, name)
        local found = fio.lstat(full)
        if found ~= nil and found:is_dir() then
            local is_done, why = remove_tree(full)
            if not is_done then
                return nil, why
            end
        else
            local is_done, why = fio.unlink(full)
            if not is_done then
                return nil, ('failed to remove %s: %s'):format(full, tostring(why))
            end
        end
    end
    local is_done, why = fio.rmdir(path)
    if not is_done then
        return nil, ('failed to remove %s: %s'):format(path, tostring(why))
    end
    return true
end

function fio.rmtree(path)
    if type(path) ~= 'string' then
        error('Usage: fio.rmtree(path)', 2)
    end
    return remove_tree(path)
end

function fio.copyfile(from, to)
    if type(from) ~= 'string' or type(to) ~= 'string' then
        error('Usage: fio.copyfile(from, to)', 2)
    end
    local found = fio.stat(to)
    if found ~= nil and found:is_dir() then
        to = fio.pathjoin(to, fio.basename(from))
    end
    local count, number = native.copyfile(from, to)
    if count == nil then
        return false, ('failed to copy %s to %s: %s'):format(
            from, to, tostring(system_error(number)))
    end
    return true
end

local function copy_tree(from, to)
    local names, err = fio.listdir(from)
    if names == nil then
        return false, err
    end
    local is_made, why = fio.mktree(to)
    if not is_made then
        return false, why
    end
    for _, name in ipairs(names) do
        local source, target = fio.pathjoin(from, name), fio.pathjoin(to, name)
        local found = fio.lstat(source)
        local is_done
        if found == nil then
            is_done, why = false, ('failed to copy %s: it is gone'):format(source)
        elseif found:is_dir() then
            is_done, why = copy_tree(source, target)
        elseif found:is_link() then
            is_done, why = fio.symlink(fio.readlink(source), target)
        else
            is_done, why = fio.copyfile(source, target)
        end
        if not is_done then
            return false, type(why) == 'string' and why
                or ("can't create symlink in place of existing file %s"):format(target)
        end
    end
    return true
end

function fio.copytree(from, to)
    if type(from) ~= 'string' or type(to) ~= 'string' then
        error('Usage: fio.copytree(from, to)', 2)
    end
    local found = fio.stat(from)
    if found == nil then
        return false, ('Directory %s does not exist'):format(from)
    end
    if not found:is_dir() then
        return false, errno.strerror(errno.ENOTDIR)
    end
    return copy_tree(from, to)
end

-- What a path is.

local path = {}
fio.path = path

function path.is_file(name)
    local found = fio.stat(name)
    return found ~= nil and found:is_reg()
end

function path.is_dir(name)
    local found = fio.stat(name)
    return found ~= nil and found:is_dir()
end

function path.is_link(name)
    local found = fio.lstat(name)
    return found ~= nil and found:is_link()
end

function path.exists(name)
    return fio.stat(name) ~= nil
end

function path.lexists(name)
    return fio.lstat(name) ~= nil
end

return fio
