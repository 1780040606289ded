io.stdout:setvbuf("no")
local u=require('uuid')
local function p(f, ...)
  local r = {pcall(f, ...)}
  for i = 1, #r do
    r[i] = tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ', ''):gsub('0x%x+', 'ADDRESS'):gsub('struct %d+', 'struct N'):gsub('builtin#%d+', 'ADDRESS')
  end
  print(table.concat(r, ' | '))
end
local s='c8f0fa1f-da29-438c-a040-393f1126ad39'
local x=u.fromstr(s)
print(x,type(x),x:str(),#x:bin(),x:bin():hex(),x:bin('l'):hex(),x:bin('b'):hex(),x:bin('n'):hex(),x:bin('h'):hex())
print(u.frombin(x:bin()),u.frombin(x:bin('b'),'b'),u.frombin(x:bin('l'),'l'))
print(x==u.fromstr(s),x==u.NULL,x==s,x==nil,x:isnil(),u.NULL:isnil(),u.NULL)
p(u.fromstr,'x') p(u.fromstr,5) p(u.fromstr) p(u.fromstr,s:upper()) p(u.fromstr,s..'0') p(u.fromstr,s:sub(1,35)) p(u.fromstr,'c8f0fa1f-da29-438c-a040-393f1126ad3g') p(u.fromstr,'c8f0fa1fda29438ca040393f1126ad39')
p(u.frombin,'x') p(u.frombin,5) p(u.frombin) p(u.frombin,x:bin(),'q') p(x.bin) p(x.str) p(x.isnil) p(x.str,5) p(x.bin,5)
p(function() return x<u.NULL end) p(function() return x<=u.NULL end) p(function() return x>5 end) p(function() return x=='a' end) p(function() return x+1 end) p(function() return x.foo end) p(function() return x.time_low end) p(function() return #x end) p(function() return x..'' end) p(function() x.foo=1 end)
print(#u.bin(),#u.str(),type(u.new()),type(u()), u.new()==u.new())
print(u.fromstr'00000000-0000-0000-0000-000000000000'==u.NULL)
local a=u.new() print(a:str():sub(15,15)) p(a.bin,a,'x') print(x:str()==tostring(x)) 
p(u.bin,'q')  p(u.isnil)
print(require('ffi').typeof(x))

os.exit(0)
