-- fun: iterators, and functions over them.
--
-- An iterator is an object of three parts, those of Lua's generic `for`: a generator, its parameter
-- and a state. generator(parameter, state) answers the next state and the values, or nil at the end.
-- Nothing runs before values are asked for, and an iterator can be walked through again.

local iterator_methods = {}
local iterator_meta = {__index = iterator_methods}
local exports = {}

local function new(generator, parameter, state)
    return setmetatable({gen = generator, param = parameter, state = state}, iterator_meta),
        parameter, state
end

iterator_meta.__call = function(self, parameter, state)
    return self.gen(parameter, state)
end

iterator_meta.__tostring = function()
    return '<generator>'
end

local function nothing()
    return nil
end

local function array_next(array, place)
    place = place + 1
    local value = array[place]
    if value == nil then
        return nil
    end
    return place, value
end

local function text_next(text, place)
    if place >= #text then
        return nil
    end
    place = place + 1
    return place, text:sub(place, place)
end

local pairs_next = pairs({})

-- What pairs answers, so that the state is the key: nil is never the state of a value.
local function map_next(map, key)
    local value
    key, value = pairs_next(map, key)
    return key, key, value
end

-- The three parts of whatever can be walked through.
local function parts(object, parameter, state)
    local kind = type(object)
    if kind == 'table' then
        if getmetatable(object) == iterator_meta then
            return object.gen, object.param, object.state
        end
        if #object > 0 then
            return array_next, object, 0
        end
        local generator, param, start = pairs(object)
        if generator == pairs_next then
            return map_next, object, start
        end
        return generator, param, start
    elseif kind == 'function' then
        return object, parameter, state
    elseif kind == 'string' then
        if object == '' then
            return nothing, nil, nil
        end
        return text_next, object, 0
    elseif kind == 'cdata' then
        return object, parameter, state
    end
    if object == nil then
        error('invalid iterator', 3)
    end
    error(('object %s of type "%s" is not iterable'):format(tostring(object), kind), 3)
end

function exports.iter(object, parameter, state)
    return new(parts(object, parameter, state))
end

function exports.wrap(generator, parameter, state)
    return new(generator, parameter, state)
end

function iterator_methods:unwrap()
    return self.gen, self.param, self.state
end

-- A function of an iterator alone: fun.NAME(object) and object:NAME().
local function define_plain(names, func)
    for name in names:gmatch('%S+') do
        exports[name] = function(generator, parameter, state)
            return func(parts(generator, parameter, state))
        end
        iterator_methods[name] = function(self)
            return func(self.gen, self.param, self.state)
        end
    end
end

-- A function with an argument in front: fun.NAME(argument, object) and object:NAME(argument).
local function define(names, func)
    for name in names:gmatch('%S+') do
        exports[name] = function(argument, generator, parameter, state)
            return func(argument, parts(generator, parameter, state))
        end
        iterator_methods[name] = function(self, argument)
            return func(argument, self.gen, self.param, self.state)
        end
    end
end

-- A function with two arguments in front.
local function define_two(names, func)
    for name in names:gmatch('%S+') do
        exports[name] = function(first, second, generator, parameter, state)
            return func(first, second, parts(generator, parameter, state))
        end
        iterator_methods[name] = function(self, first, second)
            return func(first, second, self.gen, self.param, self.state)
        end
    end
end

-- Calls func with the values of each step, until it answers true or there are no more.
local function walk(generator, parameter, state, func)
    local function step(next_state, ...)
        state = next_state
        return next_state == nil or func(...)
    end
    while not step(generator(parameter, state)) do
    end
end

define('each for_each foreach', function(func, generator, parameter, state)
    walk(generator, parameter, state, function(...)
        func(...)
    end)
end)

-- Generators --------------------------------------------------------------------------------------

local function range_up(limits, value)
    value = value + limits[2]
    if value > limits[1] then
        return nil
    end
    return value, value
end

local function range_down(limits, value)
    value = value + limits[2]
    if value < limits[1] then
        return nil
    end
    return value, value
end

function exports.range(start, stop, step)
    if step == nil then
        if stop == nil then
            if start == 0 then
                return new(nothing, nil, nil)
            end
            stop = start
            start = stop > 0 and 1 or -1
        end
        step = start <= stop and 1 or -1
    end
    assert(type(start) == 'number', 'start must be a number')
    assert(type(stop) == 'number', 'stop must be a number')
    assert(type(step) == 'number', 'step must be a number')
    assert(step ~= 0, 'step must not be zero')
    return new(step > 0 and range_up or range_down, {stop, step}, start - step)
end

local function repeat_all(values, state)
    return state + 1, unpack(values, 1, values.n)
end

local function repeat_one(value, state)
    return state + 1, value
end

local function duplicate(...)
    if select('#', ...) <= 1 then
        return new(repeat_one, (...), 0)
    end
    return new(repeat_all, {n = select('#', ...), ...}, 0)
end

exports.duplicate, exports.replicate, exports.xrepeat = duplicate, duplicate, duplicate

function exports.tabulate(func)
    return new(function(_, state)
        return state + 1, func(state)
    end, nil, 0)
end

function exports.zeros()
    return new(repeat_one, 0, 0)
end

function exports.ones()
    return new(repeat_one, 1, 0)
end

function exports.rands(low, high)
    if low == nil and high == nil then
        return new(function()
            return 0, math.random()
        end, 0, 0)
    end
    assert(type(low) == 'number', 'invalid first arg to rands')
    if high == nil then
        low, high = 0, low
    else
        assert(type(high) == 'number', 'invalid second arg to rands')
    end
    assert(low < high, 'empty interval')
    return new(function()
        return 0, math.random(low, high - 1)
    end, nil, 0)
end

-- Slices ------------------------------------------------------------------------------------------

define('nth', function(place, generator, parameter, state)
    assert(place > 0, 'invalid first argument to nth')
    local result = {n = 0}
    walk(generator, parameter, state, function(...)
        place = place - 1
        if place <= 0 then
            result = {n = select('#', ...), ...}
            return true
        end
    end)
    return unpack(result, 1, result.n)
end)

local function head_values(state, ...)
    if state == nil then
        error('head: iterator is empty', 3)
    end
    return ...
end

define_plain('head car', function(generator, parameter, state)
    return head_values(generator(parameter, state))
end)

define_plain('tail cdr', function(generator, parameter, state)
    state = generator(parameter, state)
    if state == nil then
        return new(nothing, nil, nil)
    end
    return new(generator, parameter, state)
end)

-- Puts a new state in front of the values, or ends with nil.
local function with_state(make, state, ...)
    if state == nil then
        return nil
    end
    return make(state), ...
end

local function take_n(count, generator, parameter, state)
    assert(count >= 0, 'invalid first argument to take_n')
    return new(function(_, at)
        if at[1] >= count then
            return nil
        end
        local taken = at[1] + 1
        return with_state(function(inner)
            return {taken, inner}
        end, generator(parameter, at[2]))
    end, nil, {0, state})
end

local function take_while(predicate, generator, parameter, state)
    assert(type(predicate) == 'function', 'invalid first argument to take_while')
    local function step(next_state, ...)
        if next_state == nil or not predicate(...) then
            return nil
        end
        return next_state, ...
    end
    return new(function(_, at)
        return step(generator(parameter, at))
    end, nil, state)
end

define('take_n', take_n)
define('take_while', take_while)
define('take', function(what, generator, parameter, state)
    if type(what) == 'number' then
        return take_n(what, generator, parameter, state)
    end
    return take_while(what, generator, parameter, state)
end)

local function drop_n(count, generator, parameter, state)
    assert(count >= 0, 'invalid first argument to drop_n')
    for _ = 1, count do
        state = generator(parameter, state)
        if state == nil then
            return new(nothing, nil, nil)
        end
    end
    return new(generator, parameter, state)
end

local function drop_while(predicate, generator, parameter, state)
    assert(type(predicate) == 'function', 'invalid first argument to drop_while')
    local before = state
    local function drops(next_state, ...)
        if next_state == nil then
            before = nil
            return false, true
        elseif not predicate(...) then
            return false
        end
        before = next_state
        return true
    end
    while true do
        local again, empty = drops(generator(parameter, before))
        if empty then
            return new(nothing, nil, nil)
        elseif not again then
            return new(generator, parameter, before)
        end
    end
end

define('drop_n', drop_n)
define('drop_while', drop_while)
define('drop', function(what, generator, parameter, state)
    if type(what) == 'number' then
        return drop_n(what, generator, parameter, state)
    end
    return drop_while(what, generator, parameter, state)
end)

define('split split_at span', function(what, generator, parameter, state)
    if type(what) == 'number' then
        return (take_n(what, generator, parameter, state)),
            (drop_n(what, generator, parameter, state))
    end
    return (take_while(what, generator, parameter, state)),
        (drop_while(what, generator, parameter, state))
end)

-- Indexing ----------------------------------------------------------------------------------------

define('index index_of elem_index', function(wanted, generator, parameter, state)
    local place, found = 0, nil
    walk(generator, parameter, state, function(value)
        place = place + 1
        if value == wanted then
            found = place
            return true
        end
    end)
    return found
end)

define('indexes indices elem_indexes elem_indices', function(wanted, generator, parameter, state)
    return new(function(_, at)
        local place, inner, value = at[1], at[2], nil
        while true do
            inner, value = generator(parameter, inner)
            if inner == nil then
                return nil
            end
            place = place + 1
            if value == wanted then
                return {place, inner}, place
            end
        end
    end, nil, {0, state})
end)

-- Filtering ---------------------------------------------------------------------------------------

local function filter(predicate, generator, parameter, state)
    return new(function(_, at)
        local results
        local function step(next_state, ...)
            at = next_state
            if next_state == nil then
                return true
            elseif not predicate(...) then
                return false
            end
            results = {n = select('#', ...), ...}
            return true
        end
        while not step(generator(parameter, at)) do
        end
        if at == nil then
            return nil
        end
        return at, unpack(results, 1, results.n)
    end, nil, state)
end

define('filter remove_if', filter)

define('grep', function(what, generator, parameter, state)
    local predicate = what
    if type(what) == 'string' then
        predicate = function(value)
            return string.find(value, what) ~= nil
        end
    end
    return filter(predicate, generator, parameter, state)
end)

define('partition', function(predicate, generator, parameter, state)
    return (filter(predicate, generator, parameter, state)),
        (filter(function(...)
            return not predicate(...)
        end, generator, parameter, state))
end)

-- Reducing ----------------------------------------------------------------------------------------

define_two('foldl reduce', function(func, result, generator, parameter, state)
    walk(generator, parameter, state, function(...)
        result = func(result, ...)
    end)
    return result
end)

define_plain('length', function(generator, parameter, state)
    local count = 0
    walk(generator, parameter, state, function()
        count = count + 1
    end)
    return count
end)

define_plain('is_null', function(generator, parameter, state)
    return generator(parameter, state) == nil
end)

local function is_prefix_of(first, second)
    local gen_a, param_a, state_a = parts(first)
    local gen_b, param_b, state_b = parts(second)
    while true do
        local value_a, value_b
        state_a, value_a = gen_a(param_a, state_a)
        if state_a == nil then
            return true
        end
        state_b, value_b = gen_b(param_b, state_b)
        if state_b == nil or value_a ~= value_b then
            return false
        end
    end
end

iterator_methods.is_prefix_of, exports.is_prefix_of = is_prefix_of, is_prefix_of

define('all every', function(predicate, generator, parameter, state)
    local all = true
    walk(generator, parameter, state, function(...)
        all = not not predicate(...)
        return not all
    end)
    return all
end)

define('any some', function(predicate, generator, parameter, state)
    local any = false
    walk(generator, parameter, state, function(...)
        any = not not predicate(...)
        return any
    end)
    return any
end)

define_plain('sum', function(generator, parameter, state)
    local sum = 0
    walk(generator, parameter, state, function(value)
        sum = sum + value
    end)
    return sum
end)

define_plain('product', function(generator, parameter, state)
    local product = 1
    walk(generator, parameter, state, function(value)
        product = product * value
    end)
    return product
end)

-- The value that `better` chooses over all others.
local function choose(name, better)
    return function(generator, parameter, state)
        local found = false
        local best
        walk(generator, parameter, state, function(value)
            if not found then
                found, best = true, value
            else
                best = better(best, value)
            end
        end)
        if not found then
            error(name .. ': iterator is empty', 3)
        end
        return best
    end
end

local function choose_by(name)
    return function(better, generator, parameter, state)
        return choose(name, better)(generator, parameter, state)
    end
end

local function lesser(a, b)
    return b < a and b or a
end

local function greater(a, b)
    return b > a and b or a
end

define_plain('min minimum', choose('min', lesser))
define_plain('max maximum', choose('max', greater))
define('min_by minimum_by', choose_by('min'))
define('max_by', choose_by('max'))

define_plain('totable', function(generator, parameter, state)
    local result = {}
    walk(generator, parameter, state, function(value)
        result[#result + 1] = value
    end)
    return result
end)

define_plain('tomap', function(generator, parameter, state)
    local result = {}
    walk(generator, parameter, state, function(key, value)
        result[key] = value
    end)
    return result
end)

-- Transforming ------------------------------------------------------------------------------------

define('map', function(func, generator, parameter, state)
    local function step(next_state, ...)
        if next_state == nil then
            return nil
        end
        return next_state, func(...)
    end
    return new(function(_, at)
        return step(generator(parameter, at))
    end, nil, state)
end)

define_plain('enumerate', function(generator, parameter, state)
    return new(function(_, at)
        local place = at[1]
        return (function(inner, ...)
            if inner == nil then
                return nil
            end
            return {place + 1, inner}, place, ...
        end)(generator(parameter, at[2]))
    end, nil, {1, state})
end)

define('intersperse', function(between, generator, parameter, state)
    return new(function(_, at)
        if at[1] then
            return {false, at[2]}, between
        end
        return with_state(function(inner)
            return {true, inner}
        end, generator(parameter, at[2]))
    end, nil, {false, state})
end)

-- How many arguments there are: what an iterator's function returned last is one, not three.
local function count_arguments(...)
    local count = select('#', ...)
    if count >= 3 then
        local last, parameter, state = select(count - 2, ...)
        if getmetatable(last) == iterator_meta and last.param == parameter and
           last.state == state then
            return count - 2
        end
    end
    return count
end

-- Composing ---------------------------------------------------------------------------------------

local function zip(...)
    local all = {}
    for place = 1, count_arguments(...) do
        local generator, parameter, state = parts((select(place, ...)))
        all[place] = {generator, parameter, state}
    end
    if #all == 0 then
        return new(nothing, nil, nil)
    end
    local start = {}
    for place, one in ipairs(all) do
        start[place] = one[3]
    end
    return new(function(_, at)
        local states, values = {}, {}
        for place, one in ipairs(all) do
            local state, value = one[1](one[2], at[place])
            if state == nil then
                return nil
            end
            states[place], values[place] = state, value
        end
        return states, unpack(values, 1, #all)
    end, nil, start)
end

local function chain(...)
    local all = {}
    for place = 1, count_arguments(...) do
        local generator, parameter, state = parts((select(place, ...)))
        all[place] = {generator, parameter, state}
    end
    if #all == 0 then
        return new(nothing, nil, nil)
    end
    return new(function(_, at)
        local place, inner = at[1], at[2]
        local results
        local function keep(state, ...)
            results = {n = select('#', ...), ...}
            return state
        end
        while true do
            inner = keep(all[place][1](all[place][2], inner))
            if inner ~= nil then
                return {place, inner}, unpack(results, 1, results.n)
            end
            place = place + 1
            if all[place] == nil then
                return nil
            end
            inner = all[place][3]
        end
    end, nil, {1, all[1][3]})
end

for name, func in pairs({zip = zip, chain = chain}) do
    exports[name] = func
    iterator_methods[name] = func
end

define_plain('cycle', function(generator, parameter, state)
    local function answer(next_state, ...)
        if next_state == nil then
            return generator(parameter, state)
        end
        return next_state, ...
    end
    return new(function(_, at)
        return answer(generator(parameter, at))
    end, nil, state)
end)

-- Operators ---------------------------------------------------------------------------------------

local operator = {
    lt = function(a, b) return a < b end,
    le = function(a, b) return a <= b end,
    eq = function(a, b) return a == b end,
    ne = function(a, b) return a ~= b end,
    ge = function(a, b) return a >= b end,
    gt = function(a, b) return a > b end,
    add = function(a, b) return a + b end,
    div = function(a, b) return a / b end,
    floordiv = function(a, b) return math.floor(a / b) end,
    intdiv = function(a, b)
        local quotient = a / b
        return a >= 0 and math.floor(quotient) or math.ceil(quotient)
    end,
    mod = function(a, b) return a % b end,
    mul = function(a, b) return a * b end,
    neq = function(a) return -a end,
    unm = function(a) return -a end,
    pow = function(a, b) return a ^ b end,
    sub = function(a, b) return a - b end,
    truediv = function(a, b) return a / b end,
    concat = function(a, b) return a .. b end,
    len = function(a) return #a end,
    length = function(a) return #a end,
    land = function(a, b) return a and b end,
    lor = function(a, b) return a or b end,
    lnot = function(a) return not a end,
    truth = function(a) return not not a end,
}
exports.operator, exports.op = operator, operator

-- Called itself, the module puts all of its functions into the globals.
return setmetatable(exports, {
    __call = function()
        for name, func in pairs(exports) do
            _G[name] = func
        end
    end,
})
