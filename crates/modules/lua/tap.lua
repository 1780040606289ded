-- tap: the Test Anything Protocol
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/tap/).
local ffi = require('ffi')

local methods = {}
local Test = {__index = methods}

local function write(test, text, ...)
    if select('#', ...) > 0 then
        text = text:format(...)
    end
    io.write((' '):rep(4 * test.level), text, '\n')
end

-- What called the test, without the module's own frames.
local function stack_of(level)
    local frames = {}
    while true do
        local info = debug.getinfo(level, 'nSl')
        if info == nil then
            return frames
        end
        frames[#frames + 1] = {
            source = info.source, src = info.short_src, line = info.linedefined or 0,
            what = info.what, name = info.name, namewhat = info.namewhat,
            filename = info.source:match('([^@/]+)$') or 'eval',
        }
        level = level + 1
    end
end

local function from_test()
    local level = 2
    while true do
        local info = debug.getinfo(level, 'S')
        if info == nil or info.source ~= '@builtin/tap.lua' then
            return level
        end
        level = level + 1
    end
end

function methods.diag(test, text, ...)
    write(test, '# ' .. text, ...)
end

local function ok(test, is_good, message, extra)
    test.total = test.total + 1
    io.write((' '):rep(4 * test.level))
    if is_good then
        io.write(('ok - %s\n'):format(tostring(message)))
        return true
    end
    test.failed = test.failed + 1
    io.write(('not ok - %s\n'):format(tostring(message)))
    extra = extra or {}
    if test.trace then
        local frame = debug.getinfo(from_test() - 1, 'Sl')
        extra.trace = stack_of(from_test())
        extra.filename = extra.trace[#extra.trace] and extra.trace[#extra.trace].filename
        extra.line = frame and frame.currentline
    end
    if next(extra) == nil then
        return false
    end
    local shown = require('yaml').new()
    shown.cfg({encode_invalid_as_nil = true, encode_use_tostring = true})
    local indent = (' '):rep(4 * test.level)
    for line in shown.encode(extra):gmatch('[^\n]+') do
        io.write(indent, '  ', line, '\n')
    end
    return false
end

function methods.ok(test, is_good, message, extra)
    return ok(test, is_good, message, extra)
end

function methods.fail(test, message, extra)
    return ok(test, false, message, extra)
end

function methods.skip(test, message, extra)
    return ok(test, true, tostring(message) .. ' # skip', extra)
end

-- Whether two values are the same; strictly, nil and box.NULL are not.
local function same(test, got, expected)
    if test.strict and type(got) ~= type(expected) then
        return false
    end
    return got == expected
end

function methods.is(test, got, expected, message, extra)
    extra = extra or {}
    extra.got, extra.expected = got, expected
    return ok(test, same(test, got, expected), message, extra)
end

function methods.isnt(test, got, unexpected, message, extra)
    extra = extra or {}
    extra.got, extra.unexpected = got, unexpected
    return ok(test, not same(test, got, unexpected), message, extra)
end

local function differs(extra, got, expected)
    extra.got, extra.expected = got, expected
    return false
end

local function same_deeply(got, expected, extra, path)
    if type(expected) == 'number' or type(got) == 'number' then
        -- A NaN is what it is.
        if got == expected or got ~= got and expected ~= expected then
            return true
        end
        return differs(extra, got, expected)
    end
    if extra.strict and type(got) ~= type(expected) then
        return differs(extra, type(got), type(expected))
    end
    if ffi.istype('bool', got) then
        got = got == 1
    end
    if ffi.istype('bool', expected) then
        expected = expected == 1
    end
    if type(got) ~= 'table' or type(expected) ~= 'table' then
        if got == expected then
            return true
        end
        return differs(extra, got, expected)
    end
    local seen = {}
    for key, value in pairs(got) do
        seen[key] = true
        local at = ('%s/%s'):format(path, tostring(key))
        extra.path = at
        if not same_deeply(value, expected[key], extra, at) then
            return false
        end
    end
    for key, value in pairs(expected) do
        if not seen[key] and (extra.strict or value ~= nil) then
            return differs(extra, 'nil', 'key ' .. tostring(key))
        end
    end
    extra.path = path
    return true
end

function methods.is_deeply(test, got, expected, message, extra)
    extra = extra or {}
    extra.got, extra.expected, extra.strict = got, expected, test.strict
    return ok(test, same_deeply(got, expected, extra, '/'), message, extra)
end

function methods.like(test, got, pattern, message, extra)
    extra = extra or {}
    extra.got, extra.expected = got, pattern
    return ok(test, tostring(got):match(tostring(pattern)) ~= nil, message, extra)
end

function methods.unlike(test, got, pattern, message, extra)
    extra = extra or {}
    extra.got, extra.expected = got, pattern
    return ok(test, tostring(got):match(tostring(pattern)) == nil, message, extra)
end

function methods.isnil(test, value, message, extra)
    return methods.is(test, not value and 'nil' or value, 'nil', message, extra)
end

for name, kind in pairs({isnumber = 'number', isstring = 'string', istable = 'table',
                         isboolean = 'boolean', isfunction = 'function'}) do
    methods[name] = function(test, value, message, extra)
        return methods.is(test, type(value), kind, message, extra)
    end
end

function methods.isudata(test, value, name, message, extra)
    extra = extra or {}
    extra.expected = ('userdata<%s>'):format(name)
    if type(value) ~= 'userdata' then
        extra.got = type(value)
        return ok(test, false, message, extra)
    end
    extra.got = ('userdata<%s>'):format(tostring(getmetatable(value)))
    return ok(test, extra.got == extra.expected, message, extra)
end

function methods.iscdata(test, value, ctype, message, extra)
    extra = extra or {}
    extra.expected = tostring(ffi.typeof(ctype))
    if type(value) ~= 'cdata' then
        extra.got = type(value)
        return ok(test, false, message, extra)
    end
    extra.got = tostring(ffi.typeof(value))
    return ok(test, ffi.istype(ctype, value), message, extra)
end

function methods.plan(test, planned)
    test.planned = planned
    write(test, '1..%d', planned)
end

local function new_test(parent, name)
    return setmetatable({
        parent = parent, name = name or 'test', level = parent and parent.level + 1 or 0,
        total = 0, failed = 0, planned = 0,
        trace = not parent or parent.trace, strict = parent ~= nil and parent.strict or false,
    }, Test)
end

function methods.test(parent, name, func, ...)
    local test = new_test(parent, name)
    if func ~= nil then
        test:diag('%s', test.name)
        func(test, ...)
        test:diag('%s: end', test.name)
        return test:check()
    end
    return test
end

function methods.check(test)
    if test.checked then
        error('check() already called')
    end
    test.checked = true
    local is_good
    if test.planned ~= test.total then
        if test.parent ~= nil then
            ok(test.parent, false, 'bad plan', {planned = test.planned, run = test.total})
        else
            test:diag('bad plan: planned %d run %d', test.planned, test.total)
        end
        is_good = false
    elseif test.failed > 0 then
        if test.parent ~= nil then
            ok(test.parent, false, 'failed subtests',
                {failed = test.failed, planned = test.planned})
        else
            test:diag('failed subtest: %d', test.failed)
        end
        is_good = false
    else
        if test.parent ~= nil then
            ok(test.parent, true, test.name)
        end
        is_good = true
    end
    return is_good
end

local function root_test(...)
    io.write('TAP version 13', '\n')
    return methods.test(nil, ...)
end

return {test = root_test}
