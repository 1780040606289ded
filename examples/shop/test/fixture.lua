-- A shop for one test: in a folder of its own, with some customers and products.
local fio = require('fio')

local fixture = {}

-- Starts the shop. Options: those of `app.start`.
function fixture.start(options)
    options = options or {}
    options.dir, options.log_level = fio.tempdir(), 2
    local app = require('shop.app')
    app.start(options)
    for _, customer in ipairs({{'ann@example.org', 'Ann'}, {'bob@example.org', 'Bob'}}) do
        box.space.customers:insert({box.NULL, customer[1], customer[2], 0})
    end
    for _, product in ipairs({{'apple', 'An apple', 30, 100}, {'pear', 'A pear', 45, 10}, {'plum', 'A plum', 20, 3}}) do
        box.space.products:insert(product)
    end
    return app
end

-- Ends the process: with code 0 if all tests have passed.
function fixture.finish(test)
    local is_passed = test:check()
    require('shop.app').stop()
    os.exit(is_passed and 0 or 1)
end

-- Waits until something holds, for 10 seconds at most.
function fixture.wait_for(holds)
    local fiber = require('fiber')
    local deadline = fiber.time() + 10
    while not holds() do
        if fiber.time() > deadline then
            return false
        end
        fiber.sleep(0.01)
    end
    return true
end

return fixture
