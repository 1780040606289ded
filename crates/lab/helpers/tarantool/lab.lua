-- What the lab's works use of Tarantool. box.cfg has been called before this with the settings under
-- measurement; `primary` is the type of all primary indexes, and `first` says whether this node makes the spaces or gets them by replication. On a server
-- that is not the lab's, `attached` is true: no right is given to anybody, and no space of somebody else
-- is touched.
local fiber = require('fiber')
local json = require('json')

if attached then
    local ours = {
        [512] = 'kv', [513] = 'counters', [514] = 'sets', [515] = 'rows', [516] = 'made', [517] = 'tuples',
    }
    for id, name in pairs(ours) do
        local by_id, by_name = box.space[id], box.space[name]
        if by_id ~= nil and by_id.name ~= name or by_name ~= nil and by_name.id ~= id then
            error(('space %d or `%s` is somebody else\'s'):format(id, name))
        end
    end
end

if first then
    local kv = box.schema.space.create('kv', {id = 512, if_not_exists = true})
    kv:create_index('primary', {type = primary, parts = {{1, 'string'}}, if_not_exists = true})

    local counters = box.schema.space.create('counters', {id = 513, if_not_exists = true})
    counters:create_index('primary', {type = primary, parts = {{1, 'string'}}, if_not_exists = true})

    local sets = box.schema.space.create('sets', {id = 514, if_not_exists = true})
    box.schema.sequence.create('sets_numbers', {if_not_exists = true})
    sets:create_index('primary', {
        type = primary, parts = {{1, 'unsigned'}}, sequence = 'sets_numbers', if_not_exists = true,
    })
    sets:create_index('by_set', {parts = {{2, 'string'}}, unique = false, if_not_exists = true})

    local rows = box.schema.space.create('rows', {id = 515, if_not_exists = true})
    rows:create_index('primary', {type = primary, parts = {{1, 'unsigned'}}, if_not_exists = true})
    rows:create_index('by_group', {parts = {{2, 'unsigned'}}, unique = false, if_not_exists = true})

    local tuples = box.schema.space.create('tuples', {id = 517, if_not_exists = true})
    tuples:create_index('primary', {type = primary, parts = {{1, 'unsigned'}}, if_not_exists = true})

    if not attached then
        local once = {if_not_exists = true}
        box.schema.user.grant('guest', 'read,write,execute,create', 'universe', nil, once)
        box.schema.user.grant('guest', 'replication', nil, nil, once)
        -- Numbers of spaces that others make, as SQL does, come after ours.
        box.space._schema:replace({'max_id', 600})
    end
    -- The last thing that is made: who sees it has everything before it.
    box.schema.space.create('made', {id = 516, if_not_exists = true})
end

function lab_set_many(pairs)
    local kv = box.space.kv
    box.begin()
    for at = 1, #pairs, 2 do
        kv:replace({pairs[at], pairs[at + 1]})
    end
    box.commit()
end

function lab_is_ready()
    if box.space.made == nil or box.info.status ~= 'running' then
        return false
    end
    for _, node in pairs(box.info.replication) do
        if node.upstream ~= nil and node.upstream.status ~= 'follow' then
            return false
        end
    end
    return true
end

function lab_settings()
    local all = {version = _TARANTOOL}
    for name, value in pairs(box.cfg) do
        all[name] = type(value) == 'table' and json.encode(value) or tostring(value)
    end
    return all
end

local snapshot_under_way = false

function lab_begin_snapshot()
    snapshot_under_way = true
    fiber.create(function()
        pcall(box.snapshot)
        snapshot_under_way = false
    end)
end

function lab_snapshot_under_way()
    return snapshot_under_way
end
