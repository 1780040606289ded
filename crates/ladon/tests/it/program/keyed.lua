-- A space with functional indexes and a check, written by clients of every dialect.
box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'write', log_level = 1}
box.schema.user.grant('guest', 'read,write,execute', 'universe', nil, {if_not_exists = true})
local space = box.schema.space.create('people', {
    if_not_exists = true,
    format = {{'id', 'unsigned'}, {'mails', 'string'}, {'age', 'unsigned', is_nullable = true}},
})
space:create_index('pk', {if_not_exists = true})
if box.space._func.index.name:get('mails_of') == nil then
    box.space._space:update(space.id, {{'=', 6, {resp_prefix = 'person:'}}})
    space:create_check_constraint('young', '"age" IS NULL OR "age" < 200')
    box.schema.func.create('mails_of', {
        body = [[function(tuple)
            local keys = {}
            for mail in string.gmatch(tuple.mails, '[^,]+') do
                keys[#keys + 1] = {string.lower(mail)}
            end
            return keys
        end]],
        is_deterministic = true, is_sandboxed = true, opts = {is_multikey = true},
    })
    space:create_index('mails', {func = 'mails_of', parts = {{1, 'string'}}})
end
function state() return true end
-- Every mail with the numbers of who has it, by the index and by the tuples.
function mails()
    local by_index, by_tuples = {}, {}
    for _, tuple in ipairs(space.index.mails:select()) do
        by_index[#by_index + 1] = tuple[1]
    end
    for _, tuple in space:pairs() do
        for mail in tuple.mails:gmatch('[^,]+') do
            local found = space.index.mails:get(mail:lower())
            by_tuples[#by_tuples + 1] = found == nil and 0 or found[1]
            assert(found ~= nil and found[1] == tuple[1], mail)
        end
    end
    table.sort(by_index)
    return table.concat(by_index, ' '), #by_tuples
end
function snapshot() return box.snapshot() end
