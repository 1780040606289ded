-- box.cfg: options, their defaults and what values they take
-- (https://www.tarantool.io/en/doc/latest/reference/configuration/).
local ladon = ...

-- Options and the types of their values. What a value means is the server's matter.
local OPTIONS = {
    listen = 'string, number', work_dir = 'string', wal_dir = 'string', memtx_dir = 'string',
    vinyl_dir = 'string', wal_mode = 'string', memtx_memory = 'number', log = 'string',
    log_level = 'any', log_format = 'string', log_nonblock = 'boolean', read_only = 'boolean',
    pid_file = 'string', background = 'boolean', username = 'string', custom_proc_title = 'string',
    checkpoint_interval = 'number', checkpoint_count = 'number',
    checkpoint_wal_threshold = 'number', too_long_threshold = 'number', net_msg_max = 'number',
    readahead = 'number', io_collect_interval = 'number', memtx_max_tuple_size = 'number',
    memtx_min_tuple_size = 'number', memtx_use_mvcc_engine = 'boolean',
    memtx_allocator = 'string', slab_alloc_factor = 'number', sql_cache_size = 'number',
    wal_max_size = 'number', wal_dir_rescan_delay = 'number', wal_cleanup_delay = 'number',
    snap_io_rate_limit = 'number', rows_per_wal = 'number', coredump = 'boolean',
    strip_core = 'boolean', hot_standby = 'boolean', force_recovery = 'boolean',
    feedback_enabled = 'boolean', feedback_host = 'string', feedback_interval = 'number',
    feedback_crashinfo = 'boolean', feedback_send_metrics = 'boolean',
    worker_pool_threads = 'number', iproto_threads = 'number', vinyl_memory = 'number',
    vinyl_cache = 'number', vinyl_max_tuple_size = 'number', vinyl_read_threads = 'number',
    vinyl_write_threads = 'number', vinyl_timeout = 'number',
    vinyl_run_count_per_level = 'number', vinyl_run_size_ratio = 'number',
    vinyl_range_size = 'number', vinyl_page_size = 'number', vinyl_bloom_fpr = 'number',
    instance_uuid = 'string', replicaset_uuid = 'string',
    replication = 'string, number, table', replication_timeout = 'number',
    replication_connect_timeout = 'number', replication_connect_quorum = 'number',
    replication_sync_lag = 'number', replication_sync_timeout = 'number',
    replication_skip_conflict = 'boolean', replication_anon = 'boolean',
    replication_synchro_quorum = 'string, number', replication_synchro_timeout = 'number',
    election_mode = 'string', election_timeout = 'number',
}

local DEFAULTS = {
    memtx_dir = '.', wal_dir = '.', vinyl_dir = '.', wal_mode = 'write',
    memtx_memory = 268435456, memtx_min_tuple_size = 16, memtx_max_tuple_size = 1048576,
    memtx_use_mvcc_engine = true, slab_alloc_factor = 1.05, log_level = 5, log_format = 'plain',
    read_only = false, background = false, coredump = false, strip_core = true,
    hot_standby = false, force_recovery = false, checkpoint_interval = 3600, checkpoint_count = 2,
    checkpoint_wal_threshold = 1e18, too_long_threshold = 0.5, net_msg_max = 768,
    readahead = 16320, sql_cache_size = 5242880, wal_max_size = 268435456,
    wal_dir_rescan_delay = 2, worker_pool_threads = 4, replication_timeout = 1,
    replication_connect_timeout = 30, replication_sync_lag = 10, replication_sync_timeout = 300,
    replication_skip_conflict = false, replication_anon = false, replication_synchro_quorum = 1,
    replication_synchro_timeout = 5,
}

-- Options that can be changed once the server runs.
local DYNAMIC = {}
for _, name in ipairs({
    'listen', 'read_only', 'log_level', 'log_format', 'memtx_memory', 'memtx_max_tuple_size',
    'checkpoint_count', 'checkpoint_interval', 'checkpoint_wal_threshold', 'too_long_threshold',
    'net_msg_max', 'readahead', 'io_collect_interval', 'snap_io_rate_limit', 'sql_cache_size',
    'force_recovery', 'custom_proc_title', 'wal_dir_rescan_delay', 'wal_cleanup_delay',
    'worker_pool_threads', 'vinyl_memory', 'vinyl_cache', 'vinyl_max_tuple_size',
    'vinyl_timeout', 'feedback_enabled', 'feedback_host', 'feedback_interval',
    'feedback_crashinfo', 'feedback_send_metrics', 'replication', 'replication_timeout',
    'replication_connect_timeout', 'replication_connect_quorum', 'replication_sync_lag',
    'replication_sync_timeout', 'replication_skip_conflict', 'replication_anon',
    'replication_synchro_quorum', 'replication_synchro_timeout', 'election_mode',
    'election_timeout',
}) do
    DYNAMIC[name] = true
end

local function same(value)
    return value
end

local function inverse(value)
    return not value
end

-- Names that older programs have: the name of now, and its value.
local OLD_NAMES = {
    logger = {'log', same}, logger_nonblock = {'log_nonblock', same},
    snap_dir = {'memtx_dir', same}, replication_source = {'replication', same},
    slab_alloc_arena = {'memtx_memory', function(size)
        return math.floor(size * 1024 * 1024 * 1024)
    end},
    slab_alloc_minimal = {'memtx_min_tuple_size', same},
    slab_alloc_maximal = {'memtx_max_tuple_size', same},
    snapshot_count = {'checkpoint_count', same}, snapshot_period = {'checkpoint_interval', same},
    panic_on_wal_error = {'force_recovery', inverse},
    panic_on_snap_error = {'force_recovery', inverse},
}

local function refuse(name, why)
    box.error(box.error.CFG, name, why)
end

-- What it takes a value to be: a check by option, which gets all options.
local CHECKS = {}

local function must(names, reason, is_valid)
    for _, name in ipairs(names) do
        CHECKS[name] = function(value, options)
            if not is_valid(value, options) then
                refuse(name, reason)
            end
        end
    end
end

local function is_positive(value)
    return value > 0
end

-- Bytes of memory beyond which Tarantool takes none.
local MEMORY_MAX = 4398046510080
for _, name in ipairs({'memtx_memory', 'vinyl_memory'}) do
    CHECKS[name] = function(value)
        if value < 0 or value > MEMORY_MAX then
            refuse(name, ('must be >= 0 and <= %d, but it is %d'):format(MEMORY_MAX, value))
        end
    end
end
must({'memtx_min_tuple_size'}, 'specified value is out of bounds', function(value)
    return value >= 8 and value <= 1048280
end)
must({'readahead'}, 'specified value is out of bounds', function(value)
    return value >= 128
end)
must({'replication_timeout', 'replication_connect_timeout'},
    'the value must be greather than 0', is_positive)
must({'replication_sync_lag', 'replication_sync_timeout'},
    'the value must be greater than 0', is_positive)
must({'replication_synchro_timeout'}, 'the value must be greater than zero', is_positive)
must({'replication_connect_quorum'}, 'the value must be greater or equal to 0', function(value)
    return value >= 0
end)
function CHECKS.replication_synchro_quorum(quorum)
    if type(quorum) == 'number' and (quorum <= 0 or quorum >= 32) then
        refuse('replication_synchro_quorum',
            'the value must be greater than zero and less than maximal number of replicas')
    elseif quorum ~= DEFAULTS.replication_synchro_quorum then
        refuse('replication_synchro_quorum', 'the gate of a cluster is its quorum')
    end
end
must({'wal_max_size'}, 'the value must be greater than one', function(value)
    return value > 1
end)
must({'checkpoint_count'}, 'the value must not be less than one', function(value)
    return value >= 1
end)
must({'net_msg_max'}, 'minimal value is 2', function(value)
    return value >= 2
end)
must({'sql_cache_size'}, 'must be non-negative', function(value)
    return value >= 0
end)
must({'vinyl_read_threads'}, 'must be greater than or equal to 1', function(value)
    return value >= 1
end)
must({'vinyl_write_threads'}, 'must be greater than or equal to 2', function(value)
    return value >= 2
end)
must({'vinyl_page_size'}, 'must be greater than 0 and less than or equal to vinyl_range_size',
    function(value, options)
        local range = options.vinyl_range_size or 0
        return value > 0 and (range == 0 or value <= range)
    end)
must({'vinyl_run_count_per_level'}, 'must be greater than 0', is_positive)
must({'vinyl_run_size_ratio'}, 'must be greater than 1', function(value)
    return value > 1
end)
must({'vinyl_bloom_fpr'}, 'must be greater than 0 and less than or equal to 1', function(value)
    return value > 0 and value <= 1
end)
must({'election_mode'}, 'a cluster elects its leader itself', function(value)
    return value == 'off'
end)
must({'election_timeout'}, 'the value must be a positive number', is_positive)

CHECKS.replication = ladon.check_replication
function CHECKS.replication_anon(is_anonymous, options)
    if is_anonymous and not options.read_only then
        refuse('replication_anon',
            'the value may be set to true only when the instance is read-only')
    end
end

local WAL_MODES = {none = true, write = true, fsync = true, fsync_delay = true}
function CHECKS.wal_mode(mode)
    if not WAL_MODES[mode] then
        refuse('wal_mode', mode)
    end
end

for _, name in ipairs({'instance_uuid', 'replicaset_uuid'}) do
    CHECKS[name] = function(text)
        local parsed = require('uuid').fromstr(text)
        if parsed == nil then
            refuse(name, text)
        elseif parsed:isnil() then
            refuse(name, 'nil UUID is reserved')
        end
    end
end

-- Whether a text says where a server listens: a port, `host:service` or a path.
local function is_address(text)
    text = tostring(text)
    local parsed = require('uri').parse(text)
    return parsed ~= nil and (parsed.unix ~= nil or parsed.service ~= nil)
end

must({'listen'}, 'expected host:service or /unix.socket', is_address)

-- Options of syslog, which the log does not go to; wrong ones are told first.
local SYSLOG_OPTIONS = {server = true, identity = true, facility = true}
local function check_syslog(text)
    local seen = {}
    for option in text:gmatch('[^,]+') do
        local name = option:match('^([^=]*)=')
        if not SYSLOG_OPTIONS[name] then
            refuse('log', ("bad option '%s'"):format(option))
        elseif seen[name] then
            refuse('log', ("duplicate option '%s'"):format(name))
        end
        seen[name] = true
    end
end

local function check_log(options)
    local log = options.log or ''
    local syslog = log:match('^syslog:(.*)$')
    local is_pipe = log:find('^%s*|') ~= nil or log:find('^pipe:') ~= nil
    if syslog ~= nil then
        check_syslog(syslog)
        if options.log_format == 'json' then
            refuse('log_format', "json can't be used with syslog logger")
        end
    elseif log:find(':', 1, true) and not is_pipe and not log:find('^file:') then
        refuse('log', "expecting a file name or a prefix, such as '|', 'pipe:', 'syslog:'")
    end
    if options.log_format ~= 'plain' and options.log_format ~= 'json' then
        refuse('log_format', 'expected json,plain')
    end
    if options.log_nonblock and not is_pipe and syslog == nil then
        refuse('log_nonblock', 'the option is incompatible with file/stderr logger')
    end
end

-- The options by the names of now. An empty text, or NULL, is the default: `is_reset` has its name.
local function translate(given)
    local options, is_reset = {}, {}
    for name, value in pairs(given) do
        local new = OLD_NAMES[name]
        if new ~= nil then
            ladon.log(4, ('Deprecated option %s, please use %s instead'):format(name, new[1]))
            value = value ~= nil and new[2](value) or nil
            if value ~= nil and given[new[1]] ~= nil and given[new[1]] ~= value then
                refuse(name, 'can not override a value for a deprecated option')
            end
            name = new[1]
        end
        if value == nil or value == '' then
            is_reset[name] = true
        elseif value ~= nil then
            options[name] = value
        end
    end
    return options, is_reset
end

local function check_type(name, value)
    local expected = OPTIONS[name]
    if expected == nil then
        refuse(name, 'unexpected option')
    elseif expected == 'any' then
        return
    elseif not expected:find(',', 1, true) then
        if type(value) ~= expected then
            refuse(name, 'should be of type ' .. expected)
        end
    elseif not (', ' .. expected .. ','):find(', ' .. type(value) .. ',', 1, true) then
        refuse(name, 'should be one of types ' .. expected)
    end
end

local LEVELS = 'crit,warn,info,debug,syserror,verbose,fatal,error'
function CHECKS.log_level(level)
    if type(level) == 'string' then
        if not (',' .. LEVELS .. ','):find(',' .. level .. ',', 1, true) then
            refuse('log_level', 'expected ' .. LEVELS)
        end
    elseif type(level) ~= 'number' then
        refuse('log_level', 'must be a number or a string')
    end
end

local values

-- Options that cannot be changed any more, and are to be others.
local function check_changes(changed)
    for name in pairs(changed) do
        if name == 'log' or name == 'log_nonblock' then
            refuse(name, "can't be set dynamically")
        elseif not DYNAMIC[name] then
            box.error(box.error.RELOAD_CFG, name)
        end
    end
end

-- Names that the server's settings have for options.
local OPTION_OF = {
    iproto = 'listen', maxmemory = 'memtx_memory', logfile = 'log', loglevel = 'log_level',
    gate = 'wal_mode', data = 'wal_dir', ['read-only'] = 'read_only',
    ['checkpoint-interval'] = 'checkpoint_interval',
}

-- Gives options to the server; a refusal is an error of the option, where it names one.
local function hand_over(options)
    local is_done, why = pcall(ladon.configure, options)
    if is_done then
        return
    end
    why = tostring(why):gsub('^builtin/cfg%.lua:%d+: ', '')
    local name, reason = why:match("^Incorrect value for option '([^']*)': (.*)$")
    if name == nil then
        name, reason = why:match("related to argument '([^']*)'%) %- (.*)$")
        name = name and OPTION_OF[name] or name
    end
    if name ~= nil then
        refuse(name, reason)
    end
    if why == box.error.new(box.error.BOOTSTRAP_READONLY).message then
        box.error(box.error.BOOTSTRAP_READONLY)
    end
    error(why, 0)
end

-- A port of the system's choice, for `HOST:0`.
local function with_port(address)
    local host = type(address) == 'string' and address:match('^(.*):0$')
    if not host then
        return address
    end
    local server, why = require('socket').tcp_server(host, 0, function() end)
    if server == nil then
        refuse('listen', why or 'there is no free port')
    end
    local port = server:name().port
    server:close()
    return host .. ':' .. tostring(port)
end

-- Options that are others now. What is reset is what it is by default.
local function changes(options, is_reset)
    local changed = {}
    for name, value in pairs(options) do
        if values == nil or values[name] ~= value then
            changed[name] = value
        end
    end
    for name in pairs(is_reset) do
        if values ~= nil and values[name] ~= DEFAULTS[name] then
            changed[name] = DEFAULTS[name] == nil and '' or DEFAULTS[name]
        end
    end
    return changed
end

local function check(options, is_reset)
    for name, value in pairs(options) do
        check_type(name, value)
    end
    for name in pairs(is_reset) do
        if OPTIONS[name] == nil then
            refuse(name, 'unexpected option')
        end
    end
    local all = {}
    for _, source in ipairs({DEFAULTS, values or {}}) do
        for name, value in pairs(source) do
            all[name] = value
        end
    end
    for name in pairs(is_reset) do
        all[name] = DEFAULTS[name]
    end
    for name, value in pairs(options) do
        all[name] = value
    end
    for name in pairs(options) do
        if CHECKS[name] ~= nil then
            CHECKS[name](options[name], all)
        end
    end
    check_log(all)
    return all
end

-- `box.space` is there once `box.cfg` has been called; before, what `box` lacks is an error.
local space = box.space
box.space = nil
setmetatable(box, {
    __index = function()
        error('Please call box.cfg{} first', 2)
    end,
})

local shown_cfg

package.loaded.box = box

local function begin()
    setmetatable(box, nil)
    box.space = space
    values = {}
    for name, value in pairs(DEFAULTS) do
        values[name] = value
    end
    box.cfg = shown_cfg
end

local function configure(given)
    if given ~= nil and type(given) ~= 'table' then
        error('Error: cfg should be a table', 2)
    end
    local options, is_reset = translate(given or {})
    local all = check(options, is_reset)
    local is_first = values == nil
    local hooks = getmetatable(require('log').cfg)
    if is_first then
        hooks.before_box(options)
    end
    local changed = changes(options, is_reset)
    if not is_first then
        check_changes(changed)
    end
    if changed.listen ~= nil then
        changed.listen = with_port(changed.listen)
    end
    if changed.replication ~= nil then
        changed.replication = ladon.server_to_follow(all)
    end
    hand_over(changed)
    if changed.listen ~= nil then
        ladon.listens = changed.listen ~= '' and tostring(changed.listen) or nil
    end
    if is_first then
        begin()
    end
    hooks.after_box(options, function(level)
        values.log_level = level
        ladon.configure({log_level = level})
    end)
    for name in pairs(is_reset) do
        values[name] = DEFAULTS[name]
    end
    for name, value in pairs(options) do
        values[name] = value
    end
end

shown_cfg = setmetatable({}, {
    __index = function(_, name)
        return values[name]
    end,
    __newindex = function()
        error('Attempt to modify a read-only table', 2)
    end,
    __call = function(_, options)
        configure(options)
    end,
    __pairs = function()
        return pairs(values)
    end,
    __serialize = function()
        return values
    end,
})

function box.cfg(options)
    configure(options)
end

-- Whether `box.cfg` has been called.
function ladon.is_configured()
    return values ~= nil
end
