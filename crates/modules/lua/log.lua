-- log: makes the text of a line, and hands it on if its level is wanted.
local native = ...
local json = require('json')

local LEVELS = {fatal = 0, syserror = 1, error = 2, crit = 3, warn = 4, info = 5, verbose = 6,
                debug = 7}
local LEVEL_NAMES = 'crit,warn,info,debug,syserror,verbose,fatal,error'
local FORMATS = {plain = true, json = true}
local FORMAT_NAMES = 'json,plain'

local cfg = {level = 5, format = 'plain'}

-- The file that `log.cfg` has named, until `box.cfg` takes over.
local file
-- Where the log goes has been said, by `log.cfg` or `box.cfg`.
local is_begun = false
-- What `box` does when the level changes, once there is one.
local changes_level

local LETTERS = {[0] = 'F', '!', 'E', 'C', 'W', 'I', 'V', 'D'}

-- A program that the log goes to. What it does not take at once is dropped: a log holds up nobody.
local function open_pipe(command)
    local ffi = require('ffi')
    ffi.cdef([[
        void *ladon_popen(const char *command, const char *mode) __asm__("popen");
        int ladon_fileno(void *stream) __asm__("fileno");
        int ladon_fcntl(int fd, int command, ...) __asm__("fcntl");
        intptr_t ladon_write(int fd, const void *bytes, size_t count) __asm__("write");
    ]])
    -- The numbers of F_SETFL and O_NONBLOCK.
    local SET_FLAGS, NONBLOCK = 4, ffi.os == 'OSX' and 4 or 2048
    local stream = ffi.C.ladon_popen(command, 'w')
    if stream == nil then
        return nil, 'cannot start the program'
    end
    local fd = ffi.C.ladon_fileno(stream)
    ffi.C.ladon_fcntl(fd, SET_FLAGS, ffi.cast('int', NONBLOCK))
    return {
        is_pipe = true,
        write = function(_, ...)
            local text = table.concat({...})
            ffi.C.ladon_write(fd, text, #text)
        end,
        flush = function() end,
    }
end

local function write_line(level, place, line, text, fields)
    local stamp = os.date('%Y-%m-%d %H:%M:%S')
    if cfg.format == 'json' then
        local shown = fields and json.decode(text) or {message = text}
        shown.time, shown.level, shown.file, shown.line = stamp, level, place, line
        file:write(json.encode(shown), '\n')
    else
        file:write(stamp, ' ', LETTERS[level] or 'D', '> ', text, '\n')
    end
    file:flush()
end

local function say(level, format, ...)
    if level > cfg.level then
        return
    end
    local fields = false
    local text
    if type(format) == 'table' then
        if select('#', ...) > 0 then
            error(("bad argument #1 to '%s' (string expected, got table)"):format('?'), 3)
        end
        text = json.encode(format)
        fields = cfg.format == 'json' and text:sub(1, 1) == '{'
    elseif select('#', ...) > 0 then
        text = string.format(format, ...)
    else
        text = tostring(format)
    end
    -- Not a tail call, which would take the caller's frame away.
    local info = debug.getinfo(3, 'Sl') or {}
    local place, line = info.short_src or '?', info.currentline or 0
    if file ~= nil then
        return write_line(level, place, line, text, fields)
    end
    native.say(level, place, line, text, fields, cfg.format == 'json')
end

local function sayer(name)
    local level = LEVELS[name]
    return function(format, ...)
        say(level, format, ...)
    end
end

-- The number of a level that is given as a number or by name; or nil and what is wrong.
local function level_number(level)
    if type(level) == 'string' then
        if LEVELS[level] == nil then
            return nil, 'expected ' .. LEVEL_NAMES
        end
        return LEVELS[level]
    elseif type(level) ~= 'number' then
        return nil, 'must be a number or a string'
    end
    return level
end

local function set_level(level)
    local number, wrong = level_number(level)
    if number == nil then
        error(wrong, 2)
    end
    cfg.level = number
    if changes_level ~= nil then
        changes_level(number)
    end
    say(LEVELS.debug, 'log: level set to %s', level)
end

local function set_format(format)
    if not FORMATS[format] then
        error('expected ' .. FORMAT_NAMES, 2)
    end
    cfg.format = format
    say(LEVELS.debug, "log: format set to '%s'", format)
end

local function configure(_, options)
    options = options or {}
    if is_begun and options.log ~= nil and options.log ~= cfg.log then
        error("log.cfg: 'log' can't be set dynamically", 2)
    end
    if options.log ~= nil and (type(options.log) ~= 'string' or options.log:find('^syslog:')) then
        error("log.cfg: 'log' expected a file or a pipe", 2)
    end
    local command = (options.log or ''):match('^%s*|%s*(.*)$')
        or (options.log or ''):match('^pipe:(.*)$')
    if options.nonblock and command == nil then
        error("log.cfg: 'nonblock' is for pipes: a file is always written", 2)
    end
    if options.format ~= nil and not FORMATS[options.format] then
        error("log.cfg: 'format' expected " .. FORMAT_NAMES, 2)
    end
    if options.level ~= nil then
        local number, wrong = level_number(options.level)
        if number == nil then
            error("log.cfg: 'level' " .. wrong, 2)
        end
        cfg.level = number
        if changes_level ~= nil then
            changes_level(number)
        end
    end
    if options.log ~= nil and not is_begun then
        local opened, why
        if command ~= nil then
            opened, why = open_pipe(command)
        else
            opened, why = io.open((options.log:gsub('^file:', '')), 'a')
        end
        if opened == nil then
            error("log.cfg: 'log' " .. why, 2)
        end
        file, cfg.log = opened, options.log
    end
    is_begun = true
    cfg.format = options.format or cfg.format
    say(LEVELS.debug, "log.cfg({log=%s,level=%s,nonblock=%s,format='%s'})", tostring(options.log),
        tostring(cfg.level), tostring(options.nonblock), tostring(cfg.format))
end

local log = {
    level = set_level,
    log_format = set_format,
    pid = function()
        return 0
    end,
    -- Only a file can be rotated; the process that has one puts its own function here.
    rotate = function()
        error('log.rotate: the log goes to no file', 2)
    end,
    cfg = setmetatable({}, {
        __call = configure,
        -- Options of the first `box.cfg`: what `log.cfg` has set counts unless they say otherwise.
        before_box = function(options)
            if options.log == nil and not (file ~= nil and file.is_pipe) then
                options.log = cfg.log
            end
            if options.log_level == nil and is_begun then
                options.log_level = cfg.level
            end
        end,
        -- `box.cfg` has taken these options; `on_level` is called when the level changes here.
        after_box = function(options, on_level)
            -- A pipe stays the program's own, unless another place was named.
            if file ~= nil and not file.is_pipe then
                file:close()
                file = nil
            elseif file ~= nil and options.log ~= nil then
                file = nil
            end
            is_begun, changes_level = true, on_level
            cfg.log = options.log or cfg.log
            cfg.level = level_number(options.log_level) or cfg.level
        end,
        __index = cfg,
        __pairs = function()
            return pairs(cfg)
        end,
        __serialize = function()
            return cfg
        end,
    }),
}

for _, name in ipairs({'error', 'warn', 'info', 'verbose', 'debug'}) do
    log[name] = sayer(name)
end

return log
