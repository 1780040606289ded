io.stdout:setvbuf("no")
local u=require('utf8') local k={} for a in pairs(u) do k[#k+1]=a end table.sort(k) print(table.concat(k,' ')) print(u==utf8, u.char_pattern)
local function p(f,...) local r={pcall(f,...)} for i=1,#r do r[i]=tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ','') end print(table.concat(r,' | ')) end
local s='Абв a\204\129ё😀'
p(u.len,s) p(u.len,s,3) p(u.len,s,2) p(u.len,s,1,4) p(u.len,s,-1) p(u.len,s,-4) p(u.len,'') p(u.len,'a\255b') p(u.len,5) p(u.len) p(u.len,s,100) p(u.len,s,1,100) p(u.len,'abc',4) p(u.len,'abc',5) p(u.len,'abc',0) p(u.len,'abc',3,1)
p(u.sub,s,1,3) p(u.sub,s,2) p(u.sub,s,-2) p(u.sub,s,-3,-2) p(u.sub,s,0) p(u.sub,s,5,2) p(u.sub,s,100) p(u.sub,'a\255b',1,2) p(u.sub,'abc') p(u.sub) p(u.sub,'abc',1.5) p(u.sub,'abc','x') p(u.sub,'abc',-100,2)
p(u.upper,s) p(u.lower,s) p(u.upper,'straße') p(u.upper) p(u.lower,5) p(u.upper,'ﬁ') p(u.lower,'ΑΣ') p(u.upper,'\255') p(u.upper,'')
p(u.char,65,1046,0x1f600) p(u.char) p(u.char,-1) p(u.char,0x110000) p(u.char,0xd800) p(u.char,'a')
for _,f in ipairs{'isalpha','isdigit','islower','isupper'} do for _,c in ipairs{'a','A','1','Ж','ж','٣','_','😀','ß',65,0x416,'ab','',-1,0x110000,'\255','é'} do p(u[f],c) end p(u[f]) p(u[f],{}) end
p(u.cmp,'a','b') p(u.cmp,'a','A') p(u.cmp,'b','A') p(u.cmp,'ё','е') p(u.cmp,'a','a') p(u.cmp,'a\255','a') p(u.cmp) p(u.cmp,'a') p(u.casecmp,'a','A') p(u.casecmp,'Ж','ж') p(u.casecmp,'a','b') p(u.casecmp,'straße','STRASSE') p(u.casecmp,'é','e') p(u.casecmp,5,'a') p(u.cmp,'','a') p(u.cmp,'a b','ab') p(u.cmp,'1','a')
for pos,c in u.next,'aЖ😀' do print(pos,c) end p(u.next,'abc') p(u.next,'abc',1) p(u.next,'abc',4) p(u.next,'abc',5) p(u.next,'abc',0) p(u.next,'Ж',2) p(u.next,'') p(u.next,'\255') p(u.next) p(u.next,'abc',-1)

do
local u=require('utf8')
local s='Абв a\204\129ё😀'
local function p(...) local n=select('#',...) local r={...} for i=1,n do r[i]=tostring(r[i]) end print(n,table.concat(r,' ')) end
p(u.len(s,2)) p(u.len(s,1,4)) p(u.len(s,-1)) p(u.len(s,-4)) p(u.len('a\255b')) p(u.len(s,100)) p(u.len(s,1,100)) p(u.len('abc',4)) p(u.len('abc',5)) p(u.len('abc',0)) p(u.len('abc',-5)) p(u.len('abc',1,-5)) p(u.len('abc',3,1)) p(u.len('abc',2,2)) p(u.len('Жb',1,1)) p(u.len('Жb',1,2)) p(u.len('bЖ',2,2)) p(u.len('\237\160\128')) p(u.len('\240\159')) p(u.len('abc',1,-2)) p(u.len('abЖ',1,-2)) p(u.len('abЖ',1,-1)) p(u.len('abc',-2,-1)) p(u.len('abc', 4,4)) p(u.len('abc', 4, 3)) p(u.len('abc',1,0)) p(u.len('abc', 1, 4)) p(u.len('',1)) p(u.len('',0)) p(u.len('',2)) p(u.len('',1,-1))
p(u.next('abc',4)) p(u.next('abc',5)) p(u.next('Ж',2)) p(u.next('')) p(u.next('\255')) p(u.next('abc',-3)) p(u.next('abc',-4)) p(u.next('Жb',-1)) p(u.next('a\255',2)) p(u.next('ab',0))
p(u.isdigit('ab')) p(u.isalpha('')) p(u.char(65,66)) p(u.sub('Абв',2,2)) p(u.sub('Абв',-1)) p(u.sub('Абв',0,1)) p(u.sub('Абв',1,0)) p(u.sub('Абв',-5,-2)) p(u.sub('a\255b',2,3)) p(u.sub('абв',3,100)) p(u.sub('абв',1,-10)) p(u.sub('абв',2.7)) p(u.sub('абв','2')) p(u.sub(55,1))
p(u.upper('a\255b')) p(u.lower('\240\159X')) p(u.isupper('Ǆ')) p(u.isupper('ǅ')) p(u.islower('ª')) p(u.isalpha('ª')) p(u.isdigit('²')) p(u.isdigit('Ⅷ')) p(u.isalpha('Ⅷ')) p(u.isupper('Ⅷ')) p(u.isalpha('中')) p(u.isalpha('ʰ')) p(u.isalpha('\205\133'))

end
os.exit(0)
