-- Writes keys or reads them over HTTP, as the published test of Go with LevelDB against Tarantool does.
-- Told by arguments: set or get, how many keys there are to get, bytes of each value.
-- The value of a key follows from the key, so that every answer can be judged by itself.

local deed, keys, bytes
local number = 0
wrong = 0

local function value_of(key)
    return (key .. '/'):rep(math.ceil(bytes / (#key + 1))):sub(1, bytes)
end

local threads = {}

function setup(thread)
    threads[#threads + 1] = thread
end

function init(arguments)
    deed, keys, bytes = arguments[1], tonumber(arguments[2]), tonumber(arguments[3])
end

function request()
    number = number + 1
    if deed == 'set' then
        local key = 'wrk:' .. number
        return wrk.format('POST', '/kv/' .. key, nil, value_of(key))
    end
    return wrk.format('GET', '/kv/wrk:' .. number % keys)
end

function response(status, _, body)
    local key, value = body:match('^{"key":"([^"]*)","value":"([^"]*)"}')
    if status ~= 200 or key == nil or value ~= value_of(key) then
        wrong = wrong + 1
    end
end

function done(summary, latency)
    local failed = summary.errors.connect + summary.errors.read + summary.errors.write
        + summary.errors.timeout
    local all_wrong = 0
    for _, thread in ipairs(threads) do
        all_wrong = all_wrong + thread:get('wrong')
    end
    local at = function(percent) return latency:percentile(percent) end
    print(('lab {"requests":%d,"microseconds":%d,"failed":%d,"wrong":%d,"latency_us":[%f,%f,%f,%f,%f,%f]}')
        :format(summary.requests, summary.duration, failed, all_wrong,
            at(50), at(90), at(99), at(99.9), at(99.99), latency.max))
end
