-- Who may do what: clients of IPROTO come as `web`, and may call the shop's functions alone.
local rights = {}

local FUNCTIONS = {
    'shop.place', 'shop.pay', 'shop.cancel', 'shop.show',
    'shop.put_job', 'shop.take_job', 'shop.ack_job', 'shop.job_stats',
}

function rights.apply()
    box.schema.role.create('clerk', {if_not_exists = true})
    for _, name in ipairs(FUNCTIONS) do
        box.schema.func.create(name, {setuid = true, if_not_exists = true})
        box.schema.role.grant('clerk', 'execute', 'function', name, {if_not_exists = true})
    end
    box.schema.user.create('web', {password = os.getenv('SHOP_PASSWORD') or 'web', if_not_exists = true})
    box.schema.user.grant('web', 'clerk', nil, nil, {if_not_exists = true})
end

return rights
