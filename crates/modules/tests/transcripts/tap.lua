io.stdout:setvbuf("no")
-- The keys of a map come in any order: the lines are sorted.
local parts, write, real_print = {}, io.write, print
function io.write(...) for _, part in ipairs({...}) do parts[#parts + 1] = tostring(part) end end
function print(...) io.write(table.concat({tostring((...)), select('#', ...) > 1 and tostring((select(2, ...))) or ''}, ' '), '\n') end
local tap=require('tap') local ffi=require('ffi')
local test=tap.test('x') test.trace=false
test:plan(40)
test:ok(true,'yes') test:ok(false,'no') test:ok(false,'m',{a=1}) test:is('a','b','is') test:is(1,1,'one') test:isnt(1,1,'isnt') test:isnt(1,2,'isnt') test:isudata(1,'x','mm') test:iscdata(1ULL,'int','q') test:iscdata(1ULL,'uint64_t','q') test:iscdata(1,'int','q') test:isfunction(1,'f') test:isfunction(print,'f') test:isnil(1,'nil?') test:isnil(nil,'nil') test:isnumber(1,'n') test:isnumber('1','n') test:isstring('s','s') test:istable({},'t') test:isboolean(true,'b') test:isboolean(nil,'b')
test:is_deeply({a={b=1}},{a={b=2}},'deep') test:is_deeply({a=1},{a=1,c=1},'deep') test:is_deeply({a=1,c=1},{a=1},'deep') test:is_deeply({1,{2,{3}}},{1,{2,{3}}},'deep') test:is_deeply(1ULL,1ULL,'deep') test:is_deeply('a',1,'deep') test:is_deeply({1},'x','deep') test:is_deeply(0/0,0/0,'nan')
test:like('a','b','lk') test:like('abc','b','lk') test:unlike('a','a','lk') test:fail('f',{z=1}) test:fail('f') test:skip('s') test:diag('text') test:diag('%d text',5)
test:test('sub',function(t,a,b) t:plan(1) t:ok(false,'x'..a..b) end,1,2) test:test('sub',function(t,a,b) t:plan(1) t:ok(true,'x'..a..b) end,1,2) test:test('noplan',function(t) t:ok(true,'x') end)
local t=test:test('later') t:plan(2) t:ok(true,'in') print(t:check())
test.strict=true test:is(nil,require('json').NULL,'strict') test:is_deeply({require('json').NULL},{},'strict') test.strict=false test:is(nil,require('json').NULL,'loose')
print(test:check()) print((pcall(test.check,test)))
local g=tap.test('good') g:plan(1) g:ok(true) print(g:check())
local lines = {}
for line in table.concat(parts):gmatch('[^\n]+') do lines[#lines + 1] = line end
table.sort(lines)
real_print(table.concat(lines, '\n'))
os.exit(0)
