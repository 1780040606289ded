-- popen: children of the process, and their streams
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/popen/).
local ladon = ...

local READ_BYTES, EAGAIN, EINTR, ESRCH, EPIPE = 65536, 11, 4, 3, 32
-- How often a child that is waited for is looked at, in seconds: sooner at first.
local LOOK_FIRST, LOOK_LAST = 0.001, 0.05
local TIMEOUT = 365 * 86400

local OPTS = {INHERIT = 'inherit', DEVNULL = 'devnull', CLOSE = 'close', PIPE = 'pipe'}
-- Numbers of <signal.h> on Linux.
local SIGNALS = {
    SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGIOT = 6,
    SIGBUS = 7, SIGFPE = 8, SIGKILL = 9, SIGUSR1 = 10, SIGSEGV = 11, SIGUSR2 = 12, SIGPIPE = 13,
    SIGALRM = 14, SIGTERM = 15, SIGSTKFLT = 16, SIGCHLD = 17, SIGCONT = 18, SIGSTOP = 19,
    SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22, SIGURG = 23, SIGXCPU = 24, SIGXFSZ = 25,
    SIGVTALRM = 26, SIGPROF = 27, SIGWINCH = 28, SIGIO = 29, SIGPOLL = 29, SIGPWR = 30,
    SIGSYS = 31,
}
local NAMES = {}
for name, number in pairs(SIGNALS) do
    if name ~= 'SIGIOT' and name ~= 'SIGPOLL' then
        NAMES[number] = name
    end
end

local popen = {
    opts = OPTS, signal = SIGNALS,
    state = {ALIVE = 'alive', EXITED = 'exited', SIGNALED = 'signaled'},
    stream = {OPEN = 'open', CLOSED = 'closed'},
}

local STREAMS = {'stdin', 'stdout', 'stderr'}
local methods = {}
-- What handles have, which programs do not see.
local insides = setmetatable({}, {__mode = 'k'})
-- Children whose handles are open; and those that are to end, and were not asked for yet.
local living, ending, is_reaping = {}, {}, false

local function failed(class, text, number)
    return ladon.registry['ladon.module_error'](class, text, number)
end

local function illegal(text)
    error(failed('IllegalParams', text), 0)
end

local function reap()
    for pid in pairs(ending) do
        if ladon.child_wait(pid) ~= nil then
            ending[pid] = nil
        end
    end
end

-- Asks for children that are to end, as long as there may be some: the collector, which closes
-- handles too, must not wait for them.
local function start_reaping()
    if is_reaping then
        return
    end
    is_reaping = true
    ladon.background('popen', function()
        while next(living) ~= nil or next(ending) ~= nil do
            ladon.fiber_wait(LOOK_LAST)
            reap()
        end
        is_reaping = false
    end)
end

-- The inside of a handle that is open.
local function opened(handle, usage)
    local inside = insides[handle]
    if inside == nil then
        illegal('Bad params, use: ph:' .. usage)
    end
    if inside.is_closed then
        illegal('popen: attempt to operate on a closed handle')
    end
    return inside
end

-- Whether the child lives; asks the system until it does not.
local function look(inside)
    local fiber = ladon.current()
    -- As in Tarantool, who has started it sees its end after having waited at the earliest.
    if fiber == inside.fiber and ladon.switches(fiber) == inside.switches then
        return true
    end
    if inside.status.state == 'alive' then
        local state, number = ladon.child_wait(inside.pid)
        if state == 'exited' then
            inside.status = {state = state, exit_code = number}
        elseif state == 'signaled' then
            inside.status = {state = state, signo = number, signame = NAMES[number]}
        end
    end
    return inside.status.state == 'alive'
end

local function copy_of(values)
    local shown = {}
    for key, value in pairs(values) do
        shown[key] = value
    end
    return shown
end

local function close_stream(inside, name)
    local fd = inside.fds[name]
    if fd ~= nil and inside.streams[name] == 'open' then
        inside.streams[name] = 'closed'
        ladon.sock_close(fd)
    end
end

local function send(inside, signal)
    if not look(inside) then
        return nil, failed('SystemError', ('Attempt to send a signal %d to a process that does not'
            .. ' exist anymore'):format(signal), ESRCH)
    end
    local code = ladon.child_kill(inside.pid, signal, inside.opts.group_signal)
    if code ~= 0 then
        local text = require('errno').strerror(code)
        return nil, failed('SystemError', ('Unable to send signal %d: %s'):format(signal, text), code)
    end
    return true
end

function methods.signal(handle, signal)
    local inside = opened(handle, 'signal(signo)')
    if type(signal) ~= 'number' then
        illegal('Bad params, use: ph:signal(signo)')
    end
    return send(inside, signal)
end

function methods.terminate(handle)
    return send(opened(handle, 'terminate()'), SIGNALS.SIGTERM)
end

function methods.kill(handle)
    return send(opened(handle, 'kill()'), SIGNALS.SIGKILL)
end

-- Waits until the child has ended. Only this fiber waits.
function methods.wait(handle)
    local inside = opened(handle, 'wait()')
    local pause = LOOK_FIRST
    while look(inside) do
        ladon.fiber.sleep(pause)
        if inside.is_closed then
            illegal('popen: attempt to operate on a closed handle')
        end
        pause = math.min(pause * 2, LOOK_LAST)
    end
    return copy_of(inside.status)
end

local function stop_of(options, usage)
    local timeout = type(options) == 'table' and options.timeout or nil
    if timeout ~= nil and (type(timeout) ~= 'number' or timeout < 0) then
        illegal('Bad params, use: ph:' .. usage)
    end
    return ladon.clock(1) + (timeout or TIMEOUT)
end

local function wait_ready(fd, writes, stop)
    local left = stop - ladon.clock(1)
    if left <= 0 then
        return false
    end
    ladon.sock_wait(fd, writes, left)
    ladon.fiber.testcancel()
    return true
end

local function stream_of(inside, name)
    if inside.fds[name] == nil then
        illegal('popen: handle does not support the requested IO operation')
    end
    return inside.fds[name]
end

-- What the child has written by now; waits for something. Empty at the end.
function methods.read(handle, options)
    local usage = 'read([{stdout = <boolean>, stderr = <boolean>, timeout = <number>}])'
    local inside = opened(handle, usage)
    local stop = stop_of(options, usage)
    local name = type(options) == 'table' and options.stderr and 'stderr' or 'stdout'
    local fd = stream_of(inside, name)
    while inside.streams[name] == 'open' do
        local text, number = ladon.sock_read(fd, READ_BYTES)
        if text ~= nil then
            return text
        elseif number ~= EAGAIN and number ~= EINTR then
            return nil, failed('SocketError', require('errno').strerror(number), number)
        elseif not wait_ready(fd, false, stop) then
            return nil, failed('TimedOut', 'timed out')
        end
    end
    illegal('popen: attempt to operate on a closed stream')
end

function methods.write(handle, text, options)
    local usage = 'write(str[, {timeout = <number>}])'
    local inside = opened(handle, usage)
    if type(text) ~= 'string' then
        illegal('Bad params, use: ph:' .. usage)
    end
    local stop, fd, sent = stop_of(options, usage), stream_of(inside, 'stdin'), 0
    -- Nobody sees what a crash could take back.
    ladon.pass_gate()
    while sent < #text do
        if inside.streams.stdin ~= 'open' then
            return nil, failed('SocketError', require('errno').strerror(EPIPE), EPIPE)
        end
        local count, number = ladon.sock_write(fd, text, sent + 1)
        if count ~= nil then
            sent = sent + count
        elseif number ~= EAGAIN and number ~= EINTR then
            return nil, failed('SocketError', require('errno').strerror(number), number)
        elseif not wait_ready(fd, true, stop) then
            return nil, failed('TimedOut', 'timed out')
        end
    end
    return true
end

function methods.shutdown(handle, options)
    local inside = opened(handle, 'shutdown({stdin = <boolean>, stdout = <boolean>, stderr = <boolean>})')
    if type(options) ~= 'table' then
        illegal('Bad params, use: ph:shutdown({stdin = <boolean>, stdout = <boolean>,'
            .. ' stderr = <boolean>})')
    end
    for _, name in ipairs(STREAMS) do
        if options[name] then
            stream_of(inside, name)
        end
    end
    for _, name in ipairs(STREAMS) do
        if options[name] then
            close_stream(inside, name)
        end
    end
    return true
end

function methods.info(handle)
    local inside = opened(handle, 'info()')
    local is_alive = look(inside)
    return {
        pid = is_alive and inside.pid or nil, command = inside.command,
        opts = copy_of(inside.opts), status = copy_of(inside.status),
        stdin = inside.streams.stdin, stdout = inside.streams.stdout,
        stderr = inside.streams.stderr,
    }
end

local function close(inside)
    if inside.is_closed then
        return
    end
    if look(inside) then
        if not inside.opts.keep_child then
            ladon.child_kill(inside.pid, SIGNALS.SIGKILL, inside.opts.group_signal)
        end
        ending[inside.pid] = true
    end
    inside.is_closed = true
    living[inside.pid] = nil
    for _, name in ipairs(STREAMS) do
        close_stream(inside, name)
    end
end

function methods.close(handle)
    local inside = insides[handle]
    if inside == nil then
        illegal('Bad params, use: ph:close()')
    end
    close(inside)
    reap()
    return true
end

local function field_of(handle, name)
    local inside = insides[handle]
    if methods[name] ~= nil then
        return methods[name]
    end
    if inside.is_closed then
        illegal('popen: attempt to operate on a closed handle')
    end
    return methods.info(handle)[name]
end

local function new_handle(inside)
    -- A userdata, so that the collector closes what the program has lost.
    local handle = newproxy(true)
    local mt = getmetatable(handle)
    mt.__index = field_of
    mt.__serialize = methods.info
    mt.__gc = function()
        close(inside)
    end
    insides[handle] = inside
    return handle
end

local function shown_command(argv)
    local words = {}
    for at, word in ipairs(argv) do
        words[at] = word:find('[^%w_@%%+=:,./-]') and ("'%s'"):format(word) or word
    end
    return table.concat(words, ' ')
end

local FLAGS = {shell = false, setsid = false, close_fds = true, restore_signals = true,
               group_signal = false, keep_child = false}

local function options_of(given)
    local opts = {}
    for name, default in pairs(FLAGS) do
        local value = given[name]
        if value ~= nil and type(value) ~= 'boolean' then
            illegal(('popen.new: wrong parameter "opts.%s": expected boolean or nil, got %s'):format(
                name, type(value)))
        end
        opts[name] = value == nil and default or value or false
    end
    for _, name in ipairs(STREAMS) do
        local value = given[name] or OPTS.INHERIT
        if type(value) ~= 'string' or OPTS[value:upper()] ~= value then
            illegal(('popen.new: wrong parameter "opts.%s": expected popen.opts.<...> or nil'):format(
                name))
        end
        opts[name] = value
    end
    if given.inherit_fds ~= nil then
        illegal('popen.new: opts.inherit_fds is not supported')
    end
    for _, name in ipairs({'close_fds', 'restore_signals'}) do
        if not opts[name] then
            illegal(('popen.new: opts.%s = false is not supported'):format(name))
        end
    end
    if opts.group_signal and not opts.setsid then
        illegal('popen.new: group_signal = true requires setsid = true')
    end
    return opts
end

local function environment_of(given)
    if given == nil then
        return nil
    elseif type(given) ~= 'table' then
        illegal(('popen.new: wrong parameter "opts.env": expected table, got %s'):format(type(given)))
    end
    local pairs_of = {}
    for name, value in pairs(given) do
        pairs_of[#pairs_of + 1] = tostring(name) .. '=' .. tostring(value)
    end
    return pairs_of
end

function popen.new(...)
    local argv, given = ...
    if type(argv) ~= 'table' then
        error(('popen.new: wrong parameter "argv": expected table, got %s'):format(
            select('#', ...) == 0 and 'no value' or type(argv)), 0)
    elseif given ~= nil and type(given) ~= 'table' then
        error(('popen.new: wrong parameter "opts": expected table or nil, got %s'):format(
            type(given)), 0)
    end
    local opts = options_of(given or {})
    local words = opts.shell and {'/bin/sh', '-c', unpack(argv)} or {unpack(argv)}
    for _, word in ipairs(words) do
        if type(word) ~= 'string' then
            illegal(('popen.new: wrong parameter "argv": expected strings, got %s'):format(type(word)))
        end
    end
    reap()
    local found = {ladon.child_spawn(words, environment_of(given and given.env), opts.stdin,
        opts.stdout, opts.stderr, opts.setsid)}
    if found[1] == nil then
        return nil, failed('SystemError', ('Unable to start %s: %s'):format(
            tostring(words[1]), require('errno').strerror(found[2])), found[2])
    end
    local inside = {pid = found[1], opts = opts, status = {state = 'alive'}, fds = {}, streams = {}}
    inside.fiber = ladon.current()
    inside.switches = ladon.switches(inside.fiber)
    local shown = opts.shell and {'sh', '-c', unpack(argv)} or words
    inside.command = opts.shell and ("sh -c '%s'"):format(table.concat(argv, ' '))
        or shown_command(shown)
    for at, name in ipairs(STREAMS) do
        if found[at + 1] then
            inside.fds[name], inside.streams[name] = found[at + 1], 'open'
        end
    end
    living[inside.pid] = true
    start_reaping()
    return new_handle(inside)
end

-- A command of the shell; `mode` says which streams are pipes: `w` its input, `r` its output, `R`
-- its errors.
function popen.shell(...)
    local command, mode = ...
    if type(command) ~= 'string' then
        error(('popen.shell: wrong parameter "command": expected string, got %s'):format(
            select('#', ...) == 0 and 'no value' or type(command)), 0)
    elseif mode ~= nil and type(mode) ~= 'string' then
        error(('popen.shell: wrong parameter "mode": expected string or nil, got %s'):format(
            type(mode)), 0)
    end
    mode = mode or ''
    local function pipe_if(letter)
        return mode:find(letter, 1, true) and OPTS.PIPE or OPTS.INHERIT
    end
    return popen.new({command}, {
        shell = true, setsid = true, group_signal = true, stdin = pipe_if('w'),
        stdout = pipe_if('r'), stderr = pipe_if('R'),
    })
end

ladon.module('popen', function()
    return popen
end)
