-- Templates and static files of http.server.
local ladon = ...

-- A file that is longer is refused: a response is one text.
local FILE_BYTES = 64 * 1024 * 1024

local KINDS = {
    css = 'text/css; charset=utf-8', csv = 'text/csv; charset=utf-8', gif = 'image/gif',
    gz = 'application/gzip', htm = 'text/html; charset=utf-8', html = 'text/html; charset=utf-8',
    ico = 'image/x-icon', jpeg = 'image/jpeg', jpg = 'image/jpeg',
    js = 'application/javascript; charset=utf-8', json = 'application/json; charset=utf-8',
    md = 'text/markdown; charset=utf-8', mp4 = 'video/mp4', pdf = 'application/pdf',
    png = 'image/png', svg = 'image/svg+xml', txt = 'text/plain; charset=utf-8',
    wasm = 'application/wasm', webp = 'image/webp', woff = 'font/woff', woff2 = 'font/woff2',
    xml = 'application/xml; charset=utf-8', zip = 'application/zip',
}

local ENTITIES = {['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;',
                  ["'"] = '&#39;'}

local function escape_html(value)
    return (tostring(value):gsub('[&<>"\']', ENTITIES))
end

-- A path inside of a folder: no `..`, no zero byte. nil if it leads elsewhere.
local function inside(folder, path)
    if path:find('%z') or path:find('\\', 1, true) then
        return nil
    end
    for part in path:gmatch('[^/]+') do
        if part == '..' then
            return nil
        end
    end
    return folder .. '/' .. path:gsub('^/+', '')
end

-- A file's text; nil if it is not there, or no plain file.
local function read_file(path)
    local fio = require('fio')
    local found = fio.stat(path)
    if found == nil or not found:is_reg() then
        return nil
    end
    if found.size > FILE_BYTES then
        error('http.server: a file is longer than 64 MiB', 0)
    end
    local file = fio.open(path, {'O_RDONLY'})
    if file == nil then
        return nil
    end
    local text = file:read(found.size)
    file:close()
    return text
end

-- The chunk that a template means: texts are written as they are; a line that begins with `%` and
-- what is in `<% %>` is Lua; `<%= %>` writes a value with HTML's signs escaped, `<%== %>` without.
local function lua_of(template)
    local parts = {}
    local function put_text(text)
        if text ~= '' then
            parts[#parts + 1] = ('_w(%q)'):format(text)
        end
    end
    local function put_code(code)
        local raw, shown = code:match('^==(.*)$'), code:match('^=(.*)$')
        if raw ~= nil then
            parts[#parts + 1] = ('_w(_raw((%s)))'):format(raw)
        elseif shown ~= nil then
            parts[#parts + 1] = ('_w(_escape((%s)))'):format(shown)
        else
            parts[#parts + 1] = code
        end
    end
    local function put_inline(text)
        local at = 1
        while true do
            local start, stop, code = text:find('<%%(.-)%%>', at)
            if start == nil then
                put_text(text:sub(at))
                return
            end
            put_text(text:sub(at, start - 1))
            put_code(code)
            at = stop + 1
        end
    end
    local pending = ''
    for line, ending in template:gmatch('([^\n]*)(\n?)') do
        local code = line:match('^%s*%%(.*)$')
        -- A `%` within `<% %>` begins no line of code.
        local _, opened = pending:gsub('<%%', '')
        local _, closed = pending:gsub('%%>', '')
        if code ~= nil and opened == closed then
            put_inline(pending)
            pending = ''
            put_code(code)
        else
            pending = pending .. line .. ending
        end
    end
    put_inline(pending)
    return table.concat(parts, '\n')
end

local function compile(template, name)
    local chunk, why = loadstring(lua_of(template), '=' .. name)
    if chunk == nil then
        error(('http.server: template %s: %s'):format(name, why), 0)
    end
    return chunk
end

-- Runs a template; it sees the values, then the helpers, then the globals.
local function run(chunk, values, helpers)
    local parts = {}
    local own = {
        _w = function(text)
            parts[#parts + 1] = text
        end,
        _escape = escape_html,
        _raw = tostring,
    }
    local env = setmetatable({}, {__index = function(_, name)
        local value = own[name]
        if value == nil then
            value = values[name]
        end
        if value == nil then
            value = helpers[name]
        end
        if value == nil then
            value = _G[name]
        end
        return value
    end})
    -- The chunk may be running in another fiber: each run has a function of its own.
    setfenv(chunk, env)()
    return table.concat(parts)
end

local files = {}

-- The text of a template of the server with these values.
function files.render(httpd, request, template, name, values)
    local helpers = {}
    for helper, func in pairs(httpd.helpers) do
        helpers[helper] = function(...)
            return func(request, ...)
        end
    end
    local all = {}
    for key, value in pairs(request.stashes or {}) do
        all[key] = value
    end
    for key, value in pairs(values or {}) do
        all[key] = value
    end
    return run(compile(template, name), all, helpers)
end

-- The text of a template's file in `templates` of the server's folder.
function files.template(httpd, name)
    local path = inside(httpd.app_dir .. '/templates', name)
    local text = path and read_file(path)
    if text == nil then
        error(('http.server: there is no template %s'):format(name), 0)
    end
    return text
end

-- A response with a file of `public` in the server's folder; nil if there is none.
function files.static(httpd, path)
    local full = inside(httpd.app_dir .. '/public', path)
    local text = full and read_file(full)
    if text == nil then
        return nil
    end
    local kind = KINDS[(path:match('%.([%w]+)$') or ''):lower()] or 'application/octet-stream'
    return {status = 200, headers = {['content-type'] = kind}, body = text}
end

-- A function of a controller: of `controllers/NAME.lua` in the server's folder, else of a module.
function files.controller(httpd, module, action)
    local path = inside(httpd.app_dir .. '/controllers', module:gsub('%.', '/') .. '.lua')
    local loaded
    if path ~= nil and httpd.has_app_dir and require('fio').path.exists(path) then
        loaded = dofile(path)
    else
        local is_good
        is_good, loaded = pcall(require, module)
        if not is_good then
            error(("Can't load module '%s': %s"):format(module, tostring(loaded)), 0)
        end
    end
    if type(loaded) ~= 'table' or type(loaded[action]) ~= 'function' then
        error(("Controller '%s' doesn't contain function '%s'"):format(module, action), 0)
    end
    return loaded[action]
end

ladon.http_files = files
