-- Functions that are called when tuples of a space change
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/box_space/on_replace/).
--
--   a statement of the program           called around it here
--   of a client of IPROTO, CALL          the server asks the program for it (`ladon.state`)
--   of anybody else                      the space refuses it (`set_triggers`)
local ladon = ...

-- By space: lists of functions. They are called from the last one on.
local triggers = {}
-- A statement may be in a trigger of one in a trigger.
local STATEMENTS_MAX = 3

-- By space: those whose functions are not called.
local are_off = {}
local NONE = {before = {}, replace = {}}

local put, update, delete, upsert = ladon.put, ladon.update, ladon.delete, ladon.upsert

local function finish_native(before, is_done, ...)
    ladon.call_triggers(before)
    if not is_done then
        error((...), 0)
    end
    return ...
end

-- Runs a statement that the space takes from nobody else.
local function run(native, ...)
    local before = ladon.call_triggers(true)
    return finish_native(before, pcall(native, ...))
end

local function finish_trigger(is_done, ...)
    if is_done then
        return select('#', ...), ...
    end
    local why = ...
    if type(why) == 'string' then
        why = box.error.new({type = 'LuajitError', code = box.error.PROC_LUA, reason = why})
    end
    error(why, 0)
end

local function call(trigger, old, new, space, operation)
    return finish_trigger(pcall(trigger, old, new, space.name, operation))
end

-- What the statement would do, once `before_replace` has changed that. Returns whether it is the
-- statement still, and the tuples.
local function called_before(mine, space, operation, savepoint, native, ...)
    if operation == 'INSERT' then
        -- Another tuple with this key is no error yet.
        run(put, space.id, select(2, ...), true)
    else
        run(native, ...)
    end
    local _, old, new = ladon.last_stated(space.id)
    ladon.go_back(savepoint)
    if old == nil and new == nil then
        return true
    end
    local asked = new
    for at = #mine.before, 1, -1 do
        local count, result = call(mine.before[at], old, new, space, operation)
        if count > 0 then
            if result ~= nil and not box.tuple.is(result) then
                box.error(box.error.BEFORE_REPLACE_RET, type(result))
            end
            new = result
        end
    end
    return rawequal(asked, new), old, new
end

-- Does what `before_replace` has made of a statement. Returns the operation, and its result.
local function run_changed(space, old, new)
    local primary = space.index[0]
    if new ~= nil then
        local result = run(put, space.id, new, true)
        local _, replaced = ladon.last_stated(space.id)
        local is_same = old == nil
            or replaced ~= nil and ladon.tuple_bytes(replaced) == ladon.tuple_bytes(old)
        if not is_same then
            box.error(box.error.CANT_UPDATE_PRIMARY_KEY, primary.name, space.name)
        end
        return 'REPLACE', result
    end
    local key = {}
    for at, part in ipairs(primary.parts) do
        key[at] = old[part.path and ('[%d]%s'):format(part.fieldno, part.path) or part.fieldno]
    end
    return 'DELETE', (run(delete, space.id, 0, key))
end

local function perform(mine, space, operation, savepoint, native, ...)
    local is_as_asked, old, new, result = true
    local count = 1
    if #mine.before > 0 then
        is_as_asked, old, new = called_before(mine, space, operation, savepoint, native, ...)
    end
    if is_as_asked then
        result = run(native, ...)
        count = result == nil and 0 or 1
    elseif rawequal(old, new) or old == nil and new == nil then
        return 0
    else
        operation, result = run_changed(space, old, new)
    end
    local _, before, after = ladon.last_stated(space.id)
    if before ~= nil or after ~= nil then
        for at = #mine.replace, 1, -1 do
            call(mine.replace[at], before, after, space, operation)
        end
    end
    return count, result
end

local function finish_statement(is_own, savepoint, is_done, count, result)
    local transaction = ladon.transaction()
    transaction.depth = transaction.depth - 1
    if not is_done then
        if is_own then
            box.rollback()
        else
            ladon.go_back(savepoint)
        end
        error(count, 0)
    end
    if is_own then
        box.commit()
    end
    if count > 0 then
        return result
    end
end

-- Runs a statement with what is called around it: all of it, or nothing.
local function with_triggers(mine, id, operation, native, ...)
    local space = box.space[id]
    if are_off[id] then
        mine = NONE
    end
    local is_own = not ladon.in_transaction()
    local depth = is_own and 0 or ladon.transaction().depth or 0
    if depth >= STATEMENTS_MAX then
        box.error(box.error.SUB_STMT_MAX)
    end
    if is_own then
        ladon.begin()
    end
    ladon.transaction().depth = depth + 1
    local savepoint = ladon.savepoint()
    return finish_statement(
        is_own, savepoint, pcall(perform, mine, space, operation, savepoint, native, ...))
end

function ladon.put(id, tuple, replaces)
    local mine = triggers[id]
    if mine == nil then
        return put(id, tuple, replaces)
    end
    return with_triggers(mine, id, replaces and 'REPLACE' or 'INSERT', put, id, tuple, replaces)
end

function ladon.update(id, ...)
    local mine = triggers[id]
    if mine == nil then
        return update(id, ...)
    end
    return with_triggers(mine, id, 'UPDATE', update, id, ...)
end

function ladon.delete(id, ...)
    local mine = triggers[id]
    if mine == nil then
        return delete(id, ...)
    end
    return with_triggers(mine, id, 'DELETE', delete, id, ...)
end

function ladon.upsert(id, ...)
    local mine = triggers[id]
    if mine == nil then
        return upsert(id, ...)
    end
    return with_triggers(mine, id, 'UPSERT', upsert, id, ...)
end

-- A statement of a client: the space, the index, the number of the first field, and what there is.
function ladon.state(method, space, index, base, first, second)
    ladon.changed()
    if method == 'insert' or method == 'replace' then
        return ladon.put(space, first, method == 'replace')
    elseif method == 'update' then
        return ladon.update(space, index, first, second, base)
    elseif method == 'delete' then
        return ladon.delete(space, index, first)
    end
    return ladon.upsert(space, first, second, base)
end

-- Spaces that are there no more have none. The others' cells may be new.
function ladon.triggers_reloaded(spaces)
    for id in pairs(are_off) do
        are_off[id] = spaces[id] ~= nil or nil
    end
    for id in pairs(triggers) do
        if spaces[id] == nil then
            triggers[id] = nil
        else
            ladon.set_triggers(id, true)
        end
    end
end

-- Spaces below are the system's.
local SPACE_ID_MIN = 512

local function changed(space, kind, new, old)
    if type(space) ~= 'table' or space.id == nil then
        error(('usage: space:%s(function | nil, [function | nil])'):format(kind), 0)
    end
    if space.id < SPACE_ID_MIN then
        box.error(box.error.UNSUPPORTED, 'Ladon', 'triggers of system spaces')
    end
    local lists = triggers[space.id] or {before = {}, replace = {}}
    local list = kind == 'on_replace' and lists.replace or lists.before
    local shown = ladon.triggers_called(list, new, old)
    local has_triggers = #lists.before + #lists.replace > 0
    triggers[space.id] = has_triggers and lists or nil
    ladon.set_triggers(space.id, has_triggers)
    return shown
end

function ladon.space_methods.on_replace(space, new, old)
    return changed(space, 'on_replace', new, old)
end

function ladon.space_methods.before_replace(space, new, old)
    return changed(space, 'before_replace', new, old)
end

-- Whether the functions of a space are called.
function ladon.space_methods.run_triggers(space, ...)
    if type(space) ~= 'table' then
        error('Use space:run_triggers(...) instead of space.run_triggers(...)', 2)
    elseif box.space[space.id] == nil then
        box.error(box.error.NO_SUCH_SPACE, tostring(space.name))
    elseif (...) == nil then
        error('usage: space:run_triggers(true | false)', 2)
    end
    -- As in C, 0 is false.
    local runs = ... ~= false and ... ~= 0
    are_off[space.id] = not runs or nil
end
