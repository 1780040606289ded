-- What runs before the process ends by `os.exit`; an error of it ends that.
box.cfg{log_level = 1}
io.stdout:setvbuf('no')
local fiber = require('fiber')
box.ctl.on_shutdown(function() print('not after an error') end)
box.ctl.on_shutdown(function() error('is logged') end)
box.ctl.on_shutdown(function() print('is called') end)
fiber.create(function()
    print('exits')
    os.exit(0)
    print('goes on')
end)
print('others go on')
