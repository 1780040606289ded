#!/usr/bin/env tarantool
-- A small shop: `tarantool init.lua` or `ladon tarantool init.lua`.
--
--   SHOP_LISTEN   where clients of IPROTO connect       (127.0.0.1:3301)
--   SHOP_HTTP     the port of the HTTP server           (8080; off without the rock http)
--   SHOP_DIR      where the data is                     (the folder `data` beside this file)

local fio = require('fio')

local here = fio.dirname(fio.abspath(arg[0]))
package.path = here .. '/?.lua;' .. package.path

local app = require('shop.app')

local dir = os.getenv('SHOP_DIR') or fio.pathjoin(here, 'data')
fio.mktree(dir)

app.start({
    listen = os.getenv('SHOP_LISTEN') or '127.0.0.1:3301',
    http_port = tonumber(os.getenv('SHOP_HTTP') or 8080),
    dir = dir,
})
