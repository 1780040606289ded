-- strict: to use a global that was not declared is an error.
local strict = {}
local metatable = getmetatable(_G)
if metatable == nil then
    metatable = {}
    setmetatable(_G, metatable)
end

local declared = {}

local function called_from()
    local info = debug.getinfo(3, 'S')
    return info and info.what or 'C'
end

function strict.on()
    metatable.__newindex = function(globals, name, value)
        if not declared[name] then
            local from = called_from()
            if from ~= 'main' and from ~= 'C' then
                error(("assign to undeclared variable '%s'"):format(tostring(name)), 2)
            end
            declared[name] = true
        end
        rawset(globals, name, value)
    end
    metatable.__index = function(globals, name)
        if not declared[name] and called_from() ~= 'C' then
            error(("variable '%s' is not declared"):format(tostring(name)), 2)
        end
        return rawget(globals, name)
    end
end

function strict.off()
    metatable.__newindex = nil
    metatable.__index = nil
end

strict.on()

return strict
