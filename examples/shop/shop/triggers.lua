-- What happens on its own when tuples change: in the same transaction.
local triggers = {}

-- Every change of an order's status is written to the journal.
local function journal_status(old, new)
    local before, after = old and old.status, new and new.status
    if before ~= after then
        local id = (new or old).id
        box.space.journal:insert({box.NULL, id, before or box.NULL, after or box.NULL, box.session.user()})
    end
end

-- A customer's counter of orders.
local function count_orders(old, new)
    if old == nil then
        box.space.customers:update(new.customer_id, {{'+', 'orders', 1}})
    elseif new == nil then
        box.space.customers:update(old.customer_id, {{'-', 'orders', 1}})
    end
end

-- The number of the field `email`: in a before_replace of Tarantool 2.6, fields have no names yet.
local EMAIL = 2

-- Addresses are kept without blanks around them; what is none is refused.
local function clean_email(_, new)
    if new == nil then
        return new
    end
    local email = new[EMAIL]:strip()
    if not email:match('^[^@%s]+@[^@%s]+$') then
        error(('%q is no address'):format(email), 0)
    end
    return new:update({{'=', EMAIL, email}})
end

function triggers.set()
    box.space.customers:before_replace(clean_email)
    box.space.orders:on_replace(journal_status)
    box.space.orders:on_replace(count_orders)
end

return triggers
