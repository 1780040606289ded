function(steps)
    local shown = {}
    local function show(tuple)
        if tuple ~= nil then
            shown[#shown + 1] = tuple
        end
    end
    local function act(what, name, number, first, second)
        local space = name and box.space[name]
        if what == 'insert' then
            show(space:insert(first))
        elseif what == 'replace' then
            show(space:replace(first))
        elseif what == 'update' then
            show(space.index[number]:update(first, second))
        elseif what == 'delete' then
            show(space.index[number]:delete(first))
        elseif what == 'upsert' then
            space:upsert(first, second)
        elseif what == 'select' then
            for _, tuple in ipairs(space.index[number]:select(first, second)) do
                show(tuple)
            end
        elseif what == 'raise' then
            error('as it was asked')
        elseif what == 'leave' then
            require('fiber').yield()
        else
            box[what]()
        end
    end
    local refusal
    for _, step in ipairs(steps) do
        local is_done, why = pcall(act, unpack(step, 2))
        if not is_done and step[1] then
            local code = type(why) == 'string' and 32 or why.code
            show({code, 0, box.NULL})
            -- No disk (ER_WAL_IO), or no memory: whoever knows all of the data does not know when, so such
            -- a call fails as a whole.
            if code == 40 or code == 2 then
                refusal = why
            end
        elseif not is_done then
            error(refusal or why)
        end
    end
    if refusal and box.is_in_txn() then
        error(refusal)
    end
    return unpack(shown)
end
