-- What box.cfg takes, what it refuses, and what can be changed later.
local function show(what, ...)
    local is_done, err = pcall(box.cfg, ...)
    print(what, is_done, is_done and '' or tostring(err), not is_done and type(err) == 'cdata' and err.code)
end

local refused = {
    memtx_memory = {-1}, memtx_min_tuple_size = {7, 1048281},
    replication = {'//guest@localhost:3301', '3303,3304'}, replication_timeout = {-1, 0},
    replication_sync_lag = {-1}, replication_sync_timeout = {-1, 0},
    replication_connect_timeout = {0}, replication_connect_quorum = {-1},
    replication_synchro_quorum = {0, 33}, replication_synchro_timeout = {0},
    wal_mode = {'invalid'}, listen = {'//!', 'localhost', true}, log_level = {'unknown', true},
    log_format = {'x'}, vinyl_memory = {-1}, vinyl_read_threads = {0},
    vinyl_write_threads = {1}, vinyl_page_size = {0}, vinyl_run_count_per_level = {0},
    vinyl_run_size_ratio = {1}, vinyl_bloom_fpr = {0, 1.1}, wal_max_size = {0},
    checkpoint_count = {0}, readahead = {-1}, sql_cache_size = {-1},
    instance_uuid = {'x', '00000000-0000-0000-0000-000000000000'}, replicaset_uuid = {'x'},
    nosuch = {1, box.NULL}, read_only = {'x'}, replication_source = {'//x@y:1'},
}
local names = {}
for name in pairs(refused) do
    table.insert(names, name)
end
table.sort(names)
for _, name in ipairs(names) do
    for _, value in ipairs(refused[name]) do
        show(name .. ' ' .. tostring(value), {[name] = value})
    end
end
show('a page and a range', {vinyl_page_size = 4194304, vinyl_range_size = 2097152})
show('an old name and a new one', {snap_dir = 'a', memtx_dir = 'b'})
show('an old size and a new one', {slab_alloc_arena = 0.2, memtx_memory = 1})
print(type(box.cfg), (pcall(function() return box.space end)))

box.cfg{
    log = 'own.log', wal_mode = '', slab_alloc_arena = 0.2, slab_alloc_minimal = 32,
    panic_on_wal_error = false, snapshot_period = 100, listen = '127.0.0.1:0', pid_file = 'own.pid',
}
print(type(box.cfg), require('box') == box)
for _, name in ipairs({'log', 'wal_mode', 'memtx_memory', 'memtx_min_tuple_size', 'force_recovery',
                       'checkpoint_interval', 'checkpoint_count', 'too_long_threshold',
                       'wal_dir_rescan_delay', 'worker_pool_threads', 'log_nonblock', 'listen'}) do
    print(name, box.cfg[name])
end
print(box.info.listen:match('^127.0.0.1:%d+$') ~= nil, box.info.listen:match(':0$'))
for _, name in ipairs({'work_dir', 'pid_file', 'memtx_dir', 'wal_dir', 'log', 'username', 'wal_mode'}) do
    show(name, {[name] = name == 'wal_mode' and 'none' or 'other'})
end
for _, name in ipairs({'memtx_min_tuple_size', 'wal_max_size', 'slab_alloc_factor'}) do
    show(name, {[name] = 1000})
end
show('what it is', {pid_file = 'own.pid', wal_mode = 'write', log = 'own.log'})
show('log_level', {log_level = 'unknown'})
show('log_format', {log_format = 'xxx'})
show('read_only', {read_only = true})
print(box.cfg.read_only, box.info.ro)
show('read_only', {read_only = box.NULL})
print(box.cfg.read_only, box.info.ro)
show('replication_anon', {replication_anon = true})
show('listen', {listen = box.NULL})
print(box.cfg.listen, box.info.listen)
show('listen', {listen = 'unix/:./own.sock'})
local stream = require('socket').tcp_connect('unix/', './own.sock')
print(stream ~= nil and #stream:read(9))
show('listen', {listen = ''})
print(box.cfg.listen, box.info.listen)
print(box.info.gc().checkpoint_is_in_progress, type(box.info.gc().signature))
os.exit(0)
