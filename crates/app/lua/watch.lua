-- box.watch and box.broadcast, and what net.box watches with
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/box_events/).
--
--   entry     one key: its value as MessagePack, and how often it has changed
--   watcher   a function, which runs in a fiber of its own until it has seen the last value
local ladon = ...

local Watcher = {}
Watcher.__index = Watcher

local Watched = {}
Watched.__index = Watched

local function run(watcher)
    local entry = watcher.entry
    while watcher.is_registered and watcher.seen ~= entry.version do
        watcher.seen = entry.version
        local value
        if entry.text ~= nil then
            value = ladon.decode(entry.text, 1)
        end
        local is_done, why = pcall(watcher.func, entry.key, value)
        if not is_done then
            ladon.log(2, tostring(why))
        end
    end
    watcher.is_running = false
end

local function start(watcher)
    if not watcher.is_running and watcher.seen ~= watcher.entry.version then
        watcher.is_running = true
        ladon.background('watcher', run, watcher)
    end
end

-- Keys that are watched: `begin(key)` is called for each new one, and `finish(key)` when nobody watches
-- it any more.
function ladon.new_watched(begin, finish)
    return setmetatable({entries = {}, begin = begin, finish = finish}, Watched)
end

function Watched:entry(key)
    local entry = self.entries[key]
    if entry == nil then
        entry = {key = key, version = 0, watchers = {}}
        self.entries[key] = entry
    end
    return entry
end

-- A key has another value, or none.
function Watched:changed(key, text)
    local entry = self.entries[key]
    if entry == nil then
        return
    end
    entry.text, entry.version = text, entry.version + 1
    for watcher in pairs(entry.watchers) do
        start(watcher)
    end
end

-- `is_known`: the function is called at once, with the value that there is or none.
function Watched:watch(key, func, is_known)
    local is_new = self.entries[key] == nil or next(self.entries[key].watchers) == nil
    local entry = self:entry(key)
    local watcher = setmetatable({
        entry = entry, func = func, of = self, is_registered = true,
        seen = not is_known and entry.version == 0 and 0 or -1,
    }, Watcher)
    entry.watchers[watcher] = true
    if is_new then
        self.begin(key)
    end
    start(watcher)
    return watcher
end

function Watcher:unregister()
    if type(self) ~= 'table' or getmetatable(self) ~= Watcher then
        error('Usage: watcher:unregister()', 0)
    elseif not self.is_registered then
        error('Watcher is already unregistered', 0)
    end
    self.is_registered = false
    local of, entry = self.of, self.entry
    entry.watchers[self] = nil
    if next(entry.watchers) == nil then
        of.finish(entry.key)
    end
end

-- Keys of the server are looked at so often while somebody watches them.
local LOOKS_S = 0.1

local own

local function encoded(...)
    return select('#', ...) > 0 and ladon.encode((...)) or nil
end

local function text_of(key)
    return encoded(ladon.watch_once(key))
end

local function look(key)
    local entry = own.entries[key]
    while next(entry.watchers) ~= nil do
        local text = text_of(key)
        if text ~= entry.text then
            own:changed(key, text)
        end
        ladon.fiber.sleep(LOOKS_S)
    end
    entry.is_looked_at = false
end

own = ladon.new_watched(function(key)
    local entry = own.entries[key]
    if key:sub(1, 4) == 'box.' and not entry.is_looked_at then
        entry.is_looked_at = true
        entry.text = text_of(key)
        ladon.background('watcher', look, key)
    end
end, function(key)
    local entry = own.entries[key]
    if entry.text == nil and not entry.is_looked_at then
        own.entries[key] = nil
    end
end)

function box.watch(key, func)
    if type(key) ~= 'string' or not ladon.is_callable(func) then
        error('Usage: box.watch(key, function)', 0)
    end
    return own:watch(key, func, true)
end

function box.broadcast(...)
    local key, value = ...
    if select('#', ...) ~= 2 or type(key) ~= 'string' then
        error('Usage: box.broadcast(key, value)', 0)
    end
    ladon.broadcast(key, value)
    own:entry(key)
    own:changed(key, ladon.encode(value))
end
