io.stdout:setvbuf("no")
local yaml=require('yaml')
local function p(f,...) local r={pcall(f,...)} for i=1,#r do r[i]=tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ','') end print(table.concat(r,' | ')) end
local e=yaml.encode
local list={1,1.5,-5,1e15,1e300,true,false,'abc','','null','~','true','yes','no','on','1','1.5','1e5','a b',' a','a ','a\nb','a\nb\n','\n','a: b','a:b','- a','-','#a','a #b','a#b','[a]','{a}','a,b','"q"',"'q'",'%x','@x','`x','!x','&x','*x','|x','>x','?x','? x','a\tb','\t','\0','\255\254','привет','0x10','.inf','.nan','nan','inf','---','...','--- a','a\r\nb','=','<<','2001-01-01','12:30','1_000','0b1','0o7','long '..('word '):rep(30),('x'):rep(100),'a\n  b\n',' a\nb','y','n','Y','NULL','Null','True','TRUE','+1','-1','1.','.5','a\\b','\27[0m','a\nb\n\n','\na','trailing: ',"it's", 'a"b', ':', '::', 'a:', '18446744073709551616','é','\226\128\168','\240\159\152\128','0','00','1e','e1','-.inf','0.0','\127'}
for _,v in ipairs(list) do p(e,v) end
p(e,{}) p(e,{1,2}) p(e,{a=1}) p(e,{{1,2},{3}}) p(e,{a={1,2}}) p(e,{a={b={c=1}}}) p(e,{{a=1}}) p(e,{{},{a={}}}) p(e,yaml.NULL) p(e,nil) p(e) p(e,{1,yaml.NULL,nil,4}) p(e,1ULL) p(e,-1LL) p(e,18446744073709551615ULL) p(e,1/0) p(e,-1/0) p(e,0/0)
p(e,setmetatable({1,2},{__serialize='seq'})) p(e,setmetatable({1,{2}},{__serialize='sequence'})) p(e,setmetatable({a={b=1}},{__serialize='map'})) p(e,setmetatable({a=1},{__serialize='mapping'})) p(e,setmetatable({1},{__serialize=function() return 'x' end})) p(e,setmetatable({},{__serialize='x'})) p(e,{setmetatable({1,2},{__serialize='seq'}),setmetatable({a='x y'},{__serialize='map'})}) p(e,{setmetatable({},{__serialize='seq'}),setmetatable({},{__serialize='map'})})
p(e,print) p(e,{print}) p(e,io.stdout) p(e,require('ffi').new('char[2]'))
local t={1} p(e,{t,t}) local u={} u[1]=u p(e,u) local m={x=1} p(e,{m,m,{m}}) local s={'z'} p(e,{s,{k=s}})
local d={} local c=d for i=1,127 do c[1]={} c=c[1] end p(function() return #e(d) end) c[1]={} p(function() return #e(d) end)
p(e,{[1]=1,[100]=2}) p(e,{[1.5]=2}) p(e,{[true]=2}) p(e,{[-1]=2}) p(e,{['a b']=2}) p(e,{['1']=2}) p(e,{['null']=2}) p(e,{['a: b']='c'}) p(e,{['']=1})
p(e,{a='x\ny'}) p(e,{'x\ny'}) p(e,{a='x\ny\n'}) p(e,{'a\n'}) p(e,{{'a\nb'}})
p(e,require('uuid').fromstr('c8f0fa1f-da29-438c-a040-393f1126ad39')) p(e,require('decimal').new('1.50')) 
p(e,1,{}) p(e,1,{tag_handle='!e!',tag_prefix='x'}) p(e,1,{tag_handle='!e!',tag_prefix='tag:x.io,2018:y'}) p(e,1,5) p(e,{1},{tag_handle='!print!',tag_prefix='tag:tarantool.io/x,2018'})
os.exit(0)
