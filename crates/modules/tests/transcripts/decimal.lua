io.stdout:setvbuf("no")
local d=require('decimal')
local function p(f, ...)
  local r = {pcall(f, ...)}
  for i = 1, #r do
    r[i] = tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ', ''):gsub('0x%x+', 'ADDRESS'):gsub('struct %d+', 'struct N'):gsub('builtin#%d+', 'ADDRESS')
  end
  print(table.concat(r, ' | '))
end
local n=d.new
for _,s in ipairs{'0','1','-1','1.50','00012','.5','5.','1e5','1E-5','1e38','1e37','1e-38','1e-39','123456789012345678901234567890123456789','12345678901234567890123456789012345678','0.1234567890123456789012345678901234567899','','abc',' 1','1 ','nan','inf','-0','-0.0','0.00','1.2.3','+5','0e10','1e-100','1e100','1.5e-3', '100e-2','0x10','1_0','-','99999999999999999999999999999999999999.9', '1e39','9e37','0.000000000000000000000000000000000000001','5e-39','4e-39'} do io.write(s,'\t') p(n,s) end
p(n) p(n,1) p(n,1.5) p(n,0.1) p(n,1/3) p(n,1e20) p(n,1e38) p(n,1e37) p(n,0/0) p(n,1/0) p(n,1ULL) p(n,-5LL) p(n,18446744073709551615ULL) p(n,true) p(n,nil) p(n,{}) p(n,n'1.5') p(n,1e-10) p(n,123456.789) p(n,-0.0) p(n,1e15) p(n,1.0e17) p(n,1e-40)  p(n,3.14159265358979)
p(n,require'ffi'.new('float',1.5)) p(n,require("json").NULL) p(n,require'ffi'.new('int8_t',-3)) p(n,1,2)
local a,b=n'10.5',n'3'
print(a+b,a-b,a*b,a/b,a^b,-a,a==b,a<b,a<=b,a>b, a==n'10.50', b==3, b<4, 2<b, b+1, 1+b, b+'1.5', b*2LL, b/2ULL)
p(function() return a+{} end) p(function() return a+'x' end) p(function() return a+nil end) p(function() return a%b end) p(function() return #a end) p(function() return a..b end) p(function() return a=='x' end) p(function() return a==nil end) p(function() return a<'x' end) p(function() return a=={} end) p(function() return a/0 end) p(function() return n'1e37'*100 end) p(function() return n'99999999999999999999999999999999999999'+1 end) p(function() return n(2)^0.5 end) p(function() return n(2)^-1 end) p(function() return n(-2)^0.5 end) p(function() return n(0)^0 end) p(function() return n(10)^38 end) p(function() return n(10)^37 end) p(function() return a==require("json").NULL end) p(function() return a<nil end) p(function() return a() end) p(function() return a.foo end) p(function() return a.abs end) p(function() a.x=1 end)
for _,f in ipairs{'abs','exp','is_decimal','ln','log10','precision','scale','sqrt','trim'} do for _,v in ipairs{'0','1','-1','2','10','0.5','100.00','-2.50','1e10','88','1e30','0.001','12345.6789'} do io.write(f,' ',v,'\t') p(d[f],n(v)) end  io.write(f) p(d[f]) p(d[f],5) p(d[f],'5') p(d[f],'x') p(d[f],{}) p(d[f],1ULL) p(d[f],1,2) end
for _,v in ipairs{'1.2345','1.25','1.35','-1.25','-1.35','100','0.005','9.99','123456'} do for _,s in ipairs{0,1,2,10,-1,-2,38,39} do io.write(v,' ',s,'\t') p(d.round,n(v),s) p(d.rescale,n(v),s) end end
p(d.round) p(d.round,1) p(d.round,n'1') p(d.round,n'1','x') p(d.round,n'1',1.5) p(d.rescale,n'1') p(d.rescale,5,2) p(d.round,5.25,1) p(d.round,n'1',-39) p(d.rescale,n'1',-1) p(d.round,n'1',nil)
print(type(a), tostring(a))
p(d.is_decimal,'1') p(d.is_decimal,nil) p(d.is_decimal,{})
for _,v in ipairs{'2','3','0.5','1.5','7','10','1234567890','1e-5'} do print(v,d.exp(n(v)>n'80' and 1 or n(v)),d.ln(v),d.log10(v),d.sqrt(v),n(v)^'1.5', n(1)/v) end
p(d.trim,n'100.00') p(d.trim,n'1e5') p(d.trim,n'0.00')
p(d.precision,n'0.001') p(d.precision,n'100') p(d.scale,n'1e5') p(d.scale,n'1e-5') p(d.precision,n'1e5') p(d.precision,n'123.4500')
print(n'1e5', n'1e20', n'1e-20', n'123e10', n'0.1e-10') 
print(n'1'/3, n'2'/3, n'1'/7, n'100'/7, n'1e20'/3, n'1'/n'1e20', n'10'/2, n'10.00'/2, n'1.0'/4, n'1'/8, n'7'/n'7.00',n'123456789012345678901234567890'/n'0.00001',n'6'/n'2e0',n'600'/n'2')
print(n'1.10'+n'2.2', n'1.10'*n'2.20', n'0.1'-n'0.1', n'1e-38'*n'0.1', n'1e-20'*n'1e-20', n'1.5e-38'+1)
print(n'-5.5'*0, -n'0')
os.exit(0)
