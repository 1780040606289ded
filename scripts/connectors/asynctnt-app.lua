-- What asynctnt's own tests expect of a server: its package comes without its app.lua.
box.schema.user.create('t1', {password = 't1'})
box.schema.user.grant('t1', 'read,write,execute,create,drop,alter', 'universe')

local function tester_format(more)
    local format = {
        {name = 'f1', type = 'unsigned'}, {name = 'f2', type = 'string'},
        {name = 'f3', type = 'unsigned'}, {name = 'f4', type = 'unsigned'}, {name = 'f5', type = '*'},
    }
    table.insert(format, more)
    return format
end

local tester = box.schema.space.create('tester', {format = tester_format()})
tester:create_index('primary')
tester:create_index('txt', {unique = false, parts = {2, 'string'}})
local plain = box.schema.space.create('no_schema_space')
plain:create_index('primary')
plain:create_index('primary_hash', {type = 'hash', parts = {1, 'unsigned'}})
-- A type that this tarantool does not know yet is any.
local function typed(name, type, field)
    local space = box.schema.space.create('tester_ext_' .. name)
    local function format(type)
        space:format({{name = 'id', type = 'unsigned'}, {name = field or name, type = type, is_nullable = true}})
    end
    if not pcall(format, type) then format('any') end
    space:create_index('primary')
end
typed('dec', 'decimal')
typed('uuid', 'uuid')
typed('datetime', 'datetime', 'dt')
typed('interval', 'interval')

function change_format() tester:format(tester_format({name = 'f6', type = '*'})) end
function make_third_index(name)
    return {tester:create_index(name, {unique = true, parts = {3, 'unsigned'}}).id}
end
function truncate()
    for _, space in pairs({tester, plain}) do
        for _, tuple in pairs(space:select()) do space:delete({tuple[1]}) end
    end
end
function func_long(seconds)
    require('fiber').sleep(seconds)
    return 'ok'
end
function func_param(value) return {value} end
function func_param_bare(value) return value end
function func_hello() return {'hello'} end
function func_hello_bare() return 'hello' end
function func_load_bin_str()
    return tester:insert({100, require('uuid').bin(), 12, 15, 'hello'})
end
function raise() box.error({reason = 'my reason'}) end
function async_action()
    for number = 1, 5 do
        box.session.push('hello_' .. number)
        require('fiber').sleep(0.01)
    end
    return 'ret'
end
