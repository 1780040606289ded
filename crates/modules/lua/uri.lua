-- uri: the parts of an address, as Tarantool has them: host and service, a path of a socket, and
-- RFC 3986's others.

-- Characters that need no percent sign.
local UNRESERVED = '[%w%-%._~]'

-- User's part: login, perhaps a password. nil if the text is none.
local function parse_user(text, parts)
    local login, password = text:match("^([%w%-%._~%%!$&'()*+,;=]+):([%w%-%._~%%!$&'()*+,;=]*)$")
    if login == nil then
        login = text:match("^([%w%-%._~%%!$&'()*+,;=]+)$")
    end
    parts.login, parts.password = login, password
    return login ~= nil
end

-- Host and service. nil if the text is neither.
local function parse_host(text, parts)
    local ipv6, rest = text:match('^%[([%x:%.]+)%](.*)$')
    local host
    if ipv6 ~= nil then
        host, parts.ipv6 = ipv6, ipv6
    else
        host, rest = text:match('^([^:]+)(.*)$')
        if host == nil or not host:find("^[%w%-%._~%%!$&'()*+,;=]+$") then
            return nil
        end
        if host:find('^%d+$') and rest == '' then
            parts.service = host
            return true
        end
        local a, b, c, d = host:match('^(%d+)%.(%d+)%.(%d+)%.(%d+)$')
        if a and a + 0 < 256 and b + 0 < 256 and c + 0 < 256 and d + 0 < 256 then
            parts.ipv4 = host
        end
    end
    parts.host = host
    if rest == '' or rest == ':' then
        return true
    end
    local service = rest:match('^:(%d+)$') or rest:match('^:(%a[%w%-]*)$')
    parts.service = service
    return service ~= nil
end

-- The socket's path and what comes after it. nil if the text begins with none.
local function parse_socket(text, parts)
    local path, rest = text:match('^unix/:([%./][^:?#]*)(.*)$')
    if path == nil then
        return nil
    end
    parts.host, parts.service, parts.unix = 'unix/', path, path
    return rest
end

local function parse_authority(text, parts)
    local user, after = text:match('^([^@/?#]+)@(.*)$')
    if user ~= nil then
        if not parse_user(user, parts) then
            return nil
        end
        text = after
    end
    local rest = parse_socket(text, parts)
    if rest ~= nil then
        return (rest:gsub('^:', '', 1))
    end
    local host, after_host = text:match('^([^/?#]*)(.*)$')
    if host ~= '' and not parse_host(host, parts) then
        return nil
    end
    if host == '' and (user ~= nil or after_host:sub(1, 1) == '/') then
        return nil
    end
    return after_host
end

local function parse_text(text)
    local parts = {}
    if text == '' or text:find('[%s%c]') then
        return nil
    end
    -- The path of a socket, perhaps behind a user.
    local user, path_of_socket = text:match('^([^@/?#]+)@(/[^?#]*)$')
    path_of_socket = path_of_socket or text:match('^/$') or text:match('^/[^/?#][^?#]*$')
    if path_of_socket ~= nil then
        parts.host, parts.service, parts.unix = 'unix/', path_of_socket, path_of_socket
        return (user == nil or parse_user(user, parts)) and parts or nil
    end
    local scheme, rest = text:match('^(%a[%w+%-.]*)://(.+)$')
    if scheme ~= nil and rest:sub(1, 1) ~= '/' then
        parts.scheme, text = scheme, rest
    elseif scheme ~= nil then
        -- As in Tarantool: without a host, the scheme is taken for one.
        parts.scheme, parts.host, text = scheme, scheme, '//' .. rest
    end
    if parts.host == nil and not text:find('^/[^/]') then
        text = parse_authority(text, parts)
        if text == nil then
            return nil
        end
    end
    local path, query, fragment = text:match('^([^?#]*)%??([^#]*)#?(.*)$')
    if path ~= '' then
        parts.path = path
    end
    if text:find('?', 1, true) and query ~= '' then
        parts.query = query
    end
    if fragment ~= '' then
        parts.fragment = fragment
    end
    return parts
end

local function unescape(text, plus)
    text = plus and text:gsub('%+', ' ') or text
    return (text:gsub('%%(%x%x)', function(digits)
        return string.char(tonumber(digits, 16))
    end))
end

local function escape(text)
    return (text:gsub('.', function(char)
        if not char:find(UNRESERVED) then
            return ('%%%02X'):format(char:byte())
        end
    end))
end

-- Values by name, each a list, as later versions of Tarantool have them.
local function parse_values(query)
    local values = {}
    for pair in query:gmatch('[^&]+') do
        local name, value = pair:match('^([^=]*)=?(.*)$')
        name = unescape(name, true)
        values[name] = values[name] or {}
        table.insert(values[name], unescape(value, true))
    end
    return values
end

local function parse(text)
    if text == nil then
        error('Usage: uri.parse(string)', 2)
    elseif type(text) ~= 'string' then
        error(("bad argument #2 to 'uri_parse' (cannot convert '%s' to 'const char *')"):format(
            type(text)), 2)
    end
    return parse_text(text)
end

local function parse_many(texts)
    if type(texts) == 'string' then
        local list = {}
        for text in texts:gmatch('[^,%s]+') do
            list[#list + 1] = text
        end
        texts = list
    elseif type(texts) ~= 'table' then
        error('Usage: uri.parse_many(string-or-table)', 2)
    end
    local result = {}
    for place, text in ipairs(texts) do
        local parts = parse_text(text)
        if parts == nil then
            return nil
        end
        result[place] = parts
    end
    return result
end

local function format(uri, with_password)
    local out = {}
    local function add(...)
        for place = 1, select('#', ...) do
            out[#out + 1] = (select(place, ...))
        end
    end
    if uri.scheme ~= nil then
        add(uri.scheme, '://')
    end
    if uri.host ~= nil then
        if uri.login ~= nil then
            add(uri.login)
            if uri.password ~= nil and with_password then
                add(':', uri.password)
            end
            add('@')
        end
        add(uri.host)
        if uri.service ~= nil then
            add(':', uri.service)
        end
    end
    if uri.path ~= nil then
        add(uri.path)
    end
    if uri.query ~= nil then
        add('?', uri.query)
    end
    if uri.fragment ~= nil then
        add('#', uri.fragment)
    end
    return table.concat(out)
end

return {
    parse = parse,
    parse_many = parse_many,
    parse_values = parse_values,
    format = format,
    escape = escape,
    unescape = unescape,
}
