-- box.schema.func and box.func.
local ladon = ...

local definitions = ladon.definitions
local map, check_options = definitions.map, definitions.check_options
local insert_numbered, drop_privileges = definitions.insert_numbered, definitions.drop_privileges

local FUNC_OPTIONS = {
    setuid = 'boolean', if_not_exists = 'boolean', language = 'string', body = 'string',
    is_deterministic = 'boolean', is_sandboxed = 'boolean', is_multikey = 'boolean',
    aggregate = 'string', returns = 'string', param_list = 'table', exports = 'table',
    comment = 'string', opts = 'table', routine_type = 'string',
}

function box.schema.func.create(name, options)
    options = check_options(options, FUNC_OPTIONS)
    if box.space._func.index.name:get({name}) ~= nil then
        if options.if_not_exists then
            return
        end
        box.error(box.error.FUNCTION_EXISTS, name)
    end
    local language = (options.language or 'LUA'):upper()
    if language ~= 'LUA' then
        box.error(box.error.UNSUPPORTED, 'Ladon', 'functions in ' .. language)
    end
    if options.body ~= nil then
        local chunk, why = loadstring('return ' .. options.body, '@' .. name)
        if chunk == nil then
            box.error(box.error.LOAD_FUNCTION, name, why)
        end
    end
    local owner, now = ladon.user(), os.date('!%Y-%m-%d %H:%M:%S')
    local exports, opts = options.exports or {'LUA'}, options.opts or {}
    insert_numbered(box.space._func, 2, function(id)
        return {
            id, owner, name, options.setuid and 1 or 0, language, options.body or '', 'function',
            setmetatable(options.param_list or {}, ladon.registry['ladon.seq']),
            options.returns or 'any', options.aggregate or 'none', 'none',
            options.is_deterministic or false, options.is_sandboxed or false, true, exports,
            map(opts), options.comment or '', now, now,
        }
    end)
end

function box.schema.func.drop(name, options)
    local found = box.space._func.index.name:get({name})
    if found == nil then
        if options and options.if_exists then
            return
        end
        box.error(box.error.NO_SUCH_FUNCTION, name)
    end
    ladon.as_admin(function()
        drop_privileges('function', found[1])
    end)
    box.space._func:delete({found[1]})
end

function box.schema.func.exists(name)
    return box.space._vfunc.index.name:get({name}) ~= nil
end

local func_methods = {}
local Func = {__index = func_methods}

function func_methods.call(func, arguments)
    ladon.check_call(func.name)
    local body = ladon.body_of(func.name)
    if body ~= nil then
        return body(unpack(arguments or {}))
    end
    local value = _G
    for part in func.name:gmatch('[^%.]+') do
        value = type(value) == 'table' and value[part] or nil
    end
    if value == nil then
        box.error(box.error.NO_SUCH_PROC, func.name)
    end
    return value(unpack(arguments or {}))
end

function func_methods.drop(func)
    box.schema.func.drop(func.name)
end

box.func = setmetatable({}, {
    __index = function(_, name)
        -- Who may not call a function is told so when it does.
        local found = ladon.as_admin(function()
            return box.space._func.index.name:get({name})
        end)
        if found == nil then
            return nil
        end
        return setmetatable({
            id = found[1], uid = found[2], name = found[3], setuid = found[4] == 1,
            language = found[5], body = found[6] ~= '' and found[6] or nil,
        }, Func)
    end,
})
