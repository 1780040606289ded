-- pwd: the users and the groups of the system.
local ffi = require('ffi')

ffi.cdef([[
struct passwd {
    char *pw_name; char *pw_passwd; unsigned int pw_uid; unsigned int pw_gid; char *pw_gecos;
    char *pw_dir; char *pw_shell;
};
struct group { char *gr_name; char *gr_passwd; unsigned int gr_gid; char **gr_mem; };
struct passwd *getpwnam(const char *name);
struct passwd *getpwuid(unsigned int uid);
struct passwd *getpwent(void);
void setpwent(void);
void endpwent(void);
struct group *getgrnam(const char *name);
struct group *getgrgid(unsigned int gid);
struct group *getgrent(void);
void setgrent(void);
void endgrent(void);
unsigned int getuid(void);
unsigned int getgid(void);
]])

local C = ffi.C
local pwd = {}

local function text_of(pointer)
    return pointer ~= nil and ffi.string(pointer) or ''
end

local function group_of(found)
    if found == nil then
        return nil
    end
    local members, at = {}, 0
    while found.gr_mem ~= nil and found.gr_mem[at] ~= nil do
        members[at + 1] = ffi.string(found.gr_mem[at])
        at = at + 1
    end
    return {id = tonumber(found.gr_gid), name = text_of(found.gr_name), members = members}
end

local function user_of(found)
    if found == nil then
        return nil
    end
    local user = {
        name = text_of(found.pw_name), id = tonumber(found.pw_uid),
        workdir = text_of(found.pw_dir), shell = text_of(found.pw_shell),
    }
    user.group = group_of(C.getgrgid(found.pw_gid))
    return user
end

local function look_up(what, usage, mine, by_id, by_name)
    if what == nil then
        return by_id(mine())
    elseif type(what) == 'number' then
        return by_id(what)
    elseif type(what) == 'string' then
        return by_name(what)
    end
    error('Bad user type (expected number/string/nil), use ' .. usage, 3)
end

-- The user of a number or a name; the process' own without.
function pwd.getpw(what)
    return user_of(look_up(what, 'pwd.getpw', C.getuid, C.getpwuid, C.getpwnam))
end

-- The group of a number or a name; the process' own without.
function pwd.getgr(what)
    return group_of(look_up(what, 'pwd.getgr', C.getgid, C.getgrgid, C.getgrnam))
end

function pwd.getpwall()
    local users = {}
    C.setpwent()
    while true do
        local user = user_of(C.getpwent())
        if user == nil then
            break
        end
        users[#users + 1] = user
    end
    C.endpwent()
    return users
end

function pwd.getgrall()
    local groups = {}
    C.setgrent()
    while true do
        local group = group_of(C.getgrent())
        if group == nil then
            break
        end
        groups[#groups + 1] = group
    end
    C.endgrent()
    return groups
end

return pwd
