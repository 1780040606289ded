-- How a program's code is loaded: with tail calls, and by `require` from the search root, the
-- folders of rocks above it, then package.path.
local with_tail_calls = ...
local io_open, getenv = io.open, os.getenv
local ffi = require('ffi')

pcall(ffi.cdef, 'char *getcwd(char *place, size_t size);')

local raw_load, raw_loadstring, raw_loadfile = load, loadstring, loadfile
local dump = string.dump

-- What one of the loaders answers, with tail calls.
local function loaded(chunk, why)
    if chunk == nil then
        return nil, why
    end
    local code = with_tail_calls(dump(chunk))
    if code == nil then
        return chunk
    end
    return setfenv(raw_loadstring(code), getfenv(chunk))
end

function load(...)
    return loaded(raw_load(...))
end

function loadstring(...)
    return loaded(raw_loadstring(...))
end

function loadfile(...)
    return loaded(raw_loadfile(...))
end

function dofile(...)
    local chunk, why = loadfile(...)
    if chunk == nil then
        error(why, 0)
    end
    return chunk()
end

local PATH_BYTES = 4096
local ROCKS = '/.rocks/share/tarantool'
local root

local function working_folder()
    local place = ffi.new('char[?]', PATH_BYTES)
    local found = ffi.C.getcwd(place, PATH_BYTES)
    return found ~= nil and ffi.string(found) or '.'
end

function package.searchroot()
    return root or working_folder()
end

-- Sets where the search begins; without a folder, where the process works from then on.
function package.setsearchroot(folder)
    if folder == nil then
        root = nil
    elseif type(folder) == 'string' then
        if folder:sub(1, 1) ~= '/' then
            folder = working_folder() .. '/' .. folder
        end
        root = #folder > 1 and folder:gsub('/+$', '') or folder
    else
        error('Search root must be a string', 2)
    end
end

local function folders_of_rocks()
    local found, folder = {}, package.searchroot()
    while folder ~= '' and folder ~= '/' do
        found[#found + 1] = folder .. ROCKS
        folder = folder:match('^(.*)/[^/]*$') or ''
    end
    found[#found + 1] = ROCKS
    return found
end

-- The file of a module in one of the folders; nil and where it was looked for.
local function find(name, folders)
    local tried, relative = {}, name:gsub('%.', '/')
    for _, folder in ipairs(folders) do
        for _, ending in ipairs({'.lua', '/init.lua'}) do
            local path = (folder == '/' and '' or folder) .. '/' .. relative .. ending
            local file = io_open(path, 'rb')
            if file ~= nil then
                file:close()
                return path
            end
            tried[#tried + 1] = ("\n\tno file '%s'"):format(path)
        end
    end
    return nil, table.concat(tried)
end

local function loader_of(folders)
    return function(name)
        if type(name) ~= 'string' or name == '' then
            return 'empty name of module'
        end
        local path, tried = find(name, folders())
        if path == nil then
            return tried
        end
        local chunk, why = loadfile(path)
        if chunk == nil then
            error(("error loading module '%s' from file '%s':\n\t%s"):format(name, path, why), 0)
        end
        return chunk, path
    end
end

local function folders_of_root()
    return {package.searchroot()}
end

-- The files of package.path.
package.loaders[2] = function(name)
    local path, tried = package.searchpath(name, package.path)
    if path == nil then
        return tried
    end
    local chunk, why = loadfile(path)
    if chunk == nil then
        error(("error loading module '%s' from file '%s':\n\t%s"):format(name, path, why), 0)
    end
    return chunk
end

table.insert(package.loaders, 2, loader_of(folders_of_root))
table.insert(package.loaders, 3, loader_of(folders_of_rocks))

-- The file that `require` would load.
function package.search(name)
    if type(name) ~= 'string' or name == '' then
        return 'empty name of module'
    end
    local path = find(name, folders_of_root()) or find(name, folders_of_rocks())
    -- Only the path: not where it was looked for.
    return path or (package.searchpath(name, package.path))
end

-- The rest of the way, as Tarantool has it.
local function standard_path()
    local parts, home = {}, getenv('HOME')
    local function add(folder)
        parts[#parts + 1] = folder .. '/?.lua'
        parts[#parts + 1] = folder .. '/?/init.lua'
    end
    if home ~= nil then
        add(home .. '/.luarocks/share/lua/5.1')
        add(home .. '/.luarocks/share/lua')
    end
    add('/usr/local/share/tarantool')
    add('/usr/share/tarantool')
    add('/usr/local/share/lua/5.1')
    add('/usr/share/lua/5.1')
    return table.concat(parts, ';') .. ';'
end

local asked = getenv('LUA_PATH')
if asked == nil then
    package.path = standard_path()
else
    package.path = asked:gsub(';;', function()
        return ';' .. standard_path()
    end)
end
