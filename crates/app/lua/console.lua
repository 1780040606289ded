-- console: statements as lines of text, answers as YAML or Lua
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/console/).
local ladon = ...

-- A statement that is longer is refused.
local STATEMENT_BYTES, GREETING_BYTES = 4 * 1024 * 1024, 128
-- Tables are shown so deep as Lua; deeper ones as comments.
local DEPTH_MAX = 64

-- A line that ends a connection.
local LEAVE = '~.'

local HELP = [[
To get help, see the Tarantool manual at https://tarantool.io/en/doc/
To start the interactive Tarantool tutorial, type 'tutorial()' here.

Available backslash commands:

  \set language <language>   -- set language (lua or sql)
  \set output <format>       -- set output format (lua[,line|block] or yaml)
  \set delimiter <delimiter> -- set expression delimiter
  \help                      -- show this screen
  \quit                      -- quit interactive console]]

local console = {}
local default_format = {name = 'yaml'}
local default_language = 'lua'

-- Answers as YAML.

-- What YAML has not is shown as a text.
local yaml
local function own_yaml()
    if yaml == nil then
        yaml = require('yaml').new()
        yaml.cfg({encode_use_tostring = true, encode_invalid_as_nil = true})
    end
    return yaml
end

local function yaml_of(is_good, count, values)
    local yaml = own_yaml()
    if not is_good then
        local err = values[1]
        return yaml.encode({{error = err == nil and box.NULL or tostring(err)}})
    end
    if count == 0 then
        return '---\n...\n'
    end
    local shown = {}
    for at = 1, count do
        shown[at] = values[at] == nil and box.NULL or values[at]
    end
    return yaml.encode(shown)
end

-- Answers as Lua.

local lua_of

local KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
return then true until while]]):gmatch('%a+') do
    KEYWORDS[word] = true
end

local function key_of(key, state)
    if type(key) == 'string' and key:match('^[%a_][%w_]*$') and not KEYWORDS[key] then
        return key
    end
    return '[' .. lua_of(key, state, '') .. ']'
end

local function sorted_keys(value)
    local keys = {}
    for key in pairs(value) do
        keys[#keys + 1] = key
    end
    table.sort(keys, function(left, right)
        if type(left) == type(right) and (type(left) == 'number' or type(left) == 'string') then
            return left < right
        end
        return tostring(left) < tostring(right)
    end)
    return keys
end

local function table_of(value, state, indent)
    local parts, inner = {}, indent .. '  '
    local keys = sorted_keys(value)
    -- A plain array has no keys that are not its places.
    local is_array = #keys == #value
    for _, key in ipairs(keys) do
        local shown = lua_of(value[key], state, inner)
        parts[#parts + 1] = is_array and shown or key_of(key, state) .. ' = ' .. shown
    end
    if #parts == 0 then
        return '{}'
    end
    if state.block then
        local between = ',\n' .. inner
        return '{\n' .. inner .. table.concat(parts, between) .. '\n' .. indent .. '}'
    end
    return '{' .. table.concat(parts, ', ') .. '}'
end

local function serialized(value)
    local mt = getmetatable(value)
    local func = type(mt) == 'table' and rawget(mt, '__serialize')
    if type(func) == 'function' then
        return func(value)
    end
    return value
end

lua_of = function(value, state, indent)
    local kind = type(value)
    if kind == 'table' then
        value = serialized(value)
        kind = type(value)
    end
    if kind == 'string' then
        return ('%q'):format(value):gsub('\\\n', '\\n')
    elseif kind == 'table' then
        if state.seen[value] or #indent > 2 * DEPTH_MAX then
            return '"table" --[[' .. tostring(value) .. ']]'
        end
        state.seen[value] = true
        local shown = table_of(value, state, indent)
        state.seen[value] = nil
        return shown
    elseif kind == 'cdata' then
        if value == nil then
            return 'box.NULL'
        elseif ladon.is_tuple(value) then
            return lua_of(value:totable(), state, indent)
        end
        return (tostring(value):gsub('^(-?%d+)U?LL$', '%1'))
    elseif kind == 'number' or kind == 'boolean' or kind == 'nil' then
        return tostring(value)
    end
    return ('"%s"'):format(tostring(value))
end

local function lua_text(format, is_good, count, values)
    local state = {block = format.block, seen = {}}
    if not is_good then
        local err = values[1]
        values = {{error = err == nil and box.NULL or tostring(err)}}
        count = 1
    end
    local shown = {}
    for at = 1, count do
        shown[at] = lua_of(values[at], state, '')
    end
    return table.concat(shown, ', ') .. ';'
end

-- What a result is shown as. A value that cannot be shown is an error.
local function shown(format, is_good, count, values)
    local write = format.name == 'lua'
        and function() return lua_text(format, is_good, count, values) end
        or function() return yaml_of(is_good, count, values) end
    local is_written, text = pcall(write)
    if is_written then
        return text
    end
    local failed = {('console: an exception occurred when formatting the output: %s'):format(
        tostring(text))}
    return format.name == 'lua' and lua_text(format, false, 1, failed)
        or yaml_of(false, 1, failed)
end

-- Commands that begin with a backslash.

local function parse_format(text)
    local name, rest = text:match('^(%a+),?(.*)$')
    if name == 'yaml' and rest == '' then
        return {name = 'yaml'}
    elseif name == 'lua' and (rest == '' or rest == 'line' or rest == 'block') then
        return {name = 'lua', block = rest == 'block', options = rest}
    elseif name == 'yaml' or name == 'lua' then
        return nil, ('Wrong option "%s", expecting: line or block.'):format(rest)
    end
    return nil, ('Invalid format "%s", supported languages: lua and yaml.'):format(text)
end

local function set_output(state, value)
    if value == nil then
        return false, 'Specify output format: lua or yaml.'
    end
    local format, why = parse_format(value)
    if format == nil then
        return false, why
    end
    state.format = format
    return true, true
end

local function set_language(state, value)
    if value == nil then
        return true, state.language
    elseif value ~= 'lua' and value ~= 'sql' then
        return false, ('Invalid language "%s", supported languages: lua and sql.'):format(value)
    end
    state.language = value
    return true, true
end

local function set_delimiter(state, value)
    state.delimiter = value or ''
    return true, true
end

local SETTINGS = {output = set_output, o = set_output, language = set_language,
                  lang = set_language, l = set_language, delimiter = set_delimiter,
                  delim = set_delimiter, d = set_delimiter}

local function run_command(state, line)
    local name, setting, value = line:match('^\\(%S+)%s*(%S*)%s*(.-)%s*;?%s*$')
    if name == 'help' or name == 'h' then
        return true, HELP
    elseif name == 'quit' or name == 'q' then
        state.is_over = true
        return true, true
    elseif name == 'set' or name == 's' then
        local set = SETTINGS[setting]
        if set == nil then
            return false, setting == '' and 'Specify an option to set.'
                or ('Unknown option to set: %s.'):format(setting)
        end
        return set(state, value ~= '' and value or nil)
    end
    return false, ('Invalid command %s. Type \\help for help.'):format(line)
end

local function packed(is_good, ...)
    return is_good, select('#', ...), {...}
end

local function run_lua(line)
    local chunk = loadstring('return ' .. line)
    local why
    if chunk == nil then
        chunk, why = loadstring(line)
    end
    if chunk == nil then
        return false, 1, {why}
    end
    return packed(pcall(chunk))
end

local function run(state, line)
    if line:sub(1, 1) == '\\' then
        return packed(run_command(state, line))
    end
    local is_good, count, values
    if state.language == 'sql' then
        is_good, count, values = packed(pcall(box.execute, line))
        if is_good and count > 1 and values[1] == nil then
            is_good, values, count = false, {values[2]}, 1
        end
    else
        is_good, count, values = run_lua(line)
    end
    return is_good, count, values
end

-- Which console the running fiber belongs to.
local function current()
    return ladon.fiber.self().storage.console
end

local function new_state()
    return {
        format = default_format, language = default_language, delimiter = '', running = true,
    }
end

local function answer(state, line)
    local is_good, count, values = run(state, line)
    return shown(state.format, is_good, count, values)
end

function console.eval(line)
    if type(line) ~= 'string' then
        error('Usage: console.eval(line)', 2)
    end
    local state = current()
    if state == nil then
        -- A client's settings are its session's.
        local storage = box.session.storage
        storage.console = storage.console or new_state()
        state = storage.console
    end
    return answer(state, line)
end

function console.delimiter(text)
    local state = current()
    if state == nil then
        error('console.delimiter(): need existing console')
    end
    if text == nil then
        return state.delimiter
    elseif type(text) ~= 'string' then
        error('Usage: console.delimiter(string)', 2)
    end
    state.delimiter = text
end

function console.set_default_output(text)
    if text == nil then
        error('Nil output value passed')
    end
    local format, why = parse_format(tostring(text))
    if format == nil then
        error(why)
    end
    default_format = format
end

function console.get_default_output()
    local options = default_format.options
    return options ~= nil and options ~= '' and default_format.name .. ',' .. options
        or default_format.name
end

function console.set_default_language(name)
    if name ~= 'lua' and name ~= 'sql' then
        error(('Invalid language "%s", supported languages: lua and sql.'):format(
            tostring(name)), 2)
    end
    default_language = name
end

-- What a statement pushes goes to its console; what others push, where it went before.
local function pushed(state, value)
    if state.format.name == 'lua' then
        return '-- Push\n' .. lua_text(state.format, true, 1, {value})
    end
    return require('yaml').encode(value, {
        tag_handle = '!push!', tag_prefix = 'tag:tarantool.io/push,2018',
    })
end

local push, session_type = box.session.push, box.session.type

function box.session.push(...)
    local state = current()
    if state ~= nil and state.is_local then
        io.write(pushed(state, (...)))
        return true
    elseif state == nil or state.client == nil then
        return push(...)
    end
    return state.client:write(pushed(state, (...))) ~= nil
end

function box.session.type()
    local state = current()
    if state ~= nil and (state.is_local or state.client ~= nil) then
        return state.is_local and 'repl' or 'console'
    end
    return session_type()
end

-- What is called with a console's state when it begins, and when its connection ends.
local on_start, on_client_disconnect

-- Reads a statement: a line, or lines up to the delimiter.
local function read_statement(state, client)
    local delimiter, parts = state.delimiter, ''
    while true do
        local line = client:read({delimiter = '\n', chunk = STATEMENT_BYTES})
        if line == nil or line == '' then
            return nil
        end
        parts = parts .. line
        if #parts >= STATEMENT_BYTES then
            return nil
        end
        local text = parts:gsub('[\r\n]+$', '')
        if delimiter == '' then
            return text
        end
        if text:sub(-#delimiter) == delimiter then
            return text:sub(1, -#delimiter - 1)
        end
    end
end

-- What a console says first.
local function greeting()
    return ('Tarantool %s (Lua console)\n%s\n'):format(
        require('tarantool').version:match('^[%d.]+'), "type 'help' for interactive help")
end

-- Ends the connection of a console. Returns what there is to say of it.
local function disconnect(state, why)
    local remote = state.remote
    state.remote, state.prompt = nil, nil
    pcall(remote.close, remote)
    if on_client_disconnect ~= nil then
        pcall(on_client_disconnect, state)
    end
    return why ~= nil and shown(state.format, false, 1, {why}) or ''
end

-- Runs a statement where the console is connected to.
local function answer_of_remote(state, line)
    local remote = state.remote
    -- The answer has the output that this line asks for.
    local name, value = line:match('^\\s%a*%s+(%a+)%s+(.-)%s*;?%s*$')
    if name == 'output' or name == 'o' then
        state.format = parse_format(value) or state.format
        remote.format = state.format
    end
    local is_good, text = pcall(remote.eval, remote, line)
    if is_good then
        return text
    elseif remote.state == 'active' then
        return shown(state.format, false, 1, {text})
    end
    return disconnect(state, text)
end

-- Runs a statement. A transaction ends with it.
local function answer_alone(state, line)
    if state.remote ~= nil then
        return answer_of_remote(state, line)
    end
    local text = answer(state, line)
    if box.is_in_txn() then
        box.rollback()
    end
    return text
end

local function serve(client)
    local state = new_state()
    state.client = client
    ladon.fiber.self().storage.console = state
    if on_start ~= nil then
        on_start(state)
    end
    local head = greeting()
    client:write(head .. (' '):rep(GREETING_BYTES - #head - 1) .. '\n')
    while not state.is_over do
        local line = read_statement(state, client)
        if line == nil or line == LEAVE and state.remote == nil then
            break
        end
        local text = line == LEAVE and disconnect(state) or answer_alone(state, line)
        if client:write(text) == nil then
            break
        end
    end
    if state.remote ~= nil then
        disconnect(state)
    end
end

-- Host and port of `host:port`, `unix/:path`, or a path, with `console://` in front or not.
local function place_of(uri)
    if type(uri) == 'number' then
        return '0.0.0.0', uri
    end
    local text = tostring(uri):gsub('^console://', '')
    if text:sub(1, 1) == '/' or text:sub(1, 1) == '.' then
        return 'unix/', text
    end
    local path = text:match('^unix/:(.*)$')
    if path ~= nil then
        return 'unix/', path
    end
    local host, port = text:match('^(.*):(%d+)$')
    if host ~= nil then
        return host, port
    end
    return '0.0.0.0', text
end

-- Serves consoles at an address. Whoever reaches it has all rights: keep it local.
function console.listen(uri)
    local host, port = place_of(uri)
    local server, why = require('socket').tcp_server(host, port, {
        name = 'console', handler = serve,
    })
    if server == nil then
        error(('failed to create server %s:%s: %s'):format(host, port, tostring(why)), 2)
    end
    return server
end

-- Reads a statement from the terminal: lines up to its end, or up to the delimiter.
local function read_local(state)
    local name = state.prompt or 'tarantool'
    local text, prompt = '', name .. '> '
    while true do
        local line, why = ladon.read_line(prompt)
        if line == nil then
            if why ~= nil then
                io.stderr:write(why, '\n')
            end
            return nil
        end
        text = text .. line
        local delimiter = state.delimiter
        if delimiter ~= '' then
            if text:sub(-#delimiter) == delimiter then
                return text:sub(1, -#delimiter - 1)
            end
        elseif state.language ~= 'lua' or not ladon.is_unfinished(text) then
            return text
        end
        text, prompt = text .. '\n', (' '):rep(#name) .. '> '
    end
end

-- A console at the terminal of the process, up to its end.
function console.start()
    if current() ~= nil then
        error('console is already started', 2)
    end
    local state, storage = new_state(), ladon.fiber.self().storage
    state.is_local, storage.console = true, state
    if on_start ~= nil then
        on_start(state)
    end
    io.write(greeting())
    while not state.is_over do
        local text = read_local(state)
        if text == nil or text == LEAVE and state.remote == nil then
            if text == nil and state.remote ~= nil then
                disconnect(state)
            end
            break
        elseif text == LEAVE then
            disconnect(state)
        elseif text:find('%S') then
            io.write(answer_alone(state, text), '\n')
            io.flush()
        end
    end
    storage.console = nil
end

-- Connects the running console: to a console, or to a server's port of IPROTO. `~.` ends that.
function console.connect(uri, options)
    local state = current()
    if state == nil then
        error('console.connect() need existing console', 2)
    end
    local function print(text)
        if state.client ~= nil then
            state.client:write(text)
        else
            io.write(text)
        end
    end
    local is_good, remote = pcall(ladon.console_remote, state, uri, options or {}, print)
    if not is_good then
        if on_client_disconnect ~= nil then
            pcall(on_client_disconnect, state)
        end
        error(remote, 0)
    end
    if state.remote ~= nil then
        pcall(state.remote.close, state.remote)
    end
    state.remote = remote
    state.prompt = ('%s:%s'):format(remote.host, remote.port)
    return true
end

-- Names are always completed.
function console.ac(is_on)
    if current() == nil then
        error('console.ac(): need existing console', 2)
    elseif not is_on then
        error('console.ac: completion cannot be switched off', 2)
    end
end

local function check_hook(name, hook)
    if hook ~= nil and type(hook) ~= 'function' then
        error(('Wrong type of %s hook: %s'):format(name, type(hook)), 3)
    end
end

function console.on_start(hook)
    check_hook('on_start', hook)
    on_start = hook
end

function console.on_client_disconnect(hook)
    check_hook('on_client_disconnect', hook)
    on_client_disconnect = hook
end

ladon.module('console', function()
    return console
end)
