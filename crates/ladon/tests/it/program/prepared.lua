-- Prepared statements.
local json = require('json')
box.cfg{wal_mode = 'none', log_level = 1}
box.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, name STRING)')

local function describe(statement)
    for _, name in ipairs({'params', 'param_count', 'metadata'}) do
        print(name, json.encode(statement[name]))
    end
    print(type(statement.stmt_id), type(statement.execute), type(statement.unprepare))
end

local insert = box.prepare('INSERT INTO t VALUES (?, ?)')
describe(insert)
print(json.encode(insert:execute({1, 'a'})))
print(json.encode(box.execute(insert.stmt_id, {2, 'b'})))
local select = box.prepare('SELECT * FROM t WHERE id = ? OR name = :n')
describe(select)
print(json.encode(select:execute({1, {[':n'] = 'b'}})))
print(box.prepare('SELEC'))
print(box.prepare(1))
print(pcall(box.prepare))
print(pcall(select.execute))
print(insert:unprepare())
print(insert:execute({3, 'c'}))
print(box.unprepare(insert.stmt_id))
print(box.unprepare(1))
print(box.execute(12345))
print(pcall(box.unprepare))
print(pcall(box.unprepare, 'x'))
print(pcall(box.execute))
print(pcall(box.execute, {}))
-- Two of the same text are one.
local one, other = box.prepare('SELECT 1'), box.prepare('SELECT 1')
print(one.stmt_id == other.stmt_id, json.encode(one:execute()))
other:unprepare()
print(one:execute())
print(json.encode(box.prepare('DROP TABLE t'):execute()))
print(json.encode(box.execute('CREATE TABLE t (id INTEGER PRIMARY KEY)')))
print(box.unprepare(select))
os.exit(0)
