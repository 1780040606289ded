io.stdout:setvbuf("no")
local d=require('digest')
local c=require('crypto')
local function p(f,...) local r={pcall(f,...)} for i=1,#r do r[i]=tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ',''):gsub('[^ -~]',function(c) return ('%%%02x'):format(c:byte()) end):gsub('table: 0x%x+','TABLE') end print(table.concat(r,' | ')) end
p(d.base64_encode,'abc') p(d.base64_encode,('x'):rep(100)) p(d.base64_encode,('x'):rep(100),{nowrap=true}) p(d.base64_encode,'\255\254\253',{urlsafe=true}) p(d.base64_encode,'a',{nopad=true}) p(d.base64_decode,'YWJj') p(d.base64_decode,'YW Jj\n!') p(d.base64_decode,'__79') p(d.base64_decode,'YQ') p(d.base64_encode,'')
p(d.guava,10863919174838991,11) p(d.guava,2016238256797177309ULL,11) p(d.guava,5) p(d.guava,'a',5)
p(d.pbkdf2,'p','s') p(d.pbkdf2,'p','s',10,16) p(d.pbkdf2_hex,'p','s',10,16) p(d.pbkdf2,'p') p(d.pbkdf2,'p','s','x') p(d.pbkdf2,'p','s',10,200)
print(#d.urandom(10)) p(d.urandom) p(d.urandom,'x')
p(d.crc32,'abc') p(d.crc32.crc_begin) p(d.crc32.update,5,'a') 
p(d.crc32.default) local cc=d.crc32.new() cc:update('abc') print(cc:result()) cc:update('d') print(cc:result()) local c2=cc:copy() print(c2:result()) cc:clear() print(cc:result()) p(d.crc32.new,'x') p(cc.update,cc) 
p(d.murmur,'abc') local mm=d.murmur.new{seed=13} mm:update('abc') print(mm:result()) mm:update('x') print(mm:result()) local m2=mm:copy() m2:update('q') print(m2:result(),mm:result()) mm:clear() print(mm:result()) print(d.murmur.default_type) p(d.murmur.new,{seed='x'})
p(d.md5_hex,'abc') p(d.md4_hex,'abc') p(d.sha1_hex,'') p(d.sha512_hex,'x') p(d.sha224_hex,'x') p(d.sha_hex,'x')
for _,n in ipairs{'md5','sha1','sha224','sha256','sha384','sha512'} do for _,v in ipairs{'','abc',('x'):rep(200)} do p(d[n],v) p(d[n..'_hex'],v) end p(d[n]) p(d[n..'_hex'],5) end
for i=0,9 do p(d.murmur,('abcdefghi'):sub(1,i)) p(d.crc32,('abcdefghi'):sub(1,i)) p(d.base64_encode,('abcdefghi'):sub(1,i)) end for _,n in ipairs{53,54,55,107,108,109} do p(d.base64_encode,('x'):rep(n)) p(function() return d.base64_decode(d.base64_encode(('x'):rep(n)))==('x'):rep(n) end) end
for _,b in ipairs{0,1,2,7,100,65536,-1} do p(d.guava,123456789ULL,b) end p(d.crc32_update,d.crc32.crc_begin,'abc') p(d.crc32_update,5,'') p(d.crc32_update)
local a=d.aes256cbc p(a.encrypt,'test','12345678901234567890123456789012','1234567890123456') p(a.encrypt,'t','1','2') p(a.decrypt,a.encrypt('test','12345678901234567890123456789012','1234567890123456'),'12345678901234567890123456789012','1234567890123456') p(a.decrypt,'xx','12345678901234567890123456789012','1234567890123456') p(a.encrypt,'t','12345678901234567890123456789012','2') p(a.encrypt)
print('crypto')
p(c.digest.md5,'abc') p(c.digest.md5) p(c.hmac.md5,'k','abc') p(c.hmac.md5) p(c.hmac.md5,'k') p(c.hmac.sha1_hex,'k','x') local h=c.hmac.sha1.new('k') p(h.update,h,'x') p(h.result,h) p(h.update,h,'x') p(h.free,h) p(h.update,h,'x')
local h=c.digest.sha1.new() p(h.update,h,'x') p(h.init,h) p(h.update,h,'y') p(h.result,h) p(h.result,h) p(h.free,h) p(h.result,h) p(h.update,h,5) p(function() return c.digest.foo end) p(c.hmac.sha1.new)
local e=c.cipher.aes128.cbc p(e.encrypt,'abc','1234567890123456','1234567890123456') p(e.decrypt,e.encrypt('abc','1234567890123456','1234567890123456'),'1234567890123456','1234567890123456') p(e.encrypt,'a','b','c') p(e.decrypt,'abc','1234567890123456','1234567890123456') p(e.encrypt.new) p(e.encrypt.new,'x') p(c.cipher.aes128.ecb.encrypt,'abc','1234567890123456','') p(c.cipher.aes128.ecb.encrypt,'abc','1234567890123456')  p(function() return c.cipher.foo end) p(function() return c.cipher.aes128.foo end) p(c.cipher.aes192.cfb.encrypt,'abc',('1'):rep(24),('1'):rep(16)) p(c.cipher.aes256.ofb.encrypt,'abc',('1'):rep(32),('1'):rep(16)) p(e.encrypt,'a','1234567890123456','c')
for _,n in ipairs{'aes128','aes192','aes256'} do for _,m in ipairs{'ecb','cbc','cfb','ofb'} do local key,iv=('k'):rep(({aes128=16,aes192=24,aes256=32})[n]),m=='ecb' and '' or ('i'):rep(16) for _,len in ipairs{0,1,15,16,17,40} do local x=c.cipher[n][m].encrypt(('t'):rep(len),key,iv) p(c.digest.md5,x) p(c.cipher[n][m].decrypt,x,key,iv) end end end
local s=e.encrypt.new('1234567890123456','1234567890123456') p(s.update,s,'abc') p(s.update,s,('x'):rep(20)) p(s.result,s) p(s.update,s,'x') p(s.result,s) p(s.free,s) p(s.result,s)
local s=e.encrypt.new() p(s.update,s,'x') p(s.init,s,'1234567890123456','1234567890123456') p(s.update,s) p(s.update,s,'x') p(s.result,s) 
os.exit(0)
