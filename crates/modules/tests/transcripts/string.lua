io.stdout:setvbuf("no")
local function q(v) if type(v)=='table' then local r={} for i=1,#v do r[i]=q(v[i]) end return '{'..table.concat(r,',')..'}' elseif type(v)=='string' then return ('%q'):format(v) end return tostring(v) end
q=function(v) if type(v)=='table' then local r={} for i=1,#v do r[i]=tostring(v[i]) end return '{'..table.concat(r,',')..'}' end return tostring(v) end
local function p(f,...) local r={pcall(f,...)} for i=1,#r do r[i]=q(r[i]):gsub('^[%w/_.]+%.lua:%d+: ','') end print(table.concat(r,' | ')) end
local s=string
p(s.split,'a b  c') p(s.split,'a,b,,c',',') p(s.split,',a,',',') p(s.split,'a,b,c',',',1) p(s.split,'a,b,c',',',0) p(s.split,'a  b c',nil,1) p(s.split,'  a b  ') p(s.split,'') p(s.split,'','x') p(s.split,'abc','') p(s.split,5) p(s.split) p(s.split,'a',5) p(s.split,'a',' ','x') p(s.split,'a--b--c','--') p(s.split,'a,b',',',-1) p(s.split,'  a  b  c ',nil,2) p(s.split,'a,b,c',',',nil) p(s.split,' a ',' ') p(s.split, 'a.b.c', '.')
for _,f in ipairs{'ljust','rjust','center'} do p(s[f],'abc',6) p(s[f],'abc',7,'*') p(s[f],'abc',2) p(s[f],'abc',0) p(s[f],'abc',-1) p(s[f],'abc',6,'xy') p(s[f],'abc',6,'') p(s[f]) p(s[f],5,5) p(s[f],'abc','x') p(s[f],'abc',6,5) p(s[f],'ab',5) p(s[f],'',3,'-') p(s[f],'abc') end
for _,f in ipairs{'strip','lstrip','rstrip'} do p(s[f],'  a b \t\n') p(s[f],'') p(s[f],'   ') p(s[f],'xxaxx','x') p(s[f],'xyaxy','yx') p(s[f],5) p(s[f]) p(s[f],'a',5) p(s[f],'a','') p(s[f],'\0 a\0') p(s[f],'\v\f\ra\v') end
for _,f in ipairs{'startswith','endswith'} do p(s[f],'abcdef','abc') p(s[f],'abcdef','def') p(s[f],'abcdef','bc',2) p(s[f],'abcdef','bc',2,3) p(s[f],'abcdef','bc',2,2) p(s[f],'abc','') p(s[f],'','') p(s[f],'abc','abcd') p(s[f],'abc') p(s[f]) p(s[f],5,'x') p(s[f],'abc','c',-1) p(s[f],'abc','b',-2,-1) p(s[f],'abc','a',-10,10) p(s[f],'abc','a','x') p(s[f],'abc','c',1,'x') p(s[f],'abc','ab',1,-2) p(s[f],'abc','',10) end
p(s.hex,'abc\0\255') p(s.hex,'') p(s.hex,5) p(s.hex) p(s.fromhex,'616263') p(s.fromhex,'6162f') p(s.fromhex,'zz') p(s.fromhex,'') p(s.fromhex) p(s.fromhex,5) p(s.fromhex,'FFfe')

