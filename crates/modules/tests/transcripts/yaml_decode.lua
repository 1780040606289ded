io.stdout:setvbuf("no")
local yaml=require('yaml') local json=require('json')
local function p(f,...) local r={pcall(f,...)} for i=1,#r do local v=r[i] if type(v)=='table' then v=json.encode(v) end r[i]=tostring(v):gsub('^[%w/_.]+%.lua:%d+: ','') end print(table.concat(r,' | ')) end
local d=yaml.decode
for _,s in ipairs{'1','1.5','-1','0x10','1e3','abc','~','null','','true','false','yes','no','on','Yes','"1"',"'a'",'[1,2]','{a: 1}','a: 1','- 1\n- 2','--- 1\n...','--- 1\n--- 2','--- 1\n...\n--- 2\n...','- &a [1]\n- *a','*a','a: b: c','[1','{a','- a\n b','|\n a\n b','>\n a\n b\n','a: |\n  x\n  y','!!binary aGk=','!!str 5','!!int "5"','!!float 1','!!bool yes','!!null x','!foo 1','"\\x41\\n"','? a\n: b','1: 2','12345678901234567890','99999999999999999999','100000000000000','.inf','-.inf','.nan','nan','inf','0o7','1_0','2001-01-01','\t1','a\tb','%TAG !e! x\n--- 1','# c\n1','- 1\n# c\n- 2','{a: 1, a: 2}','- - 1\n  - 2','&a a','- &a 1\n- *a','<<: {a: 1}','@a','`a','a: "b','\255','- 1\n-2','key: [a, b, {c: d}]','--- a\n... x','---\n- 1\n...\n','+5','1.','.5','0b11','NULL','Null','TRUE','-','- ','- \n- ','{}','[]',"{'a': 1}",'a: ','[a, , b]','[a,]','"a\n  b"','!!map {a: 1}','!!seq [1]','!!set {a}'} do io.write(s:gsub('\n','\\n'),'\t') p(d,s) end
p(d) p(d,5) p(d,nil) p(d,{}) p(d,'1',{tag_only=true}) p(d,'%TAG !e! x\n--- 1',{tag_only=true}) p(d,'1',5)
os.exit(0)
