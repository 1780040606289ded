-- Puts the parts together, in the order in which they need each other.
local log = require('log')

local schema = require('shop.schema')
local triggers = require('shop.triggers')
local orders = require('shop.orders')
local jobs = require('shop.jobs')
local expiry = require('shop.expiry')
local worker = require('shop.worker')
local rights = require('shop.rights')
local web = require('shop.web')

local app = {}

-- Options: dir, listen, http_port, and for tests: reservation_ttl, pause (seconds).
function app.start(options)
    box.cfg({
        work_dir = options.dir,
        listen = options.listen,
        memtx_memory = 128 * 1024 * 1024,
        wal_mode = 'write',
        log_level = options.log_level or 5,
    })
    schema.apply()
    triggers.set()
    rights.apply()
    if options.reservation_ttl ~= nil then
        orders.reservation_ttl = options.reservation_ttl
    end

    -- What clients call by name.
    rawset(_G, 'shop', {
        place = orders.place, pay = orders.pay, cancel = orders.cancel, show = orders.show,
        put_job = jobs.put, take_job = jobs.take, ack_job = jobs.ack, job_stats = jobs.stats,
    })

    app.tasks = {
        expiry.start('reservations', {
            space = 'reservations', index = 'expires_at', pause = options.pause,
            on_expired = orders.reservation_expired,
        }),
        expiry.start('leases', {
            space = 'jobs', index = 'leases', pause = options.pause,
            on_expired = jobs.lease_expired,
        }),
        worker.start(),
    }
    if options.http_port ~= nil then
        app.web = web.start(options.http_port)
    end
    log.info('the shop is open')
end

function app.stop()
    for _, task in ipairs(app.tasks or {}) do
        task:stop()
    end
    if app.web ~= nil then
        app.web:stop()
    end
end

return app
