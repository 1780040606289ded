-- Modules that wait: files on other threads, children, a console, keys of tuples.
io.stdout:setvbuf('no')
local port = tonumber(arg[1])
local fiber, fio, popen = require('fiber'), require('fio'), require('popen')
local console, socket, key_def = require('console'), require('socket'), require('key_def')

-- Files, from several fibers at once.
local folder = fio.tempdir()
local writers = {}
for number = 1, 8 do
    writers[number] = fiber.new(function()
        local path = fio.pathjoin(folder, tostring(number))
        local file = fio.open(path, {'O_RDWR', 'O_CREAT'}, tonumber('644', 8))
        for _ = 1, 20 do
            assert(file:write(('x'):rep(1000)))
        end
        local size = file:stat().size
        file:close()
        return size
    end)
    writers[number]:set_joinable(true)
end
local sum = 0
for _, writer in ipairs(writers) do
    sum = sum + select(2, writer:join())
end
print('written', sum, #fio.listdir(folder))
print(fio.rmtree(folder), fio.path.exists(folder))
local file, err = fio.open('/no/such/file')
print(file, type(err), err.type, err.message, err.errno)

-- Children.
local child = popen.new({'/bin/cat'}, {stdin = 'pipe', stdout = 'pipe'})
print(child.status.state, child.stdin, child.stdout, child.stderr, child.command)
print(child:write('hello'), child:read(), child:shutdown({stdin = true}), child:read() == '')
local status = child:wait()
print(status.state, status.exit_code, child:info().pid, child:close(), child:close())
print(pcall(child.read, child))
child = popen.shell('echo out; echo err >&2; exit 3', 'rR')
print(child:read(), child:read({stderr = true}), child:wait().exit_code, child:close())
child = popen.new({'/bin/sleep', '100'}, {stdout = 'pipe'})
local text, why = child:read({timeout = 0.01})
print(text, why.type, tostring(why), child:terminate())
status = child:wait()
print(status.state, status.signo, status.signame, child:kill())
print((select(2, pcall(popen.new))))
print((select(2, pcall(popen.shell))))
local ticks, ticker = 0, nil
ticker = fiber.create(function()
    while true do
        ticks = ticks + 1
        fiber.sleep(0.01)
    end
end)
popen.shell('sleep 0.3'):wait()
print('others ran', ticks > 5)
ticker:cancel()

-- A console.
local server = console.listen('127.0.0.1:' .. port)
local client = socket.tcp_connect('127.0.0.1', port)
print(client:read(128):match('Lua console') ~= nil)
local function ask(line, ending)
    client:write(line .. '\n')
    print((client:read(ending or '\n...\n')))
end
for _, line in ipairs({'1', '1, nil, "a"', 'x = 5', 'x', 'error("oops", 0)', '=', 'nil', '',
                       '\\set output', '\\unknown', '\\set language sql', '\\set language lua',
                       'require("console").delimiter(";")', '{1,\n2};',
                       'require("console").delimiter("");'}) do
    ask(line)
end
ask('\\set output lua', ';')
ask('1, nil, {a = {1, "x"}}, box.NULL, 2ULL', ';')
ask('\\set output lua,block', ';')
ask('{1, {2}, k = true}', ';')
client:close()
server:close()
for _, line in ipairs({'2 + 2', 'local a = 1 error("y")', 'x x', 'nofield.a', 'return 5',
                       '{1, a = 2}', '"a", nil', '{1, nil, 3}', 'box.NULL', '-- x', '{a = {}}', '-1LL'}) do
    print(console.eval(line))
end
print((select(2, pcall(console.set_default_output, 'foo')):gsub('^.-: ', '')))
print((select(2, pcall(console.delimiter)):gsub('^.-: ', '')))

-- Keys of tuples.
local by
local function order(...)
    print(pcall(by.compare, by, ...))
end
box.cfg({log_level = 1})
by = key_def.new({
    {fieldno = 2, type = 'string', collation = 'unicode_ci'}, {fieldno = 1, type = 'number'},
    {fieldno = 3, type = 'unsigned', is_nullable = true},
})
order({1, 'a'}, {1, 'A'})
order({1, 'a'}, {2, 'A'})
order({1.5, 'a'}, {1, 'A'})
order({1, 'b'}, {1, 'A'})
order({1, 'a', 5}, {1, 'A'})
order({1, 'a', 5}, {1, 'a', 6})
order({18446744073709551615ULL, 'a'}, {-1, 'a'})
print(by:extract_key({1, 'x'}), by:extract_key(box.tuple.new({1, 'x', 3, 4})))
print(by:compare_with_key({1, 'x'}, {'X', 1}), by:compare_with_key({1, 'x'}, {'Y'}))
print(tostring(by), #by:totable(), #by:merge(key_def.new({{fieldno = 9, type = 'string'}})):totable())
for _, parts in ipairs({{}, {{fieldno = 1, type = 'foo'}}, {{fieldno = 1, field = 1, type = 'string'}},
                        {{fieldno = 1, type = 'string', path = '[*]'}}}) do
    print(select(2, pcall(key_def.new, parts)))
end
print(select(2, pcall(by.extract_key, by, {1})))
print(select(2, pcall(by.extract_key, by, {1, 2})))

-- Sources in one order.
local merger = require('merger')
local by_name = key_def.new({{fieldno = 1, type = 'string'}})
local function shown(source)
    local names = {}
    for _, tuple in source:pairs() do
        names[#names + 1] = tuple[1]
    end
    return table.concat(names, ' ')
end
local function sources()
    local buffer = require('buffer').ibuf()
    require('msgpack').encode({{'b'}, {'e'}}, buffer)
    return {
        merger.new_source_fromtable({{'a'}, {'d'}, {'g'}}), merger.new_source_frombuffer(buffer),
        merger.new_tuple_source(function(_, number)
            if number < 2 then
                return number + 1, {number == 0 and 'c' or 'f'}
            end
        end, nil, 0), merger.new_source_fromtable({}),
    }
end
print(shown(merger.new(by_name, sources())))
print(#merger.new(by_name, sources()):select({limit = 3}), #merger.new(by_name, sources()):select())
print(shown(merger.new(by_name, {merger.new_source_fromtable({{'b'}, {'a'}}),
    merger.new_source_fromtable({{'c'}})}, {reverse = true})))
local once = merger.new_source_fromtable({{'a'}, {'b'}, {'c'}})
local first, second = merger.new(by_name, {once}):pairs(), merger.new(by_name, {once}):pairs()
print(first:head()[1], second:head()[1], first:head()[1], first:is_null(), second:is_null())
for _, call in ipairs({{merger.new_source_fromtable, 1}, {merger.new_source_frombuffer, 1},
                       {merger.new_table_source, 1}, {merger.new, by_name, {}, 1},
                       {merger.new, by_name, {}, {reverse = 1}}}) do
    print(select(2, pcall(unpack(call))))
end
-- One that ends at once is seen to end after a wait.
local quick = require('popen').shell('exit 3', 'r')
local until_then = require('clock').monotonic() + 0.1
while require('clock').monotonic() < until_then do end
print(quick.pid ~= nil, quick.status.state, quick:wait().exit_code, quick.pid)
quick:close()
os.exit(0)
