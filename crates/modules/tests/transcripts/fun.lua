local fun = require('fun')
local function p(f, ...)
  local r = {pcall(f, ...)}
  for i = 1, #r do r[i] = tostring(r[i]):gsub('^[%w/_.]+%.lua:%d+: ', ''):gsub('0x%x+', 'ADDRESS') end
  print(table.concat(r, ' | '))
end
local function show(name, ...)
  local out = {}
  local ok, err = pcall(function(...)
    for _, a, b, c in ... do
      out[#out + 1] = tostring(a) .. (b ~= nil and ':' .. tostring(b) or '') .. (c ~= nil and ':' .. tostring(c) or '')
      if #out > 9 then break end
    end
  end, ...)
  print(name, table.concat(out, ' '), ok and '' or tostring(err):gsub('^[%w/_.]+%.lua:%d+: ', ''))
end
show('iter', fun.iter({1, 2, 3})) show('map', fun.iter({a = 1})) show('text', fun.iter('abc')) show('empty', fun.iter({})) show('', fun.iter(''))
p(fun.iter, 5) p(fun.iter, nil) p(fun.iter, true)
show('range', fun.range(5)) show('range', fun.range(-3)) show('range', fun.range(0)) show('range', fun.range(1, 10, 3)) show('range', fun.range(10, 1)) show('range', fun.range(1, 2, 0.5)) p(fun.range, 1, 2, 0) p(fun.range, 'a') show('range', fun.range(5, 1, 1))
show('dup', fun.take(3, fun.duplicate('a', 'b'))) show('rep', fun.take(2, fun.replicate(1, 2, 3))) show('x', fun.take(2, fun.xrepeat('z'))) show('tab', fun.take(4, fun.tabulate(function(x) return x * x end))) show('zeros', fun.take(2, fun.zeros())) show('ones', fun.take(2, fun.ones()))
p(fun.rands, 5, 1) p(fun.rands, 'x') print(fun.all(function(x) return x >= 2 and x < 5 end, fun.take(50, fun.rands(2, 5))), fun.all(function(x) return x >= 0 and x < 1 end, fun.take(50, fun.rands())))
p(fun.nth, 2, {1, 2, 3}) p(fun.nth, 5, {1}) p(fun.nth, 2, 'abc') p(fun.nth, 1, {a = 5}) p(fun.nth, 0, {1}) p(fun.head, {5, 6}) p(fun.head, {}) p(fun.car, 'x') show('tail', fun.tail({1, 2, 3})) show('tail', fun.tail({})) show('cdr', fun.cdr('abc'))
show('take', fun.take_n(2, {1, 2, 3})) show('take', fun.take(function(x) return x < 3 end, {1, 2, 3, 1})) show('take', fun.take_while(function(x) return x < 3 end, {1, 2, 3})) show('take', fun.take(0, {1})) p(fun.take_n, -1, {}) p(fun.take_while, 5, {})
show('drop', fun.drop(1, {1, 2, 3})) show('drop', fun.drop_n(5, {1})) show('drop', fun.drop(function(x) return x < 2 end, {1, 2, 1})) show('drop', fun.drop_while(function() return true end, {1, 2})) show('drop', fun.drop_while(function(x) return x < 2 end, {5, 1}))
for _, f in ipairs({'split', 'split_at', 'span'}) do local a, b = fun[f](2, {1, 2, 3, 4}) show(f, a.gen, a.param, a.state) show(f, b.gen, b.param, b.state) a, b = fun[f](function(x) return x < 2 end, {1, 2, 1}) show(f, a.gen, a.param, a.state) show(f, b.gen, b.param, b.state) end
p(fun.index, 2, {1, 2, 3}) p(fun.index, 9, {1}) p(fun.index_of, 'b', 'abc') p(fun.elem_index, 1, {}) show('indexes', fun.indexes('a', {'a', 'b', 'a'})) show('indices', fun.indices(5, {1})) show('elem', fun.elem_indexes(1, fun.range(3)))
show('filter', fun.filter(function(x) return x % 2 == 0 end, fun.range(10))) show('remove_if', fun.remove_if(function(x) return x % 2 == 0 end, fun.range(5))) show('filter', fun.filter(function(k, v) return v > 1 end, {b = 2})) show('filter', fun.filter(function() return false end, {1, 2})) show('grep', fun.grep('^a', {'ab', 'b', 'ac'})) show('grep', fun.grep(function(x) return x == 'b' end, {'a', 'b'}))
do local a, b = fun.partition(function(x) return x > 2 end, fun.range(5)) show('part', a.gen, a.param, a.state) show('part', b.gen, b.param, b.state) end
p(fun.foldl, function(a, b) return a + b end, 10, {1, 2}) p(fun.reduce, function(a, k, v) return a .. k .. v end, '', {x = 1}) p(fun.length, {1, 2}) p(fun.length, {}) p(fun.length, 'abc') p(fun.is_null, {}) p(fun.is_null, {1}) p(fun.is_prefix_of, {1}, {1, 2}) p(fun.is_prefix_of, {1, 3}, {1, 2}) p(fun.is_prefix_of, {}, {}) p(fun.is_prefix_of, {1, 2}, {1})
for _, f in ipairs({'all', 'every', 'any', 'some'}) do p(fun[f], function(x) return x end, {true, false}) p(fun[f], function(x) return x end, {}) p(fun[f], function(x) return x > 0 end, {1, 2}) end
p(fun.sum, {1, 2, 3}) p(fun.sum, {}) p(fun.product, {2, 3}) p(fun.product, {})
for _, f in ipairs({'min', 'minimum', 'max', 'maximum'}) do p(fun[f], {3, 1, 2}) p(fun[f], {'b', 'a'}) p(fun[f], {}) p(fun[f], {5}) end
for _, f in ipairs({'min_by', 'minimum_by', 'max_by'}) do p(fun[f], function(a, b) return #a > #b and a or b end, {'aa', 'b', 'ccc'}) p(fun[f], math.min, {}) end
p(table.concat, fun.totable(fun.range(3)), ',') p(table.concat, fun.totable('abc'), ',') print(fun.tomap({a = 1}).a, fun.tomap(fun.zip({'x'}, {5})).x, #fun.totable({}))
show('map', fun.map(function(x) return x * 2, x end, {1, 2})) show('enum', fun.enumerate({'a', 'b'})) show('enum', fun.enumerate(fun.zip({1}, {2}))) show('inter', fun.intersperse('-', {'a', 'b'})) show('inter', fun.take(5, fun.intersperse('-', {'a', 'b', 'c'}))) show('inter', fun.intersperse(0, {}))
show('zip', fun.zip({1, 2, 3}, {'a', 'b'})) show('zip', fun.zip({1}, 'a', {9})) show('chain', fun.chain({1, 2}, {'a'}, 'xy')) show('chain', fun.chain({}, {1}, {}, {2})) show('cycle', fun.cycle({1, 2, 3})) show('cycle', fun.take(3, fun.cycle('ab')))
show('zip', fun.zip()) show('chain', fun.chain()) show('m', fun.iter({3, 4}):map(function(x) return x + 1 end):filter(function(x) return x > 4 end):enumerate())
show('reuse', fun.chain(fun.range(2), fun.range(2)):cycle():take(6))
local names = {} for n in pairs(fun.op) do names[#names + 1] = n end table.sort(names) print(table.concat(names, ' '))
local o = fun.operator print(o.lt(1, 2), o.le(2, 2), o.eq(1, 1), o.ne(1, 1), o.ge(1, 2), o.gt(2, 1), o.add(1, 2), o.div(7, 2), o.floordiv(-7, 2), o.mod(7, 4), o.mul(2, 3), o.neq and o.neq(1, 2), o.unm and o.unm(5), o.pow(2, 3), o.sub(1, 2), o.truediv(1, 2), o.concat('a', 'b'), o.len('abc'), o.length({1}), o.land(true, 1), o.lor(false, 2), o.lnot(1), o.truth(1))
print(tostring(fun.iter({})), type(fun.wrap), select('#', fun.iter({1}):unwrap()), fun.iter({1, 2}):length(), #fun.iter({1, 2}):totable())
fun.iter({1, 2}):each(print) fun.each(print, {a = 5}) fun.for_each(print, 'x') fun.foreach(print, {})
fun() print(range(3):sum())
os.exit(0)
