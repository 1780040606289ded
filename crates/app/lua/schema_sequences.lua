-- box.schema.sequence and box.sequence.
local ladon = ...

local definitions = ladon.definitions
local check_options, insert_numbered = definitions.check_options, definitions.insert_numbered
local drop_privileges, TRIES = definitions.drop_privileges, definitions.TRIES

local sequence_methods = {}
local Sequence = {__index = sequence_methods}

local SEQUENCE_OPTIONS = {
    start = 'number,cdata', min = 'number,cdata', max = 'number,cdata', step = 'number,cdata',
    cache = 'number,cdata', cycle = 'boolean', if_not_exists = 'boolean', name = 'string',
}

local function sequence_of(tuple)
    return setmetatable({
        id = tuple[1], uid = tuple[2], name = tuple[3], step = tuple[4], min = tuple[5],
        max = tuple[6], start = tuple[7], cache = tuple[8], cycle = tuple[9],
    }, Sequence)
end

local function sequence_tuple(id, owner, name, options)
    local step = options.step or 1
    local is_up = step > 0
    local least = options.min or (is_up and 1 or -9223372036854775807LL - 1)
    local most = options.max or (is_up and 9223372036854775807ULL or -1)
    local start = options.start or (is_up and least or most)
    return {id, owner, name, step, least, most, start, options.cache or 0, options.cycle or false}
end

function box.schema.sequence.create(name, options)
    options = check_options(options, SEQUENCE_OPTIONS)
    local found = box.space._sequence.index.name:get({name})
    if found ~= nil then
        if options.if_not_exists then
            return sequence_of(found), 'not created'
        end
        box.error(box.error.SEQUENCE_EXISTS, name)
    end
    local owner = ladon.user()
    local id = insert_numbered(box.space._sequence, 1, function(id)
        return sequence_tuple(id, owner, name, options)
    end)
    return box.sequence[name], 'created'
end

function box.schema.sequence.alter(name, options)
    options = check_options(options, SEQUENCE_OPTIONS)
    local of = box.sequence[name]
    if of == nil then
        box.error(box.error.NO_SUCH_SEQUENCE, name)
    end
    local merged = {}
    for key, value in pairs(of) do
        merged[key] = value
    end
    for key, value in pairs(options) do
        merged[key] = value
    end
    box.space._sequence:replace(sequence_tuple(of.id, of.uid, options.name or of.name, merged))
end

function box.schema.sequence.drop(name, options)
    local of = box.sequence[name]
    if of == nil then
        if options and options.if_exists then
            return
        end
        box.error(box.error.NO_SUCH_SEQUENCE, name)
    end
    ladon.as_admin(function()
        drop_privileges('sequence', of.id)
    end)
    box.space._sequence_data:delete({of.id})
    box.space._sequence:delete({of.id})
end

-- The next number. Two fibers never get the same one: the row is compared and changed in a
-- transaction.
function sequence_methods.next(of)
    local data = box.space._sequence_data
    for _ = 1, TRIES do
        local before = data:get({of.id})
        local value
        if before == nil then
            value = of.start
        else
            value = before[2] + of.step
            local is_beyond = of.step > 0 and value > of.max or of.step < 0 and value < of.min
            if is_beyond then
                if not of.cycle then
                    box.error(box.error.SEQUENCE_OVERFLOW, of.name)
                end
                value = of.step > 0 and of.min or of.max
            end
        end
        local is_ok, err
        if before == nil then
            is_ok, err = pcall(data.insert, data, {of.id, value})
        else
            data:replace({of.id, value})
            is_ok = true
        end
        if is_ok then
            return value
        end
    end
    error('the sequence is too busy', 0)
end

function sequence_methods.current(of)
    local now = box.space._sequence_data:get({of.id})
    if now == nil then
        box.error(box.error.SEQUENCE_NOT_STARTED, of.name)
    end
    return require('ffi').cast('int64_t', now[2])
end

function sequence_methods.set(of, value)
    box.space._sequence_data:replace({of.id, value})
end

function sequence_methods.reset(of)
    box.space._sequence_data:delete({of.id})
end

function sequence_methods.alter(of, options)
    box.schema.sequence.alter(of.name, options)
end

function sequence_methods.drop(of)
    box.schema.sequence.drop(of.name)
end

box.sequence = setmetatable({}, {
    __index = function(_, name)
        local space = box.space._sequence
        local found = type(name) == 'number' and space:get({name}) or
            type(name) == 'string' and space.index.name:get({name})
        return found and sequence_of(found) or nil
    end,
})
