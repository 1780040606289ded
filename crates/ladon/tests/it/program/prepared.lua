-- Prepared statements.
local json = require('json')
box.cfg{wal_mode = 'none', log_level = 1}
box.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, name STRING)')

-- What a statement or an answer has; keys of tables have no order.
local function columns(list)
    for _, column in ipairs(list or {}) do
        print('', column.name, column.type)
    end
end

local function show(answer, why)
    if answer == nil then
        -- Numbers of statements are the server's.
        return print((tostring(why):gsub('id %d+', 'id N')))
    end
    columns(answer.metadata)
    print(answer.row_count, answer.rows and json.encode(answer.rows))
end

local function describe(statement)
    print(statement.param_count, statement.metadata == nil)
    columns(statement.params)
    columns(statement.metadata)
    print(type(statement.stmt_id), type(statement.execute), type(statement.unprepare))
end

local insert = box.prepare('INSERT INTO t VALUES (?, ?)')
describe(insert)
show(insert:execute({1, 'a'}))
show(box.execute(insert.stmt_id, {2, 'b'}))
local select = box.prepare('SELECT * FROM t WHERE id = ? OR name = :n')
describe(select)
show(select:execute({1, {[':n'] = 'b'}}))
print(box.prepare('SELEC'))
print(box.prepare(1))
print(pcall(box.prepare))
print(pcall(select.execute))
print(insert:unprepare())
show(insert:execute({3, 'c'}))
show(box.unprepare(insert.stmt_id))
print(box.unprepare(1))
print(box.execute(12345))
print(pcall(box.unprepare))
print(pcall(box.unprepare, 'x'))
print(pcall(box.execute))
print(pcall(box.execute, {}))
-- Two of the same text are one.
local one, other = box.prepare('SELECT 1'), box.prepare('SELECT 1')
print(one.stmt_id == other.stmt_id)
show(one:execute())
other:unprepare()
show(one:execute())
show(box.prepare('DROP TABLE t'):execute())
show(box.execute('CREATE TABLE t (id INTEGER PRIMARY KEY)'))
print(box.unprepare(select))
os.exit(0)
