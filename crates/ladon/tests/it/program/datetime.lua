-- datetime and interval, as in Tarantool 2.11.
local datetime, json, yaml, msgpack = require('datetime'), require('json'), require('yaml'),
    require('msgpack')

local moment = datetime.new{year = 2021, month = 8, day = 31, hour = 18, nsec = 123e6, tz = 'Europe/Moscow'}
print(moment, moment.tz, moment.tzoffset, moment.timestamp, moment.yday, moment.wday, moment.isdst)
print(moment:format('%A %d %B %Y %T.%3f %z'), moment:format())
print(datetime.parse('2004-02-29T10:00:00+03:00'), datetime.parse('31/12/99 23:59', {format = '%d/%m/%y %R'}))
print(pcall(datetime.parse, '2021-02-29'))
print(pcall(datetime.parse, '2021-02-28T00:109:00Z'))
print(pcall(datetime.new, {month = 13}))
print(pcall(datetime.new, {tz = 'AT'}))
print(pcall(datetime.new, {timestamp = 0 / 0}))
local month = datetime.interval.new{month = 1, adjust = 'last'}
print(datetime.new{year = 2023, month = 1, day = 31} + month, moment - {day = 31}, month)
print(moment - datetime.new{year = 2020, month = 1, day = 1})
-- Without the file that it begins with.
local function failed(func)
    local _, text = pcall(func)
    return (text:gsub('^.-:%d+: ', ''))
end
print(failed(function() return datetime.new{year = 5879611} + {year = 1} end))
print(failed(function() return moment < 1 end))
print(moment == datetime.parse('2021-08-31T15:00:00.123Z'), moment > datetime.new())
print(datetime.now().epoch > 1.7e9, datetime.is_datetime(moment), datetime.is_datetime(month))
print(moment:set{hour = 0, tzoffset = -90}, moment:add{week = 1}, moment:sub{nsec = 124e6})
print(json.encode{moment, month}, yaml.encode{moment, month})
for _, value in ipairs{datetime.new(), moment, month, datetime.interval.new{sec = -1e9}} do
    local bytes = msgpack.encode(value)
    local back = msgpack.decode(bytes)
    print(bytes:hex(), back == value, back)
end
print(pcall(msgpack.decode, '\xd7\x04' .. ('\xff'):rep(7) .. '\x7f'))
print(pcall(msgpack.decode, '\xc7\x02\x06\x01\x09'))

box.cfg{listen = arg[1], log = 'datetime.log'}
local space = box.schema.space.create('moments', {format = {
    {'at', 'datetime'}, {'for', 'interval', is_nullable = true}, {'what', 'any', is_nullable = true},
}})
space:create_index('at', {parts = {'at'}})
print(pcall(space.create_index, space, 'length', {parts = {{'for', 'interval'}}}))
local times = {'2024-03-01T00:00:00Z', '1969-12-31T23:59:59.5Z', '2024-03-01T01:00:00+0200'}
for at, text in ipairs(times) do
    space:insert{(datetime.parse(text)), datetime.interval.new{day = at}, text}
end
for _, tuple in space:pairs() do
    print(tuple.at, tuple['for'], tuple.what)
end
print(space:get{(datetime.parse('2024-02-29T23:00:00Z'))}, #space:select({datetime.new()}, {iterator = 'GT'}))
print(pcall(space.insert, space, {'2024-03-01'}))
print(pcall(space.insert, space, {datetime.new(), 5}))
print(space:update({(datetime.parse(times[1]))}, {{'=', 3, moment}}))
box.schema.user.grant('guest', 'super')
local connection = require('net.box').connect(arg[1])
print(connection:eval('return ...', {moment, month}))
print(connection.space.moments:get{(datetime.parse(times[1]))}[3] == moment)
print(connection:eval([[local moment = ... return require('datetime').is_datetime(moment), moment + {day = 1}]], {moment}))
os.exit(0)
