io.stdout:setvbuf("no")
local fio = require('fio')
local T = fio.tempdir()
local function p(f, ...) local n = select('#', pcall(f, ...)) local r = {pcall(f, ...)} for i = 1, n do r[i] = tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ', ''):gsub(T, 'T') end print(table.concat(r, ' | ')) end
p(function() return package.searchroot() == fio.cwd() end) p(package.setsearchroot, T) p(package.searchroot) p(package.setsearchroot) p(function() return package.searchroot() == fio.cwd() end) p(package.setsearchroot, 5) p(package.search, 'no-such-module') p(package.search)
fio.mktree(T .. '/.rocks/share/tarantool/deep') fio.mktree(T .. '/sub/mine')
local function write(name, text) local f = fio.open(T .. '/' .. name, {'O_WRONLY', 'O_CREAT'}, 420) f:write(text) f:close() end
write('.rocks/share/tarantool/rk.lua', 'return "rk"') write('.rocks/share/tarantool/deep/init.lua', 'return ...') write('sub/mine/init.lua', 'return "mine"') write('lm.lua', 'return ...') write('sub/bad.lua', 'x x x')
package.setsearchroot(T .. '/sub') p(require, 'rk') p(package.search, 'rk') p(require, 'deep') p(package.search, 'deep') p(require, 'mine') p(package.search, 'mine') p(function() return (pcall(require, 'bad')) end) p(function() return (pcall(require, 'lm')) end)
package.setsearchroot(T) p(require, 'lm') p(package.search, 'lm') p(require, 'sub.mine') print(package.path:gsub('^.-/usr', '/usr')) fio.rmtree(T)
os.exit(0)
