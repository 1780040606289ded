io.stdout:setvbuf("no")

local function p(f, ...)
  local r = {pcall(f, ...)}
  for i = 1, #r do
    r[i] = tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ', ''):gsub('0x%x+', 'ADDRESS'):gsub('struct %d+', 'struct N'):gsub('builtin#%d+', 'ADDRESS')
  end
  print(table.concat(r, ' | '))
end
local e=require('errno')
p(function() return e.EINVAL end) print(e(),e.strerror(2),e.strerror()) e(5) print(e(),e.strerror()) p(function() e.EINVAL=5 end) p(e.strerror,'x') p(e,'x') p(e.strerror,12345) p(function() e.foo=1 end)
local k={} for a,b in pairs(getmetatable(e).__index) do k[#k+1]=a..'='..b end table.sort(k) print(table.concat(k,' ')) print(e(0))
local c=require('clock') for k,v in pairs(c) do if k~='bench' then print(k,type(v())) end end
print(pcall(c.bench,function(a,b) return a,b end,1,2)) p(c.bench) 
local r=c.bench(function(a,b) return a,b end,1,2) print(type(r),#r,type(r[1]),r[2],r[3])
local t=require('tarantool') print(t.version,t.package,type(t.uptime),type(t.pid),t.pid()) for k,v in pairs(t.build) do print(k,v) end
print(_TARANTOOL, tonumber64, dostring, _VERSION, math.log10)
p(tonumber64,'5') p(tonumber64,'x') p(tonumber64,'18446744073709551615') p(tonumber64,'-5') p(tonumber64,'0x10') p(tonumber64,'ff',16) p(tonumber64) p(tonumber64,5) p(tonumber64,5.5) p(tonumber64,'18446744073709551616') p(tonumber64,nil) p(tonumber64,'12',1) p(tonumber64,'12',37) p(tonumber64,' 12 ') p(tonumber64,'12a') p(tonumber64,'-9223372036854775808') p(tonumber64,'-9223372036854775809') p(tonumber64,'1e5') p(tonumber64,'1.5') p(tonumber64,'1010',2) p(tonumber64,'') p(tonumber64,'12ULL') p(tonumber64,5LL) p(tonumber64,{}) p(tonumber64,'zz',36) p(tonumber64,'0b101') p(tonumber64,'0xffffffffffffffff') p(tonumber64, '-0x10') p(tonumber64,'5',10) p(tonumber64,'0x10',16) p(tonumber64,5,10) p(tonumber64,true) p(tonumber64,'-ff',16)
p(dostring,'return 1,2,...',3,4) p(dostring,'error("x")') p(dostring,'syntax error') p(dostring) p(dostring,5)
os.exit(0)
