-- box: SQL, facts about the server, its end, and the program's file
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/).
local ladon = ...

local function absent(name)
    return function()
        box.error(box.error.UNSUPPORTED, 'Ladon', name)
    end
end

-- SQL.
local DATA, METADATA, SQL_INFO = 0x30, 0x32, 0x42
local BIND_METADATA, BIND_COUNT, STMT_ID = 0x33, 0x34, 0x43
local COLUMN = {[0] = 'name', 'type', 'collation', 'is_nullable', 'is_autoincrement', 'span'}

local function columns(described)
    local shown = {}
    for at, column in ipairs(described) do
        local one = {}
        for key, name in pairs(COLUMN) do
            one[name] = column[key]
        end
        shown[at] = one
    end
    return shown
end

-- An error of a statement is a result, as in Tarantool.
local function answered(is_done, reply)
    if is_done then
        return ladon.decode(reply, 1)
    elseif ladon.is_error(reply) then
        return nil, reply
    end
    error(reply, 0)
end

-- Statements that were prepared: their texts by number, by session.
local statements = {}
local STATEMENTS_MAX, TEXT_BYTES_MAX = 1000, 5 * 1024 * 1024

function ladon.forget_statements(id)
    statements[id] = nil
end

local function own_statements()
    local id = box.session.id()
    local own = statements[id] or {texts = {}, count = 0, bytes = 0}
    statements[id] = own
    return own
end

local function no_such_statement(id)
    return nil, box.error.new(box.error.WRONG_QUERY_ID, tonumber(id))
end

function box.unprepare(statement)
    local id = type(statement) == 'table' and statement.stmt_id or statement
    if type(id) ~= 'number' then
        error('Usage: statement:unprepare() or box.unprepare(stmt_id)', 0)
    end
    local own = own_statements()
    if own.texts[id] == nil then
        return no_such_statement(id)
    end
    own.bytes = own.bytes - #own.texts[id]
    own.texts[id], own.count = nil, own.count - 1
end

local function execute_prepared(statement, ...)
    if type(statement) ~= 'table' or type(statement.stmt_id) ~= 'number' then
        error('Usage: statement:execute([, params])', 0)
    end
    return box.execute(statement.stmt_id, ...)
end

function box.prepare(text)
    if type(text) ~= 'string' and type(text) ~= 'number' then
        error('Usage: box.prepare(sqlstring)', 0)
    end
    text = tostring(text)
    local body, err = answered(pcall(ladon.prepare, text))
    if body == nil then
        return nil, err
    end
    local id = tonumber(body[STMT_ID])
    -- All sessions of a user share what the server keeps; the texts are kept here.
    pcall(ladon.prepare, id)
    local own = own_statements()
    if own.texts[id] == nil then
        if own.count >= STATEMENTS_MAX or own.bytes + #text > TEXT_BYTES_MAX then
            return nil, box.error.new(box.error.SQL_PREPARE, 'the session has prepared too many')
        end
        own.texts[id], own.count, own.bytes = text, own.count + 1, own.bytes + #text
    end
    return {
        stmt_id = id, metadata = body[METADATA] and columns(body[METADATA]),
        params = columns(body[BIND_METADATA] or {}), param_count = tonumber(body[BIND_COUNT]),
        execute = execute_prepared, unprepare = box.unprepare,
    }
end

-- Executes a text, or a statement that was prepared, by its number. Begins the server if it has not
-- begun.
function box.execute(text, parameters)
    if not ladon.is_configured() then
        box.cfg{}
    end
    ladon.changed()
    if type(text) == 'number' then
        local own = statements[box.session.id()]
        local prepared = own and own.texts[text]
        if prepared == nil then
            return no_such_statement(text)
        end
        text = prepared
    elseif type(text) ~= 'string' then
        error('Usage: box.execute(sqlstring[, params]) or box.execute(stmt_id[, params])', 0)
    end
    local body, err = answered(pcall(ladon.execute, text, parameters))
    if body == nil then
        return nil, err
    end
    -- Tables may be others now.
    ladon.spaces()
    if body[METADATA] == nil then
        local info = body[SQL_INFO] or {}
        return {row_count = info[0], autoincrement_ids = info[1]}
    end
    local rows = {}
    for at, row in ipairs(body[DATA]) do
        rows[at] = box.tuple.new(row)
    end
    return {metadata = columns(body[METADATA]), rows = rows}
end

-- A function that runs once in the life of the data.
function box.once(key, func, ...)
    if type(key) ~= 'string' or type(func) ~= 'function' then
        error('Illegal parameters, key should be a string', 2)
    end
    local name = 'once' .. key
    if box.space._schema:get({name}) ~= nil then
        return
    end
    box.space._schema:put({name})
    return func(...)
end

function box.snapshot()
    ladon.snapshot()
    return 'ok'
end

-- Facts.
local function info()
    return (ladon.as_admin(ladon.call, 'box.info', {}))
end

local function with_listen(facts)
    facts.listen = ladon.listens
    facts.pid = ladon.pid()
    facts.schema_version = ladon.schema_version()
    return facts
end

local functions = {
    memory = function()
        return {lua = ladon.memory()}
    end,
    gc = function()
        return (ladon.as_admin(ladon.call, 'box.info.gc', {}))
    end,
}

box.info = setmetatable({}, {
    __index = function(_, key)
        if not ladon.is_configured() then
            return nil
        end
        if functions[key] ~= nil then
            return functions[key]
        end
        return with_listen(info())[key]
    end,
    __call = function()
        return with_listen(info())
    end,
    __serialize = function()
        return with_listen(info())
    end,
    __pairs = function()
        return pairs(with_listen(info()))
    end,
})

box.runtime = {
    info = function()
        return {lua = ladon.memory(), used = ladon.memory(), maxalloc = ladon.memory_max()}
    end,
}

-- Waits until the server takes writes, or takes none.
local function wait_until(is_read_only, timeout)
    local stop = timeout and ladon.clock(1) + timeout
    while box.info.ro ~= is_read_only do
        if stop and ladon.clock(1) >= stop then
            box.error(box.error.TIMEOUT)
        end
        ladon.fiber_wait(0.01)
    end
end

-- Functions that are called before the process ends, from the last one on; together they may take so
-- long.
local at_end, is_ending = {}, false
local END_TIMEOUT_S = 3

local function on_shutdown(new, old)
    local shown = ladon.triggers_called(at_end, new, old)
    ladon.want('end', #at_end > 0)
    return shown
end

local function call_at_end(code)
    ladon.background('on_shutdown_timeout', function()
        ladon.fiber.sleep(END_TIMEOUT_S)
        ladon.log(2, 'functions of box.ctl.on_shutdown take too long')
        ladon.exit(code)
    end)
    for at = #at_end, 1, -1 do
        local is_done, why = pcall(at_end[at])
        if not is_done then
            ladon.log(2, tostring(why))
            break
        end
    end
    io.stdout:flush()
    ladon.exit(code)
end

-- Ends the process once those functions have run. The fiber that asks for it does not go on.
local function finish(code)
    if #at_end == 0 then
        ladon.exit(code)
    end
    if not is_ending then
        is_ending = true
        ladon.background('on_shutdown', call_at_end, code)
    end
    while true do
        ladon.wait()
    end
end

ladon.registry['ladon.end'] = function()
    finish(0)
end

box.ctl = {
    wait_rw = function(timeout)
        wait_until(false, timeout)
    end,
    wait_ro = function(timeout)
        wait_until(true, timeout)
    end,
    on_shutdown = on_shutdown,
    on_schema_init = absent('box.ctl.on_schema_init'),
    promote = absent('box.ctl.promote'),
}

box.internal = {
    schema_version = ladon.schema_version,
}

-- The end of the process waits for nothing: what was acknowledged is in the log.
function os.exit(code)
    if code == nil or code == true then
        code = 0
    elseif code == false then
        code = 1
    end
    io.stdout:flush()
    finish(code)
end

_TARANTOOL = require('tarantool').version

-- Runs a program's file.
local function run_file(file, ...)
    local text, why
    if file == '-' then
        text = io.read('*a')
    else
        local opened
        opened, why = io.open(file, 'rb')
        if opened == nil then
            error(why, 0)
        end
        text = opened:read('*a')
        opened:close()
    end
    -- A first line for the shell; its line counts.
    text = text:gsub('^#[^\n]*', '')
    local chunk
    chunk, why = loadstring(text, '@' .. file)
    if chunk == nil then
        error(why, 0)
    end
    chunk(...)
end

-- A program, as `tarantool -e TEXT -l NAME -i FILE ARGUMENTS` runs it.
ladon.registry['ladon.program'] = function(file, is_interactive, before, executable, ...)
    arg = {[-1] = executable, [0] = file or executable, ...}
    ladon.fiber_self():name(file and file:match('[^/]*$') or 'interactive')
    for _, one in ipairs(before) do
        local is_text, text = unpack(one)
        if is_text then
            local chunk, why = loadstring(text, '=(command line)')
            if chunk == nil then
                error(why, 0)
            end
            chunk()
        else
            require(text)
        end
    end
    if file ~= nil then
        run_file(file, ...)
    end
    if is_interactive then
        require('console').start()
        -- The process ends with its console.
        os.exit(0)
    end
end
