-- box.schema.user and box.schema.role: users, roles and their rights.
local ladon = ...

local definitions = ladon.definitions
local map, check_options = definitions.map, definitions.check_options
local insert_numbered, drop_privileges = definitions.insert_numbered, definitions.drop_privileges

local PRIVILEGES = {
    read = 1, write = 2, execute = 4, session = 8, usage = 16, create = 32, drop = 64, alter = 128,
    reference = 256, trigger = 512, insert = 1024, update = 2048, delete = 4096,
}
local PRIVILEGE_ORDER = {
    'read', 'write', 'execute', 'session', 'usage', 'create', 'drop', 'alter', 'reference',
    'trigger', 'insert', 'update', 'delete',
}
local USER_ID_MIN = 32

local function bits_of(privileges)
    if type(privileges) == 'number' then
        return privileges
    end
    local bits = 0
    for name in tostring(privileges):gmatch('[%a]+') do
        local one = PRIVILEGES[name:lower()]
        if one == nil then
            box.error(box.error.UNKNOWN_PRIVILEGE or box.error.ILLEGAL_PARAMS, privileges)
        end
        bits = bit.bor(bits, one)
    end
    return bits
end

local OBJECT_SPACES = {
    space = '_space', ['function'] = '_func', sequence = '_sequence', user = '_user', role = '_user',
}
local NOT_FOUND = {
    space = 'NO_SUCH_SPACE', ['function'] = 'NO_SUCH_FUNCTION', sequence = 'NO_SUCH_SEQUENCE',
    user = 'NO_SUCH_USER', role = 'NO_SUCH_ROLE',
}

-- The number of an object; 0 of the universe, '' of all of a kind.
local function object_id(kind, name)
    if kind == 'universe' then
        return 0
    end
    local space = OBJECT_SPACES[kind]
    if space == nil then
        box.error(box.error.UNKNOWN_SCHEMA_OBJECT, tostring(kind))
    end
    if name == nil or name == '' then
        return ''
    end
    local found = type(name) == 'number' and box.space[space]:get({name})
        or box.space[space].index.name:get({name})
    if found == nil then
        box.error(box.error[NOT_FOUND[kind]], name)
    end
    return found[1]
end

local function grantee_of(name, kind, users)
    users = users or box.space._user
    local found
    if type(name) == 'number' then
        found = users:get({name})
    else
        found = users.index.name:get({name})
    end
    if found == nil or found[4] ~= kind then
        box.error(box.error[NOT_FOUND[kind]], name)
    end
    return found[1]
end

-- A role may be named in the place of rights.
local function rights_of(privileges, kind, name)
    if kind == nil then
        return 'execute', 'role', privileges
    end
    return privileges, kind, name
end

local function grant(grantee, privileges, kind, name, options)
    local given = privileges
    privileges, kind, name = rights_of(privileges, kind, name)
    local bits, id = bits_of(privileges), object_id(kind, name)
    local before = box.space._priv:get({grantee, kind, id})
    local had = before and before[5] or 0
    if bit.bor(had, bits) == had and before ~= nil then
        if options and options.if_not_exists then
            return
        end
        local who = box.space._user:get({grantee})[3]
        if kind == 'role' then
            box.error(box.error.ROLE_GRANTED, who, name)
        end
        box.error(box.error.PRIV_GRANTED, who, given, kind, name or '')
    end
    box.space._priv:replace({ladon.user(), grantee, kind, id, bit.bor(had, bits)})
end

local function revoke(grantee, privileges, kind, name, options)
    privileges, kind, name = rights_of(privileges, kind, name)
    local bits, id = bits_of(privileges), object_id(kind, name)
    local before = box.space._priv:get({grantee, kind, id})
    if before == nil or bit.band(before[5], bits) == 0 then
        if options and options.if_exists then
            return
        end
        local who = box.space._user:get({grantee})[3]
        if kind == 'role' then
            box.error(box.error.ROLE_NOT_GRANTED, who, name)
        end
        box.error(box.error.PRIV_NOT_GRANTED, who, privileges, kind, name or '')
    end
    local left = bit.band(before[5], bit.bnot(bits))
    if left == 0 then
        box.space._priv:delete({grantee, kind, id})
    else
        box.space._priv:replace({before[1], grantee, kind, id, left})
    end
end

local function info_of(id)
    local shown = {}
    for _, tuple in ipairs(box.space._vpriv:select({id})) do
        local names = {}
        for _, name in ipairs(PRIVILEGE_ORDER) do
            if bit.band(tuple[5], PRIVILEGES[name]) ~= 0 then
                names[#names + 1] = name
            end
        end
        local kind, object = tuple[3], tuple[4]
        local space = OBJECT_SPACES[kind]
        local found = space and object ~= '' and ladon.as_admin(function()
            return box.space[space]:get({object})
        end)
        shown[#shown + 1] = {table.concat(names, ','), kind, found and found[3] or ''}
    end
    return shown
end

local function make_user(name, kind, auth)
    local owner = ladon.user()
    return insert_numbered(box.space._user, USER_ID_MIN, function(id)
        return {id, owner, name, kind, auth, {}, math.floor(ladon.clock(0))}
    end)
end

function box.schema.user.password(password)
    return ladon.decode(ladon.password_map(password), 1)['chap-sha1']
end

local function auth_of(password)
    if password == nil then
        return map({})
    end
    return map({['chap-sha1'] = box.schema.user.password(password)})
end

function box.schema.user.create(name, options)
    options = check_options(options, {password = 'string', if_not_exists = 'boolean'})
    if box.space._user.index.name:get({name}) ~= nil then
        if options.if_not_exists then
            return
        end
        box.error(box.error.USER_EXISTS, name)
    end
    local id = make_user(name, 'user', auth_of(options.password))
    -- What every user has: the rights of `public`, a session, and its own definition.
    box.space._priv:replace({1, id, 'role', 2, 4})
    box.space._priv:replace({1, id, 'universe', 0, 24})
    box.space._priv:replace({1, id, 'user', id, 128})
end

function box.schema.user.passwd(name, password)
    local id
    if password == nil then
        password, id = name, ladon.user()
    else
        id = grantee_of(name, 'user')
    end
    box.space._user:update({id}, {{'=', 5, auth_of(password)}})
end

local function drop_grantee(id)
    for _, tuple in ipairs(box.space._priv:select({id})) do
        box.space._priv:delete({tuple[2], tuple[3], tuple[4]})
    end
    box.space._user:delete({id})
end

function box.schema.user.drop(name, options)
    local found = box.space._user.index.name:get({name})
    if found == nil or found[4] ~= 'user' then
        if options and options.if_exists then
            return
        end
        box.error(box.error.NO_SUCH_USER, name)
    end
    drop_grantee(found[1])
end

function box.schema.user.exists(name)
    local found = box.space._vuser.index.name:get({name})
    return found ~= nil and found[4] == 'user'
end

function box.schema.user.grant(name, ...)
    grant(grantee_of(name, 'user'), ...)
end

function box.schema.user.revoke(name, ...)
    revoke(grantee_of(name, 'user'), ...)
end

function box.schema.user.enable(name)
    grant(grantee_of(name, 'user'), 'session,usage', 'universe', nil, {if_not_exists = true})
end

function box.schema.user.disable(name)
    revoke(grantee_of(name, 'user'), 'session,usage', 'universe', nil, {if_exists = true})
end

function box.schema.user.info(name)
    return info_of(name and grantee_of(name, 'user', box.space._vuser) or ladon.user())
end

function box.schema.role.create(name, options)
    options = check_options(options, {if_not_exists = 'boolean'})
    local found = box.space._user.index.name:get({name})
    if found ~= nil then
        if options.if_not_exists and found[4] == 'role' then
            return
        end
        box.error(found[4] == 'role' and box.error.ROLE_EXISTS or box.error.USER_EXISTS, name)
    end
    make_user(name, 'role', map({}))
end

function box.schema.role.drop(name, options)
    local found = box.space._user.index.name:get({name})
    if found == nil or found[4] ~= 'role' then
        if options and options.if_exists then
            return
        end
        box.error(box.error.NO_SUCH_ROLE, name)
    end
    drop_privileges('role', found[1])
    drop_grantee(found[1])
end

function box.schema.role.exists(name)
    local found = box.space._vuser.index.name:get({name})
    return found ~= nil and found[4] == 'role'
end

function box.schema.role.grant(name, ...)
    grant(grantee_of(name, 'role'), ...)
end

function box.schema.role.revoke(name, ...)
    revoke(grantee_of(name, 'role'), ...)
end

function box.schema.role.info(name)
    return info_of(grantee_of(name, 'role'))
end
