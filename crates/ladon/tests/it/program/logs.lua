-- The module `log` before and behind box.cfg.
local log = require('log')

local function lines(name)
    local found = {}
    for line in io.lines(name) do
        local text = line:match('[>] (mine .*)$') or line:match('(mine .*)$')
        if text ~= nil then
            table.insert(found, text)
        end
    end
    return table.concat(found, ', ')
end

print(log.cfg.level, log.cfg.format, log.cfg.log)
print(pcall(log.cfg, {log = 'own.log'}))
log.info('mine %d', 1)
log.debug('mine is not wanted')
print(log.cfg.log, log.cfg.level, log.cfg.format)
print((pcall(log.cfg, {log = 'other.log'})))
print(pcall(log.cfg, {level = 'debug'}))
log.debug('mine is wanted')
print(log.cfg.level)
print(lines('own.log'))
box.cfg{wal_mode = 'none'}
print(box.cfg.log, box.cfg.log_level)
log.info('mine behind')
print(lines('own.log'))
print((pcall(log.cfg, {log = 'other.log'})))
print(pcall(log.cfg, {level = 3}), box.cfg.log_level)
log.info('mine is not wanted')
print(pcall(box.cfg, {log_level = 6}), log.cfg.level)
log.level(5)
print(log.cfg.level, box.cfg.log_level)
log.info('mine at last')
print(lines('own.log'))
os.exit(0)
