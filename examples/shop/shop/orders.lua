-- Orders: placed with reservations that expire, paid, cancelled.
local fiber = require('fiber')

local jobs = require('shop.jobs')

local orders = {
    -- Seconds in which an order is to be paid.
    reservation_ttl = 15 * 60,
}

-- An error object keeps its message as it is; to a text, `box.atomic` adds a place.
local function fail(...)
    box.error({code = 10000, reason = string.format(...)})
end

-- Takes a line's count from the stock, and returns its price.
local function take_from_stock(line)
    local product = box.space.products:get(line.sku)
    if product == nil then
        fail('there is no product %s', tostring(line.sku))
    elseif type(line.count) ~= 'number' or line.count < 1 or line.count % 1 ~= 0 then
        fail('%s is no count of %s', tostring(line.count), line.sku)
    elseif product.stock < line.count then
        fail('only %d of %s are left', tonumber(product.stock), line.sku)
    end
    box.space.products:update(line.sku, {{'-', 'stock', line.count}})
    return product.price * line.count
end

local function give_back(order_id)
    for _, reservation in box.space.reservations:pairs({order_id}) do
        box.space.products:update(reservation.sku, {{'+', 'stock', reservation.count}})
        box.space.reservations:delete({order_id, reservation.sku})
    end
end

-- Places an order of lines {{sku =, count =}, ...}. Returns its number and total.
function orders.place(customer_id, lines)
    return box.atomic(function()
        if box.space.customers:get(customer_id) == nil then
            fail('there is no customer %s', tostring(customer_id))
        end
        local total, kept = 0, {}
        for at, line in ipairs(lines) do
            total = total + take_from_stock(line)
            kept[at] = {line.sku, line.count}
        end
        if #kept == 0 then
            fail('an order has at least one line')
        end
        local now = fiber.time()
        local order = box.space.orders:insert({box.NULL, customer_id, 'placed', total, now, kept})
        for _, line in ipairs(kept) do
            box.space.reservations:upsert(
                {order.id, line[1], line[2], now + orders.reservation_ttl}, {{'+', 'count', line[2]}})
        end
        return order.id, total
    end)
end

local function in_status(order_id, status)
    local order = box.space.orders:get(order_id)
    if order == nil then
        fail('there is no order %s', tostring(order_id))
    elseif order.status ~= status then
        fail('order %d is %s', tonumber(order_id), order.status)
    end
    return order
end

-- The goods are sold, and a letter is to be written.
function orders.pay(order_id)
    return box.atomic(function()
        local order = in_status(order_id, 'placed')
        for _, reservation in box.space.reservations:pairs({order_id}) do
            box.space.reservations:delete({order_id, reservation.sku})
        end
        box.space.orders:update(order_id, {{'=', 'status', 'paid'}})
        jobs.put('mail', {order = order_id, customer = order.customer_id})
        return 'paid'
    end)
end

function orders.cancel(order_id)
    return box.atomic(function()
        in_status(order_id, 'placed')
        give_back(order_id)
        box.space.orders:update(order_id, {{'=', 'status', 'cancelled'}})
        return 'cancelled'
    end)
end

-- One of an order's reservations has expired: so has the order.
function orders.reservation_expired(reservation)
    box.atomic(function()
        local order_id = reservation.order_id
        give_back(order_id)
        local order = box.space.orders:get(order_id)
        if order ~= nil and order.status == 'placed' then
            box.space.orders:update(order_id, {{'=', 'status', 'expired'}})
        end
    end)
end

-- An order as a table, with the history of its status.
function orders.show(order_id)
    local order = box.space.orders:get(order_id)
    if order == nil then
        return nil
    end
    local shown = order:tomap({names_only = true})
    shown.history = {}
    for _, entry in box.space.journal.index.order:pairs({order_id}) do
        table.insert(shown.history, entry.after)
    end
    return shown
end

-- The last orders of a customer, newest first.
function orders.of_customer(customer_id, limit)
    local found = box.space.orders.index.customer:select(
        {customer_id}, {iterator = 'REQ', limit = limit or 10})
    local shown = {}
    for at, order in ipairs(found) do
        shown[at] = {id = order.id, status = order.status, total = order.total}
    end
    return shown
end

return orders
