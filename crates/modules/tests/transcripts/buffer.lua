io.stdout:setvbuf("no")
local function p(f,...) local r={pcall(f,...)} for i=1,#r do r[i]=tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ',''):gsub('0x%x+', 'ADDRESS') end print(table.concat(r,' | ')) end
local b=require('buffer')
local x=b.ibuf() print(type(x),tostring(x)) print(x:size(),x:capacity(),x:pos()) local q=x:alloc(10) print(type(q),x:size(),x:capacity()>=10) x:reserve(100) print(x:size(),x:unused()>=100) x:reset() print(x:size()) x:recycle() print(x:size(),x:capacity(),x.rpos,x.wpos,x.epos,x.buf) p(x.checksize,x,5) x:alloc(20000) print(x:size(), x:capacity()>=20000) print(b.READAHEAD) p(function() x.rpos=x.rpos+1 return x:size(), x:pos() end)
local ffi=require('ffi') x:reset() ffi.copy(x:alloc(5),'hello',5) print(ffi.string(x.rpos,5)) local r=x:read(2) print(ffi.string(r,2),x:size(),x:pos()) ffi.copy(x:alloc(1000000),('y'):rep(1000000),1000000) print(ffi.string(x.rpos,5),x:size(),x:pos()) p(x.alloc) p(x.size)
local s=b.static_alloc('char',10) print(type(s)) print(b.static_alloc('int',2)[0]~=nil)
local i=require('iconv')
local c=i.new('UTF-16BE','UTF-8') print(type(c)) local function h(s) return (s:gsub('.',function(x) return ('%02x'):format(x:byte()) end)) end print(h(c('aЖ')),h(c(''))) p(c,'\255') p(i.new,'x','y') p(i.new) p(i.new,'a') p(i.new,5,6) p(i.new('ASCII','UTF-8'),'Ж') p(i.new('UTF-8','CP1251'),'\192\193') p(i.new('UTF-8','UTF-16'),'a') p(i.new('UTF-8','UTF-8'),('x'):rep(5)) print(#i.new('UTF-32LE','UTF-8')(('Ж'):rep(5000))) print(h(c('abc')))
os.exit(0)
