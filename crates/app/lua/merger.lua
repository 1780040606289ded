-- merger: sorted sources of tuples as one
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/merger/).
local ladon = ...
local ffi = require('ffi')

local NEW_USAGE = 'merger.new(key_def, {source, source, ...}[, {reverse = <boolean> or <nil>}])'
local SELECT_USAGE = 'merge_source:select([{buffer = <cdata<struct ibuf>> or <nil>,'
    .. ' limit = <number> or <nil>}])'

local merger = {}

local function bad(usage, name)
    error(name and ('Bad param "%s", use: %s'):format(name, usage)
        or 'Bad params, use: ' .. usage, 0)
end

local function is_buffer(value)
    return type(value) == 'cdata' and ffi.istype('struct ibuf', value)
end

local function as_tuple(value)
    if ladon.is_tuple(value) then
        return value
    elseif type(value) ~= 'table' then
        error('A tuple or a table expected, got ' .. type(value), 0)
    end
    return box.tuple.new(value)
end

-- Sources: tables with `next`, which answers a tuple, or nil at the end.
local methods = {}
local Source = {
    __index = methods,
    __tostring = function()
        return 'merge_source'
    end,
}

local function new_source(next_tuple)
    return setmetatable({next = next_tuple}, Source)
end

-- What a program's iterator answers, piece by piece.
local function fetcher(gen, param, state)
    return function()
        local following, chunk = gen(param, state)
        -- At the end the place is kept: there may be more later. box.NULL is a place.
        if type(following) == 'nil' then
            return nil
        end
        state = following
        return chunk == nil and box.NULL or chunk
    end
end

local function check_iterator(name, gen, param, state)
    -- An iterator of `fun` has the three of them.
    if type(gen) == 'table' and gen.gen ~= nil then
        gen, param, state = gen.gen, gen.param, gen.state
    end
    if type(gen) ~= 'function' and not (type(gen) == 'table' and getmetatable(gen)
        and getmetatable(gen).__call) then
        error(('Usage: merger.%s(gen, param, state)'):format(name), 0)
    end
    return fetcher(gen, param, state)
end

function merger.new_tuple_source(...)
    local fetch = check_iterator('new_tuple_source', ...)
    return new_source(function()
        local value = fetch()
        if value ~= nil or type(value) == 'cdata' then
            return as_tuple(value)
        end
    end)
end

function merger.new_table_source(...)
    local fetch = check_iterator('new_table_source', ...)
    local chunk, at = {}, 0
    return new_source(function()
        while at >= #chunk do
            local value = fetch()
            if value == nil and type(value) ~= 'cdata' then
                return nil
            elseif type(value) ~= 'table' then
                error('Expected <state>, <table>', 0)
            end
            chunk, at = value, 0
        end
        at = at + 1
        return as_tuple(chunk[at])
    end)
end

-- Takes one value of MessagePack out of a buffer, by a function of its place and its bytes.
local function take(buffer, decode)
    local is_good, value, after = pcall(decode, buffer.rpos, buffer:size())
    if not is_good then
        error('Unexpected msgpack buffer end', 0)
    end
    local start = buffer.rpos
    buffer.rpos = after
    return value, start, tonumber(after - start)
end

function merger.new_buffer_source(...)
    local fetch = check_iterator('new_buffer_source', ...)
    local msgpack = require('msgpack')
    local buffer, left = nil, 0
    return new_source(function()
        while left == 0 do
            buffer = fetch()
            if buffer == nil and type(buffer) ~= 'cdata' then
                return nil
            elseif not is_buffer(buffer) then
                error('Expected <state>, <buffer>', 0)
            end
            left = take(buffer, msgpack.decode_array_header)
        end
        left = left - 1
        local _, start, length = take(buffer, msgpack.decode)
        return ladon.tuple_of_bytes(ffi.string(start, length))
    end)
end

-- One piece, and no more.
local function once(value)
    return function(_, is_given)
        if not is_given then
            return true, value
        end
    end, nil, false
end

function merger.new_source_frombuffer(buffer)
    if not is_buffer(buffer) then
        error('Usage: merger.new_source_frombuffer(<cdata<struct ibuf>>)', 0)
    end
    return merger.new_buffer_source(once(buffer))
end

function merger.new_source_fromtable(rows)
    if type(rows) ~= 'table' then
        error('Usage: merger.new_source_fromtable(<table>)', 0)
    end
    return merger.new_table_source(once(rows))
end

-- A heap of the sources' next tuples.

local function sift_down(heap, before, at)
    while true do
        local least, left = at, 2 * at
        if left <= #heap and before(heap[left], heap[least]) then
            least = left
        end
        if left < #heap and before(heap[left + 1], heap[least]) then
            least = left + 1
        end
        if least == at then
            return
        end
        heap[at], heap[least] = heap[least], heap[at]
        at = least
    end
end

-- A source of the tuples of all sources, in the order of the key. Tuples with equal keys come in
-- the order of their sources.
function merger.new(key_def, sources, options)
    if type(key_def) ~= 'cdata' or not ffi.istype('struct key_def', key_def)
        or type(sources) ~= 'table' or options ~= nil and type(options) ~= 'table' then
        bad(NEW_USAGE)
    end
    local reverse = options and options.reverse
    if reverse ~= nil and type(reverse) ~= 'boolean' then
        bad(NEW_USAGE, 'reverse')
    end
    for _, source in ipairs(sources) do
        if getmetatable(source) ~= Source then
            bad(NEW_USAGE)
        end
    end
    local function before(left, right)
        local order = key_def:compare(left.tuple, right.tuple)
        if order == 0 then
            return left.number < right.number
        end
        return (order < 0) ~= (reverse or false)
    end
    local heap
    local function fill()
        heap = {}
        for number, source in ipairs(sources) do
            local tuple = source.next()
            if tuple ~= nil then
                heap[#heap + 1] = {tuple = tuple, source = source, number = number}
            end
        end
        for at = math.floor(#heap / 2), 1, -1 do
            sift_down(heap, before, at)
        end
    end
    return new_source(function()
        if heap == nil then
            fill()
        end
        local first = heap[1]
        if first == nil then
            -- The sources may have more later.
            heap = nil
            return nil
        end
        local tuple = first.tuple
        first.tuple = first.source.next()
        if first.tuple == nil then
            heap[1] = heap[#heap]
            heap[#heap] = nil
        end
        sift_down(heap, before, 1)
        return tuple
    end)
end

local function check_source(source)
    if getmetatable(source) ~= Source then
        bad(SELECT_USAGE)
    end
end

-- A table of the tuples; or, with a buffer, their array as MessagePack at its end, and its bytes.
function methods.select(source, options)
    check_source(source)
    if options ~= nil and type(options) ~= 'table' then
        bad(SELECT_USAGE)
    end
    local buffer, limit = options and options.buffer, options and options.limit
    -- A null pointer is no buffer, though it equals nil.
    if type(buffer) ~= 'nil' and not is_buffer(buffer) then
        bad(SELECT_USAGE, 'buffer')
    elseif limit ~= nil and type(limit) ~= 'number' then
        bad(SELECT_USAGE, 'limit')
    end
    local tuples = {}
    while limit == nil or #tuples < limit do
        local tuple = source.next()
        if tuple == nil then
            break
        end
        tuples[#tuples + 1] = tuple
    end
    if buffer == nil then
        return tuples
    end
    return require('msgpack').encode(tuples, buffer)
end

function methods.pairs(source)
    check_source(source)
    local function gen(of, place)
        local tuple = of.next()
        if tuple ~= nil then
            return place + 1, tuple
        end
    end
    return require('fun').wrap(gen, source, 0)
end
methods.ipairs = methods.pairs
Source.__pairs, Source.__ipairs = methods.pairs, methods.pairs

ladon.module('merger', function()
    return merger
end)
ladon.module('tuple.merger', function()
    return merger
end)
