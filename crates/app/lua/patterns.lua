-- What the library's functions may cost that take patterns.
local ladon = ...

-- Patterns whose shapes are remembered, the longest of them, and the longest whose shape is looked at.
local PATTERNS_MAX, REMEMBERED_BYTES, PATTERN_BYTES_MAX = 1000, 256, 4096
-- Bytes of a pattern that are looked at in the time of one step.
local BYTES_A_STEP = 16

local gsub, find, sub = string.gsub, string.find, string.sub
local shapes, known = {}, 0

-- How often `what` is in a text.
local function count(text, what)
    return select(2, gsub(text, what, ''))
end

-- How many parts of a pattern may take any number of places, and how many there are that may take one or none.
-- A sign that is one of a set, or escaped, is no quantifier.
local function shape_of(pattern)
    if #pattern > PATTERN_BYTES_MAX then
        return {find(pattern, '[%^%$%*%+%?%.%(%[%%%-]') and math.huge or 0, 0}
    end
    local rest = gsub(pattern, '%%(.)', function(escaped)
        return find(escaped, '[b%d]') and '*' or 'x'
    end)
    rest = gsub(rest, '%[%^?.[^%]]*%]', 'x')
    return {count(rest, '[*+-]'), count(rest, '%?')}
end

local function known_shape(pattern)
    local shape = shapes[pattern]
    if shape == nil then
        shape = shape_of(pattern)
        if #pattern <= REMEMBERED_BYTES then
            if known >= PATTERNS_MAX then
                shapes, known = {}, 0
            end
            shapes[pattern], known = shape, known + 1
        end
    end
    return shape
end

-- Steps of a match at most: each part of any length tries all places, from each beginning, unless there is
-- one (`is_anchored`).
function ladon.match_steps(text, pattern, may_be_anchored)
    local shape = known_shape(pattern)
    local is_anchored = may_be_anchored and sub(pattern, 1, 1) == '^'
    local power = shape[1] + (is_anchored and 0 or 1)
    return (#text + 1) ^ power * 2 ^ shape[2] * math.max(1, #pattern / BYTES_A_STEP)
end

-- The functions that take patterns, each behind `check(steps, text, pattern)`.
function ladon.bounded_patterns(check)
    local bounded = {}
    for _, name in ipairs({'find', 'match', 'gmatch', 'gsub'}) do
        local func, may_be_anchored = string[name], name ~= 'gmatch'
        bounded[name] = function(text, pattern, ...)
            if type(text) == 'number' then
                text = tostring(text)
            end
            if type(text) == 'string' and type(pattern) == 'string' then
                check(ladon.match_steps(text, pattern, may_be_anchored), text, pattern)
            end
            return func(text, pattern, ...)
        end
    end
    return bounded
end
