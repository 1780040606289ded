-- SQL from Lua, over spaces that Lua made and the other way round.
local json = require('json')
box.cfg{wal_mode = 'none', log_level = 1}
local function try(...)
    local result, err = box.execute(...)
    if result == nil then
        return print('error', err.code)
    end
    if result.rows then
        for _, column in ipairs(result.metadata) do io.write(column.name, ' ', column.type, '; ') end
        print(#result.rows)
        for _, row in ipairs(result.rows) do print(row) end
    else
        print(result.row_count, result.autoincrement_ids and json.encode(result.autoincrement_ids))
    end
end

try('CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, name STRING, amount NUMBER)')
try("INSERT INTO t VALUES (NULL, 'a', 1.5), (NULL, 'b', 2), (NULL, 'c', 3)")
print(box.space.T.name, box.space.T:len(), box.space.T:get(2))
box.space.T:insert{10, 'lua', 7}
try('SELECT * FROM t WHERE amount > ? ORDER BY id DESC', {1.9})
try('SELECT name, amount FROM t WHERE id = :id', {{[':id'] = 10}})
try('UPDATE t SET amount = amount + 1 WHERE id < 3')
try('SELECT COUNT(*), SUM(amount), MAX(name) FROM t')
try('DELETE FROM t WHERE id = 1')
print(box.space.T:select()[1])
try('SELECT nosuch FROM t')
try('SELEC 1')
try("INSERT INTO t VALUES (2, 'x', 1)")
local s = box.schema.space.create('made', {format = {{'id', 'unsigned'}, {'word', 'string'}}})
s:create_index('pk')
s:insert{1, 'one'} s:insert{2, 'two'}
try('SELECT "word" FROM "made" WHERE "id" = 2')
try('SELECT a."word", t.name FROM "made" AS a, t WHERE a."id" = t.id')
try('DROP TABLE t')
print(box.space.T)
os.exit(0)
