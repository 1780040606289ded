-- Runs a suite's Lua script in a real tarantool that nobody but the stand-in reaches: writes down
-- where the script wants to listen, and what it defines.
local folder = os.getenv('STAND_IN_FOLDER')
local fio = require('fio')
local msgpack = require('msgpack')
local console = require('console')

local tuples_max = 2000
local system = {
    '_space', '_index', '_user', '_priv', '_func', '_sequence', '_space_sequence', '_truncate',
}

local function write(name, text)
    local file = fio.open(fio.pathjoin(folder, name .. '.part'),
        {'O_WRONLY', 'O_CREAT', 'O_TRUNC'}, tonumber('644', 8))
    file:write(text)
    file:close()
    fio.rename(fio.pathjoin(folder, name .. '.part'), fio.pathjoin(folder, name))
end

-- A tuple's key, and the tuple as the text that its MessagePack is: it may have maps as keys.
local function row(space, tuple)
    local key = {}
    for _, part in ipairs(space.index[0].parts) do
        table.insert(key, tuple[part.fieldno])
    end
    return {key, msgpack.encode(tuple)}
end

-- Everything that the stand-in copies, as MessagePack.
function stand_in_dump(name)
    local all = {}
    for _, space in ipairs(system) do
        all[space] = box.space[space]:select()
    end
    local data = setmetatable({}, {__serialize = 'map'})
    for _, tuple in box.space._space:pairs({512}, {iterator = 'GE'}) do
        local space = box.space[tuple.id]
        if space and space.index[0] then
            local rows = {}
            for _, each in ipairs(space:select({}, {limit = tuples_max})) do
                table.insert(rows, row(space, each))
            end
            data[tostring(tuple.id)] = rows
        end
    end
    all.data = data
    write(name, msgpack.encode(all))
    return true
end

local based = false
local function wrap(configure)
    return function(_, options)
        options = table.copy(options or {})
        if options.listen then
            write('listen', tostring(options.listen))
            options.listen = nil
        end
        if not based then
            options.work_dir = folder
            options.pid_file = nil
            options.memtx_use_mvcc_engine = nil
            options.auth_type = nil
        end
        local result = configure(options)
        if not based then
            based = true
            stand_in_dump('base')
            local after = getmetatable(box.cfg)
            local again = after.__call
            after.__call = wrap(function(changed) return again(box.cfg, changed) end)
        end
        return result
    end
end

local load = box.cfg
rawset(box, 'cfg', setmetatable({}, {__call = wrap(function(options) return load(options) end)}))

local listen = console.listen
console.listen = function(where)
    write('console', tostring(where))
    return listen('unix/:' .. fio.pathjoin(folder, 'console.sock'))
end

dofile(arg[1])

listen('unix/:' .. fio.pathjoin(folder, 'dump.sock'))
stand_in_dump('first')
