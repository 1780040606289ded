-- datetime: moments with a time zone, and intervals. The calendar, texts and zones are those of
-- src/datetime; ranges and messages are Tarantool 2.11's.
local native = ...
local ffi = require('ffi')

local datetime_type = ffi.typeof('struct datetime')
local interval_type = ffi.typeof('struct interval')

local DAY = 86400
local YEAR_MIN, YEAR_MAX = -5879610, 5879611
local DATE_MIN, DATE_MAX = '-5879610-06-22', '5879611-07-11'
local OFFSET_MIN, OFFSET_MAX = -720, 840

-- The most that an interval's fields are, either way.
local years_max = YEAR_MAX - YEAR_MIN
local days_max = years_max * 365.25
local nsec_max = 2147483647
local MOST = {
    year = years_max, month = years_max * 12, week = years_max * (365.25 / 7), day = days_max,
    hour = days_max * 24, min = days_max * 24 * 60, sec = days_max * DAY, nsec = nsec_max,
    usec = math.floor(nsec_max / 1e3), msec = math.floor(nsec_max / 1e6),
}
local INTERVAL_FIELDS = {'year', 'month', 'week', 'day', 'hour', 'min', 'sec', 'nsec'}
-- Those that have to be whole.
local WHOLE = {year = true, month = true, day = true, hour = true, min = true, sec = true}
-- What happens to days that a month has not: names and numbers.
local ADJUST = {excess = 0, none = 1, last = 2}
local ADJUST_NAMES = {[0] = 'excess', 'none', 'last'}

local ZONES = native.zones()

local function is_datetime(value)
    return ffi.istype(datetime_type, value)
end

local function is_interval(value)
    return ffi.istype(interval_type, value)
end

local function expected(of, kinds, value, level)
    error(('%s: expected %s, but received %s'):format(of, kinds, type(value)), (level or 2) + 1)
end

local function check_datetime(value, of)
    if not is_datetime(value) then
        expected(of, 'datetime', value, 3)
    end
end

local function check_table(value, of)
    if type(value) ~= 'table' then
        expected(of, 'table', value, 3)
    end
end

local function check_text(value, of)
    if type(value) ~= 'string' then
        expected(of, 'string', value, 3)
    end
end

-- `also` is one more value that is allowed.
local function check_range(value, from, to, name, also)
    if type(value) ~= 'number' then
        error(('numeric value expected, but received %s'):format(type(value)), 4)
    end
    if value == also or value >= from and value <= to then
        return value
    end
    if also ~= nil then
        error(('value %d of %s is out of allowed range [%d, %d..%d]'):format(
            value, name, also, from, to), 4)
    end
    error(('value %d of %s is out of allowed range [%d, %d]'):format(value, name, from, to), 4)
end

local function optional(object, name, from, to, also)
    local value = object[name]
    if value ~= nil then
        return check_range(value, from, to, name, also)
    end
end

-- Nanoseconds, if one of the three is given, and how many of them are.
local function subsecond_of(object)
    local usec, msec, nsec = object.usec, object.msec, object.nsec
    local count = (usec ~= nil and 1 or 0) + (msec ~= nil and 1 or 0) + (nsec ~= nil and 1 or 0)
    if count > 1 then
        error('only one of nsec, usec or msecs may be defined simultaneously', 3)
    end
    return nsec, usec, msec, count > 0
end

local function nanoseconds_of(object)
    local nsec, usec, msec, is_given = subsecond_of(object)
    if usec ~= nil then
        nsec = check_range(usec, 0, 1e6, 'usec') * 1e3
    elseif msec ~= nil then
        nsec = check_range(msec, 0, 1e3, 'msec') * 1e6
    elseif nsec ~= nil then
        check_range(nsec, 0, 1e9, 'nsec')
    end
    return nsec, is_given
end

local function offset_of(value)
    if type(value) == 'string' then
        local minutes = native.parse_offset(value)
        if minutes == nil then
            error(('invalid time-zone format %s'):format(value), 3)
        end
        value = minutes
    elseif type(value) ~= 'number' then
        error(('tzoffset: string or number expected, but received %s'):format(tostring(value)), 3)
    end
    return check_range(value, OFFSET_MIN, OFFSET_MAX, 'tzoffset')
end

-- Minutes and number of a zone by name, at a moment.
local function zone_of(name, epoch)
    check_text(name, 'parse_tzname()')
    local minutes, number = native.zone(name, epoch)
    if minutes == nil then
        error(("could not parse '%s'%s"):format(name, number), 3)
    end
    return minutes, number
end

-- The fields of a date and a time that a table has.
local function fields_of(object)
    return {
        year = optional(object, 'year', YEAR_MIN, YEAR_MAX),
        month = optional(object, 'month', 1, 12),
        day = optional(object, 'day', 1, 31, -1),
        hour = optional(object, 'hour', 0, 23),
        min = optional(object, 'min', 0, 59),
        sec = optional(object, 'sec', 0, 60),
    }
end

-- Days since 1970. The day -1 is the month's last.
local function day_of(year, month, day)
    local last = native.days_in_month(year, month)
    if day < 0 then
        day = last
    elseif day > last then
        error(('invalid number of days %d in month %d for %d'):format(day, month, year), 3)
    end
    local found = native.day(year, month, day)
    if found == nil then
        error(('date %4d-%02d-%02d is invalid'):format(year, month, day), 3)
    end
    return found
end

-- Seconds and nanoseconds of a timestamp.
local function timestamp_of(timestamp, fields, nsec, has_nsec)
    if fields.year or fields.month or fields.day then
        error('timestamp is not allowed if year/month/day provided', 3)
    elseif fields.hour or fields.min or fields.sec then
        error('timestamp is not allowed if hour/min/sec provided', 3)
    elseif type(timestamp) ~= 'number' then
        error(("bad timestamp ('number' expected, got '%s')"):format(type(timestamp)), 3)
    elseif timestamp ~= timestamp or math.abs(timestamp) > 2147483647 * DAY then
        error(('timestamp %s is out of range'):format(tostring(timestamp)), 3)
    end
    local seconds = math.floor(timestamp)
    local fraction = timestamp - seconds
    if not has_nsec then
        nsec = fraction * 1e9
    elseif fraction ~= 0 then
        error('only integer values allowed in timestamp if nsec, usec, or msecs provided', 3)
    end
    return seconds, nsec
end

local function raw(epoch, nsec, tzoffset, tzindex)
    return datetime_type(epoch, nsec, tzoffset, tzindex)
end

local function copy(moment)
    return raw(moment.epoch, moment.nsec, moment.tzoffset, moment.tzindex)
end

local function datetime_new(object)
    if object == nil then
        return raw(0, 0, 0, 0)
    end
    check_table(object, 'datetime.new()')
    local fields = fields_of(object)
    local nsec, has_nsec = nanoseconds_of(object)
    local base, seconds = 0, 0
    if object.timestamp ~= nil then
        seconds, nsec = timestamp_of(object.timestamp, fields, nsec, has_nsec)
    end
    local tzoffset, tzindex = 0, 0
    if object.tzoffset ~= nil then
        tzoffset = offset_of(object.tzoffset)
    end
    if fields.year or fields.month or fields.day then
        base = DAY * day_of(fields.year or 1970, fields.month or 1, fields.day or 1)
    end
    if object.timestamp == nil then
        seconds = (fields.hour or 0) * 3600 + (fields.min or 0) * 60 + (fields.sec or 0)
    end
    if object.tz ~= nil then
        tzoffset, tzindex = zone_of(object.tz, base)
    end
    return raw(base + seconds - tzoffset * 60, nsec or 0, tzoffset, tzindex)
end

local function local_seconds(moment)
    return moment.epoch + moment.tzoffset * 60
end

local function local_day(moment)
    return math.floor(local_seconds(moment) / DAY)
end

local function set(moment, object)
    check_datetime(moment, 'datetime.set()')
    check_table(object, 'datetime.set()')
    local fields = fields_of(object)
    local nsec, has_nsec = nanoseconds_of(object)
    local tzoffset, tzindex = moment.tzoffset, moment.tzindex
    if object.tzoffset ~= nil then
        tzoffset = offset_of(object.tzoffset)
    end
    local seconds
    if object.timestamp ~= nil then
        seconds, nsec = timestamp_of(object.timestamp, fields, nsec, has_nsec)
    else
        local day, of_day = local_day(moment), local_seconds(moment) % DAY
        if fields.year or fields.month or fields.day then
            local year, month, of_month = native.date(day)
            day = day_of(fields.year or year, fields.month or month, fields.day or of_month)
        end
        local hour = fields.hour or math.floor(of_day / 3600)
        local minute = fields.min or math.floor(of_day / 60) % 60
        seconds = day * DAY + hour * 3600 + minute * 60 + (fields.sec or of_day % 60)
    end
    if object.tz ~= nil then
        tzoffset, tzindex = zone_of(object.tz, seconds)
    end
    moment.epoch = seconds - tzoffset * 60
    moment.nsec = nsec or moment.nsec
    moment.tzoffset, moment.tzindex = tzoffset, tzindex
    return moment
end

-- An interval of a table, or the interval itself.
local function interval_of(object)
    if is_interval(object) then
        return object
    end
    local made = interval_type()
    made.adjust = ADJUST[object.adjust] or ADJUST.none
    local nsec, usec, msec = subsecond_of(object)
    local given = {nsec = nsec, usec = usec, msec = msec}
    for _, name in ipairs({
        'year', 'month', 'week', 'day', 'hour', 'min', 'sec', 'nsec', 'usec', 'msec',
    }) do
        local value = given[name] or object[name]
        if value ~= nil then
            if type(value) ~= 'number' then
                error(('numeric value expected, but received %s'):format(type(value)), 3)
            end
            if not (value >= -MOST[name] and value <= MOST[name]) then
                error(('value %s of %s is out of allowed range [%s, %s]'):format(
                    value, name, -MOST[name], MOST[name]), 3)
            end
            if WHOLE[name] and value % 1 ~= 0 then
                error(('%s: integer value expected, but received %s'):format(name, type(value)), 3)
            end
            if name == 'usec' then
                made.nsec = value * 1e3
            elseif name == 'msec' then
                made.nsec = value * 1e6
            else
                made[name] = value
            end
        end
    end
    return made
end

local function interval_new(object)
    if object == nil then
        return interval_of({})
    end
    check_table(object, 'interval.new()')
    return interval_of(object)
end

-- Changes the moment.
local function shift(moment, direction, interval)
    local is_done, is_end = native.add(moment, direction, interval)
    if is_done then
        return moment
    end
    error(('%s makes date %s allowed %s'):format(
        direction > 0 and 'addition' or 'subtraction',
        is_end and 'greater than maximum' or 'less than minimum',
        is_end and DATE_MAX or DATE_MIN), 3)
end

-- Field by field, as whole numbers that a field may be beyond.
local function combined(left, right, direction, what)
    local made = interval_type()
    made.adjust = left.adjust
    for _, name in ipairs(INTERVAL_FIELDS) do
        local value = left[name] + direction * right[name]
        local most = MOST[name]
        if value < -most or value > most then
            error(('%s moves value %s of %s out of allowed range [%s, %s]'):format(
                what, value, name, -most, most), 3)
        end
        made[name] = value
    end
    return made
end

-- The local fields of a moment, as an interval.
local function parts_of(moment)
    local seconds = local_seconds(moment)
    local made = interval_type()
    made.adjust = ADJUST.none
    made.year, made.month, made.day = native.date(local_day(moment))
    made.hour, made.min = math.floor(seconds / 3600) % 24, math.floor(seconds / 60) % 60
    made.sec, made.nsec = seconds % 60, moment.nsec
    return made
end

local function add_of_operator(left, right)
    if is_datetime(right) then
        left, right = right, left
    end
    if not is_datetime(left) and not is_interval(left) then
        expected('operator +', 'datetime or interval', left)
    elseif type(right) ~= 'table' and not is_interval(right) then
        expected('operator +', 'interval or table', right)
    end
    if is_datetime(left) then
        return shift(copy(left), 1, interval_of(right))
    end
    return combined(left, interval_of(right), 1, 'addition')
end

local function sub_of_operator(left, right)
    if not is_datetime(left) and not is_interval(left) then
        expected('operator -', 'datetime or interval', left)
    elseif type(right) ~= 'table' and not is_datetime(right) and not is_interval(right) then
        expected('operator -', 'datetime, interval or table', right)
    end
    if is_interval(left) and is_datetime(right) then
        error('datetime:operator -() - incompatible type of arguments', 2)
    elseif is_interval(left) then
        return combined(left, interval_of(right), -1, 'subtraction')
    elseif not is_datetime(right) then
        return shift(copy(left), -1, interval_of(right))
    end
    local from = parts_of(left)
    from.min = from.min - (left.tzoffset - right.tzoffset)
    return combined(from, parts_of(right), -1, 'subtraction')
end

local function compared(left, right)
    local seconds = left.epoch - right.epoch
    return seconds ~= 0 and seconds or left.nsec - right.nsec
end

local function intervals_compared(left, right)
    for _, name in ipairs(INTERVAL_FIELDS) do
        if left[name] ~= right[name] then
            return left[name] - right[name]
        end
    end
    return 0
end

-- The operators of comparison of a type.
local function comparison(is, compare, name)
    local function ordered(left, right)
        if not is(left) or not is(right) then
            error(('incompatible types for %s comparison'):format(name), 3)
        end
        return compare(left, right)
    end
    return function(left, right)
        return is(left) and is(right) and compare(left, right) == 0
    end, function(left, right)
        return ordered(left, right) < 0
    end, function(left, right)
        return ordered(left, right) <= 0
    end
end

local function totable(moment)
    check_datetime(moment, 'datetime.totable()')
    local year, month, day, yday, wday = native.date(local_day(moment))
    local seconds = local_seconds(moment)
    return {
        year = year, month = month, yday = yday, wday = wday, day = day,
        hour = math.floor(seconds / 3600) % 24, min = math.floor(seconds / 60) % 60,
        sec = seconds % 60, isdst = native.isdst(moment), nsec = moment.nsec,
        tzoffset = moment.tzoffset,
    }
end

local function format(moment, by)
    check_datetime(moment, 'datetime.format()')
    if by == nil then
        return native.text(moment)
    end
    check_text(by, 'datetime.strftime()')
    return native.format(moment, by)
end

local function of_date(place)
    return function(moment)
        return (select(place, native.date(local_day(moment))))
    end
end

local datetime_fields = {
    timestamp = function(moment) return moment.epoch + moment.nsec / 1e9 end,
    year = of_date(1), month = of_date(2), day = of_date(3), yday = of_date(4), wday = of_date(5),
    hour = function(moment) return math.floor(local_seconds(moment) / 3600) % 24 end,
    min = function(moment) return math.floor(local_seconds(moment) / 60) % 60 end,
    sec = function(moment) return moment.epoch % 60 end,
    usec = function(moment) return moment.nsec / 1e3 end,
    msec = function(moment) return moment.nsec / 1e6 end,
    isdst = native.isdst,
    tz = function(moment) return native.format(moment, '%Z') end,
}

local function shift_method(name, direction)
    return function(moment, by)
        check_datetime(moment, name)
        if type(by) ~= 'table' and not is_interval(by) then
            expected(name, 'interval or table', by)
        end
        return shift(moment, direction, interval_of(by))
    end
end

local datetime_methods = {
    format = format,
    totable = totable,
    set = set,
    add = shift_method('datetime.add', 1),
    sub = shift_method('datetime.sub', -1),
}

local datetime_eq, datetime_lt, datetime_le = comparison(is_datetime, compared, 'datetime')

ffi.metatype(datetime_type, {
    __tostring = native.text,
    __eq = datetime_eq, __lt = datetime_lt, __le = datetime_le,
    __add = add_of_operator, __sub = sub_of_operator,
    __index = function(moment, name)
        local field = datetime_fields[name]
        if field ~= nil then
            return field(moment)
        end
        return datetime_methods[name]
    end,
})

local interval_methods = {}

function interval_methods.totable(interval)
    if not is_interval(interval) then
        expected('interval.totable()', 'interval', interval)
    end
    local made = {adjust = ADJUST_NAMES[interval.adjust]}
    for _, name in ipairs(INTERVAL_FIELDS) do
        made[name] = interval[name]
    end
    return made
end

local interval_fields = {
    usec = function(interval) return math.floor(interval.nsec / 1e3) end,
    msec = function(interval) return math.floor(interval.nsec / 1e6) end,
}

local interval_eq, interval_lt, interval_le =
    comparison(is_interval, intervals_compared, 'interval')

ffi.metatype(interval_type, {
    __tostring = native.text,
    __eq = interval_eq, __lt = interval_lt, __le = interval_le,
    __add = add_of_operator, __sub = sub_of_operator,
    __index = function(interval, name)
        local field = interval_fields[name]
        if field ~= nil then
            return field(interval)
        end
        return interval_methods[name]
    end,
})

-- A datetime and the bytes of the text that it took.
local function parse(text, options)
    check_text(text, 'datetime.parse()')
    local by, zone, minutes = '', nil, 0
    if options ~= nil then
        check_table(options, 'datetime.parse()')
        by, zone = options.format, options.tz
        if by ~= nil then
            check_text(by, 'datetime.parse()')
        end
        if options.tzoffset ~= nil then
            minutes = offset_of(options.tzoffset)
        end
        if zone ~= nil then
            check_text(zone, 'datetime.parse()')
        end
    end
    if by ~= nil and by ~= '' and by ~= 'iso8601' and by ~= 'rfc3339' then
        local moment, length = native.parse_by(text, by)
        if moment == nil then
            error(("could not parse '%s' using '%s' format"):format(text, by), 2)
        end
        return moment, length
    end
    local moment, length = native.parse(text, zone, minutes)
    if moment == nil then
        error(("could not parse '%s'%s"):format(text, length), 2)
    end
    return moment, length
end

local function parse_date(text)
    check_text(text, 'datetime.parse_date()')
    local moment, length = native.parse_date(text)
    if moment == nil then
        error(('invalid date format %s'):format(text), 2)
    end
    return moment, length
end

return {
    new = datetime_new,
    interval = {new = interval_new, is_interval = is_interval},
    now = native.now,
    parse = parse,
    parse_date = parse_date,
    is_datetime = is_datetime,
    TZ = ZONES,
}
