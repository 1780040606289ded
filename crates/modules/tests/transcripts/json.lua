io.stdout:setvbuf("no")
local json=require('json')
local function p(f, ...)
  local r = {pcall(f, ...)}
  for i = 1, #r do
    r[i] = tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ', ''):gsub('0x%x+', 'ADDRESS'):gsub('struct %d+', 'struct N'):gsub('builtin#%d+', 'ADDRESS')
  end
  print(table.concat(r, ' | '))
end
local t={} for i=0,255 do t[#t+1]=string.char(i) end
print(json.encode(table.concat(t)))
local e=json.encode
p(e,1) p(e,1.5) p(e,1e15) p(e,1e300) p(e,-1e15) p(e,2^63) p(e,2^64) p(e,-2^63) p(e,1/3) p(e,1/0) p(e,-1/0) p(e,0/0) p(e,1ULL) p(e,-1LL) p(e,18446744073709551615ULL)
p(e,nil) p(e) p(e,json.NULL) p(e,true) p(e,print) p(e,io.stdout) p(e,coroutine.create(print)) p(e,require('ffi').new('char[5]')) p(e, require('ffi').new('float',1.25)) p(e, require('ffi').cast('const char *','abc')) p(e,require('ffi').cast('void *',5))
p(e,{}) p(e,{1,2,3}) p(e,{a=1}) p(e,{[1]=1,[5]=2}) p(e,{[1.5]=1}) p(e,{[true]=1}) p(e,{[-1]=1}) p(e,{[json.NULL]=1}) p(e,{[5ULL]=1})
p(e,setmetatable({a=1},{__serialize='seq'})) p(e,setmetatable({a=1},{__serialize='x'})) p(e,setmetatable({a=1},{__serialize=function(x) return 'f' end}))  p(e,setmetatable({a=1},{__serialize=function(x) error('boo') end})) p(e,setmetatable({a=1},{__serialize=5}))
local d={} local c=d for i=1,127 do c[1]={} c=c[1] end p(e,d) c[1]={} p(e,d)
p(e,{1},{encode_max_depth=0}) p(e,{{1}},{encode_max_depth=1}) p(e,{{1}},{encode_max_depth=1,encode_deep_as_nil=true}) p(e,{a=1/3},{encode_number_precision=5}) p(e,1,{x=1}) p(e,1,5) p(e,1/0,{encode_invalid_numbers=false})
p(e,print,{encode_invalid_as_nil=true}) p(e,{print},{encode_use_tostring=true})
p(e,{[1]=1,[100]=2},{encode_sparse_convert=false})
p(e,{1,2,3,nil,5})
p(e,1.0e-7) p(e,123456789.123456789) p(e, 1e14) p(e,99999999999999) p(e,-0.0) p(e,0.1)
local d=json.decode
for _,s in ipairs{'1','1.5','-1','1e5','12345678901234567890','-9223372036854775808','99999999999999','100000000000000','-100000000000000','18446744073709551616','123456789012345678901234','0x10','01','-','1.','.5','+1','nan','NaN','inf','Infinity','-Infinity','-inf','"a"','"\\u0041\\n\\/"','"\\ud83d\\ude00"','"\\ud83d"','"\\udc00"','"\\u00"','"\\x"','"abc','"a\nb"','[1,2','[1,2,]','[,]','[]','{}','{"a":1}','{"a"}','{a:1}','{"a":1,}','{1:2}','[1 2]','','   ','null','nul','true','tru','false','[1]x','[1] 2','{"a":','{"a":1','\0','"\\u0000"','[null]','{"1":1}',"'a'",'[1,,2]','\1','/* */1','1 // x','"\255"','[nan]','1e999','-1e999','1E+2','1e','--1','"\\ud800\\u0041"','}'} do print(s) p(d,s) end
p(d) p(d,1) p(d,nil) p(d,{}) p(d,'[1]',{decode_max_depth=0}) p(d,'[[1]]',{decode_max_depth=1}) p(d,'nan',{decode_invalid_numbers=false}) p(d,string.rep('[',200)) p(d,string.rep('[',128)..string.rep(']',128)) p(d,string.rep('[',127)..string.rep(']',127))
print(getmetatable(d('[1]')).__serialize,getmetatable(d('{}')).__serialize, getmetatable(d('[1]',{decode_save_metatables=false})))
print(e(d('{}')),e(d('[]')), e(d'{"b":[null,1,null]}'))
print(type(d('12345678901234567890')),type(d('100000000000000')),type(d('99999999999999')))
local j=json.new() p(j.cfg,{encode_max_depth=1}) p(j.encode,{{{}}}) p(json.encode,{{{}}}) p(j.cfg,5) p(j.cfg,{foo=1}) p(j.cfg,{encode_max_depth='x'}) p(j.cfg,{encode_max_depth=-1}) p(j.cfg)
local k={} for a,b in pairs(json.cfg) do k[#k+1]=a..'='..tostring(b) end table.sort(k) print(table.concat(k,' ')) 
print(j.cfg.encode_max_depth)
local uuid=require('uuid') p(e,uuid.fromstr('c8f0fa1f-da29-438c-a040-393f1126ad39')) p(e,require('decimal').new('1.50'))
p(e,setmetatable({},{__index=function() return 5 end})) p(e,setmetatable({[1]=1},{__tostring=function() return 'ts' end}),{encode_use_tostring=true}) p(e,{a={b={c=json.NULL}}}) p(e,setmetatable({a=1},{__serialize='seq'}),{encode_load_metatables=false})
p(e,'\xff\xfe') p(e,{['a"b']=1}) p(json.new,5) p(e,json.array_mt) p(e,setmetatable({},json.map_mt))
print(json.array_mt.__serialize,type(json.array_mt.__newindex))
p(d,'{"a":1,"b":tru}') p(d,'[1,\n2,\nx]') p(d,'"a\\')
p(e,5,nil) p(d,'5',nil) p(d,'5',5)
for _,s in ipairs{'-nan','infx','1.e5','1.5.5','0','-0','0.5','-01','00','1e5x','0e1','[1 1.5]','[1 -1]','[1 "a"]','[1 true]','[1 null]','[1 [',"[1 {",'[1 :','{"a" 1','{"a"::','{"a":1 "b"','{"a":1,5','\n\n{\n"a" 1','"a\nb" x','{"a":\n\n  "x\ny" 5}','12abc','-abc','"\\u12','"\\ud83d\\u','"\\','[1,\n\n2 3]','"\\ud800x"','"\\uDBFF\\uDFFF"','\t1','\r1','\v1','\f1','1\f','{"a":1,"a":2}','[true,false,null,"x"]','1e-400','123.456e2','-0.0','4.9e-324','[1.5 1]','[1 18446744073709551615]','-18446744073709551615','-9223372036854775809'} do io.write(s,'\n') p(d,s) end
local s=d'{"a":1,"a":2}' print(s.a)
print(json.encode(d('[1.0,2.5e3]')), json.encode{a=function() end and 1})
p(json.encode, {1,2}, {encode_load_metatables=false})
p(json.encode, setmetatable({1,2},{__serialize='map'}), {encode_load_metatables=false})
p(json.encode, 1.5, {encode_number_precision=200})
p(json.encode, 1.5, {encode_number_precision=0})
p(json.encode,1/3,{encode_number_precision=17})
os.exit(0)
