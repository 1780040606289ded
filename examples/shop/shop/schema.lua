-- The spaces, as steps that each run once.
local schema = {}

local steps = {}

steps[1] = function()
    box.schema.sequence.create('customer_id', {start = 1000})
    local customers = box.schema.space.create('customers', {
        format = {
            {name = 'id', type = 'unsigned'},
            {name = 'email', type = 'string'},
            {name = 'name', type = 'string'},
            {name = 'orders', type = 'unsigned'},
        },
    })
    customers:create_index('primary', {parts = {'id'}, sequence = 'customer_id'})
    customers:create_index('email', {parts = {{'email', collation = 'unicode_ci'}}, unique = true})

    local products = box.schema.space.create('products', {
        format = {
            {name = 'sku', type = 'string'},
            {name = 'name', type = 'string'},
            {name = 'price', type = 'unsigned'},
            {name = 'stock', type = 'unsigned'},
            {name = 'tags', type = 'array', is_nullable = true},
        },
    })
    products:create_index('primary', {parts = {'sku'}})
    products:create_index('price', {parts = {'price', 'sku'}})
end

steps[2] = function()
    box.schema.sequence.create('order_id')
    local orders = box.schema.space.create('orders', {
        format = {
            {name = 'id', type = 'unsigned'},
            {name = 'customer_id', type = 'unsigned'},
            {name = 'status', type = 'string'},
            {name = 'total', type = 'unsigned'},
            {name = 'created_at', type = 'number'},
            {name = 'lines', type = 'array'},
        },
    })
    orders:create_index('primary', {parts = {'id'}, sequence = 'order_id'})
    orders:create_index('customer', {parts = {'customer_id', 'id'}})
    orders:create_index('status', {parts = {'status'}, unique = false})

    local reservations = box.schema.space.create('reservations', {
        format = {
            {name = 'order_id', type = 'unsigned'},
            {name = 'sku', type = 'string'},
            {name = 'count', type = 'unsigned'},
            {name = 'expires_at', type = 'number'},
        },
    })
    reservations:create_index('primary', {parts = {'order_id', 'sku'}})
    reservations:create_index('expires_at', {parts = {'expires_at'}, unique = false})
end

steps[3] = function()
    local jobs = box.schema.space.create('jobs', {
        format = {
            {name = 'id', type = 'unsigned'},
            {name = 'state', type = 'string'},
            {name = 'ready_at', type = 'number'},
            {name = 'kind', type = 'string'},
            {name = 'payload', type = 'map'},
            {name = 'tries', type = 'unsigned'},
            {name = 'lease_until', type = 'number', is_nullable = true},
        },
    })
    jobs:create_index('primary', {parts = {'id'}, sequence = true})
    jobs:create_index('state', {parts = {'state', 'ready_at', 'id'}})
    jobs:create_index('leases', {
        parts = {{'lease_until', is_nullable = true}}, unique = false,
    })

    local journal = box.schema.space.create('journal', {
        format = {
            {name = 'id', type = 'unsigned'},
            {name = 'order_id', type = 'unsigned'},
            {name = 'before', type = 'string', is_nullable = true},
            {name = 'after', type = 'string', is_nullable = true},
            {name = 'who', type = 'string'},
        },
    })
    journal:create_index('primary', {parts = {'id'}, sequence = true})
    journal:create_index('order', {parts = {'order_id', 'id'}})
end

-- Adds what a data directory of an older version lacks.
function schema.apply()
    for number, step in ipairs(steps) do
        box.once('shop-schema-' .. number, step)
    end
end

schema.version = #steps

return schema
