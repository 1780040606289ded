-- Transactions: savepoints, and what is called when one ends
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/box_txn_management/).
local ladon = ...

-- By fiber: the savepoints and triggers of its transaction.
local open = ladon.open_transactions
-- Counts transactions: a savepoint is one of its own.
local count = 0

function box.begin(options)
    if ladon.in_transaction() then
        box.error(box.error.ACTIVE_TRANSACTION)
    end
    ladon.begin()
end

-- What the fiber's transaction has beside its statements.
local function current()
    local fiber = ladon.current()
    local mine = open[fiber]
    if mine == nil then
        count = count + 1
        mine = {number = count, commit = {}, rollback = {}}
        open[fiber] = mine
    end
    return mine
end

ladon.transaction = current

-- A function that gives what statements have done: number, old tuple, new tuple, space.
local function iterator_of(stated)
    local function next_of(_, at)
        local one = stated[at + 1]
        if one ~= nil then
            return at + 1, one[2], one[3], one[1]
        end
    end
    return function()
        return next_of, nil, 0
    end
end

local function call_all(triggers, stated)
    for _, trigger in ipairs(triggers) do
        local is_done, why = pcall(trigger, iterator_of(stated))
        if not is_done then
            -- The transaction has ended, whatever they do.
            ladon.log(2, tostring(why))
        end
    end
end

-- Calls what was to be called on rollback, the last first; statements too.
local function taken_back(mine, stated)
    if mine == nil or #mine.rollback == 0 then
        return
    end
    local from_last, triggers = {}, {}
    for at = #stated, 1, -1 do
        from_last[#from_last + 1] = stated[at]
    end
    for at = #mine.rollback, 1, -1 do
        triggers[#triggers + 1] = mine.rollback[at]
    end
    call_all(triggers, from_last)
end

local function stated_for(mine, triggers)
    return mine ~= nil and #mine[triggers] > 0 and ladon.stated() or {}
end

-- What the fiber's transaction has, which ends; within a trigger that is the given error.
local function take_open(in_trigger)
    local fiber = ladon.current()
    local mine = open[fiber]
    if mine ~= nil and mine.depth ~= nil and mine.depth > 0 then
        box.error(in_trigger)
    end
    open[fiber] = nil
    return mine
end

function box.commit()
    if not ladon.in_transaction() then
        return
    end
    local mine = take_open(box.error.COMMIT_IN_SUB_STMT)
    if mine == nil then
        return ladon.commit()
    end
    if #mine.commit > 0 then
        ladon.keep_stated()
    end
    local stated = stated_for(mine, 'rollback')
    local is_done, why = pcall(ladon.commit)
    if not is_done then
        taken_back(mine, stated)
        error(why, 0)
    end
    call_all(mine.commit, stated_for(mine, 'commit'))
end

function box.rollback()
    ladon.changed()
    if not ladon.in_transaction() then
        return
    end
    local mine = take_open(box.error.ROLLBACK_IN_SUB_STMT)
    local stated = stated_for(mine, 'rollback')
    ladon.rollback()
    taken_back(mine, stated)
end

function box.is_in_txn()
    return ladon.in_transaction()
end

-- The fiber is over, or its request is answered: a transaction that is left open is taken back.
function ladon.leave_transaction()
    local mine = open[ladon.current()]
    if mine == nil then
        return
    end
    mine.depth = 0
    if ladon.in_transaction() then
        box.rollback()
    end
    open[ladon.current()] = nil
end

local function finish_atomic(is_ok, ...)
    if not is_ok then
        box.rollback()
        -- A text gets the place that has called `box.atomic`, which is no tail call here.
        error((...), 3)
    end
    box.commit()
    return ...
end

function box.atomic(func, ...)
    box.begin()
    return finish_atomic(pcall(func, ...))
end

function box.savepoint()
    if not ladon.in_transaction() then
        box.error(box.error.NO_TRANSACTION)
    end
    return {csavepoint = ladon.savepoint(), txn_id = current().number}
end

function box.rollback_to_savepoint(savepoint)
    ladon.changed()
    if type(savepoint) ~= 'table' or type(savepoint.csavepoint) ~= 'number'
        or type(savepoint.txn_id) ~= 'number' then
        error('Usage: box.rollback_to_savepoint(savepoint)', 0)
    end
    if not ladon.in_transaction() or savepoint.txn_id ~= current().number then
        box.error(box.error.NO_SUCH_SAVEPOINT)
    end
    ladon.go_back(savepoint.csavepoint)
end

-- Triggers are lists: functions are added, replaced and removed.
function ladon.change_triggers(triggers, new, old)
    if old ~= nil then
        for at, trigger in ipairs(triggers) do
            if trigger == old then
                if new ~= nil then
                    triggers[at] = new
                    return new
                end
                table.remove(triggers, at)
                return
            end
        end
        error('trigger reset: Trigger is not found', 0)
    end
    triggers[#triggers + 1] = new
    return new
end

local is_callable = ladon.is_callable

-- What a call that changes or lists triggers does. Without functions it lists them.
function ladon.triggers_called(triggers, new, old)
    if new == nil and old == nil then
        local shown = {}
        for at, trigger in ipairs(triggers) do
            shown[at] = trigger
        end
        return shown
    end
    local is_new, is_old = new == nil or is_callable(new), old == nil or is_callable(old)
    if not is_new or not is_old then
        error('trigger reset: incorrect arguments', 0)
    end
    return ladon.change_triggers(triggers, new, old)
end

for _, kind in ipairs({'commit', 'rollback'}) do
    box['on_' .. kind] = function(new, old)
        if not ladon.in_transaction() then
            error(('Usage inside a transaction: box.on_%s([function | nil, [function | nil]])')
                :format(kind), 0)
        end
        return ladon.triggers_called(current()[kind], new, old)
    end
end
