-- Where errors of box were made.
local function show(e) print(e.trace[1].file:match("[^/]*$"), e.trace[1].line) end
local e = box.error.new(box.error.UNKNOWN)
show(e)
local ok, e = pcall(box.error, box.error.UNKNOWN)
show(e)
local ok, e = pcall(function() box.error(box.error.UNKNOWN) end)
show(e)
local ok, e = pcall(function() box.error({code=1, reason='x'}) end)
show(e)
local function f()
  local e = box.error.new({type='My', reason='x'})
  return e
end
local e = f()
show(e)
local e = box.error.new('My', 'x')
show(e)
os.exit(0)
