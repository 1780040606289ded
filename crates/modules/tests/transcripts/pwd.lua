io.stdout:setvbuf("no")
local pwd=require('pwd') local k={} for a in pairs(pwd) do k[#k+1]=a end table.sort(k) print(table.concat(k,' '))
local u=pwd.getpw('root') print(u.id,u.name,u.workdir,u.group.id,u.group.name,type(u.group.members)) k={} for a in pairs(u) do k[#k+1]=a end table.sort(k) print(table.concat(k,' '))
print(pwd.getpw(0).name,pwd.getgr('root').id,pwd.getgr(0).name) print(pwd.getpw('no-such-user'),pwd.getgr('no-such-group'),pwd.getpw(123456789)) print((pcall(pwd.getpw,{}))) print(#pwd.getpwall()>0,#pwd.getgrall()>0,pwd.getpwall()[1].name)

os.exit(0)
