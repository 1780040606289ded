io.stdout:setvbuf("no")
local yaml = require('yaml')
local json = require('json')
-- As JSON, so that types can be told apart.
local function shown(value)
    if type(value) == 'cdata' and value ~= nil then return type(value) .. ':' .. tostring(value) end
    if value == nil and type(value) == 'cdata' then return 'NULL' end
    if type(value) == 'table' then
        local keys, parts = {}, {}
        for key in pairs(value) do keys[#keys + 1] = key end
        table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
        for _, key in ipairs(keys) do parts[#parts + 1] = shown(key) .. '=' .. shown(value[key]) end
        local mt = getmetatable(value)
        return (mt and mt.__serialize or '') .. '{' .. table.concat(parts, ', ') .. '}'
    end
    return type(value) == 'string' and ('%q'):format(value) or tostring(value)
end
local function p(text, options)
    local r = {pcall(yaml.decode, text, options)}
    if not r[1] then print('error') return end
    local out = {}
    for i = 2, #r do out[#out + 1] = shown(r[i]) end
    print(#out, table.concat(out, ' | '))
end
for _, text in ipairs{
    '', '---', '--- 1', '---\n...', '1', '1.5', '-5', '+5', '1e5', '0x10', '010', '.5', '5.', '1_000', '.inf', '-.inf', '.nan', 'inf', 'nan', '-inf',
    '99999999999999', '100000000000000', '-100000000000000', '9223372036854775807', '9223372036854775806', '18446744073709551615', '18446744073709551616', '-9223372036854775808', '-9223372036854775809',
    'true', 'false', 'yes', 'no', 'on', 'off', 'True', 'TRUE', 'null', '~', 'Null', 'NULL', 'y', 'n', '=', '""', "''", '"null"', "'1'", '"a\\nb"', '"\\x41\\u0416\\U0001F600"', '"\\0\\a\\b\\e\\_\\N\\L\\P\\t\\/\\"\\\\"',
    'a b c', 'a\n b\n c', '"a\n  b\n\n  c"', "'it''s'", "'a\n  b'", '- a\n- b', '- - a\n  - b\n- c', '-\n- a', 'a: 1\nb: 2', 'a:\n  b: 1\n  c: 2', 'a:\n- 1\n- 2', 'a:\n  - 1', 'a: [1, 2, {b: c}]', '{a: 1, b: [x, y], c}', '[1,2,]', '[]', '{}', '[a, [b, c]]', '{a: {b: {}}}',
    '? a\n: b', '? [1, 2]\n: x', 'a: |\n  x\n  y\n', 'a: |-\n  x\n  y\n', 'a: |+\n  x\n\n', 'a: >\n  x\n  y\n\n  z\n', 'a: >-\n  x\n  y', '|\n a\n b', '|2\n   a\n  b', '>\n a\n  b\n c', 'a: |\n  x\n   y\n  z', '--- |\n a\n...\n', '--- >\n a\n b\n',
    '&a [1]', '- &a [1]\n- *a', '- &a {x: 1}\n- *a\n- *a', '- &a s\n- *a', 'a: &x {b: 1}\nc: *x', '- *a',
    '!!str 1', '!!int "5"', '!!float "1.5"', '!!float 3', '!!bool yes', '!!bool "true"', '!!bool x', '!!binary aGVsbG8=', '!!binary |\n  aGVs\n  bG8=\n', '!!null x', '!foo 1', '! 1', '!!int x', '!!seq [1]', '!!map {a: 1}', '!<tag:yaml.org,2002:str> 5',
    '--- 1\n--- 2\n', '--- 1\n...\n--- 2\n...\n', '1\n...\n2\n', '# c\n1 # d\n', 'a#b', 'a #b', 'a: # c\n  1', '%YAML 1.1\n--- 1', '%TAG !e! tag:x.io,2018:\n--- !e!a 1', '[', '{', ']', '}', 'a: b: c', '- a\nb', '"abc', "'abc", '\t', 'a:\tb', '@', '`', '%', '*', '&', '!', '|', '>', '-', '?', ':', 'a:', '- ', 'a: -1', 'a: - 1',
    'x: 2001-01-01', 'x: 12:30', 'x: http://a/b', 'a:b', '- a: 1\n  b: 2\n- c: 3', 'a: "b"\n"c": d', "'a': 1", '1: 2', '1.5: x', 'true: x', '~: x', '<<: 1', 'a: 1\na: 2', '[a: 1, b]', '{? a : b}', '{a: , b: }', '{"a":1}', '{a:1}', 'key with space: v', 'a:  b  ', '- "x"\n- \'y\'\n- z', 'a\tb', 'привет: мир', 'a: !!str\nb: 1', '\239\187\1911', 'a: &b\nc: d', '--- \n- 1', '---\n- 1\n- 2\n...', '- 1\n\n- 2\n', '- |\n a\n- b', 'a:\n  - b\n  -\n    c: d', '"\\ud83d"', '"\\x4"', '"\\q"', 'a: "b" c', '[1 2]', '[a\nb]', '---a', '--- a\nb', '...', '- [a, b', "{a: 'b}", '\1', 'a: \255',
} do
    io.write((('%q'):format(text):gsub('\\\n', '\\n')), '  ')
    p(text)
end
p('1', {}) p('1', 5) p('1', {tag_only = false}) p(5) p(nil) p(true)
p('%TAG !e! tag:x.io,2018\n--- 1', {tag_only = true}) p('1', {tag_only = true}) p('', {tag_only = true}) p('%TAG !a! x\n%TAG !b! y\n---\n', {tag_only = true})
print(pcall(yaml.decode)) print(pcall(yaml.decode, true)) print(pcall(yaml.decode, '', 1)) print(yaml.decode('', nil))
local r = yaml.decode('- &a [1]\n- *a') print(r[1] == r[2])
r = yaml.decode('&a {b: *a}') print(r.b == r)
local own = yaml.new() own.cfg{decode_save_metatables = false, decode_invalid_numbers = false}
print(getmetatable(own.decode('[1]')), pcall(own.decode, 'inf')) print(getmetatable(yaml.decode('[1]')).__serialize)
print(yaml.encode(300, {tag_handle = '!push', tag_prefix = 'x'})) print(yaml.encode(300, {tag_handle = 'push!', tag_prefix = 'x'})) print(yaml.encode(300, {tag_handle = '!a b!', tag_prefix = 'x'})) print(yaml.encode(300, {tag_handle = '!p!', tag_prefix = ''}))
print(pcall(yaml.encode)) print(pcall(yaml.encode, {}, 1)) print(pcall(yaml.encode, {}, {tag_prefix = 1})) print(yaml.encode({1}, nil))
for _, value in ipairs{1, 'a', {1, {2, {a = 'x: y'}}}, {a = {b = {'c', 'd\ne'}}}, 'null', '1', '\0\255', ' x', {[1] = 1, [3] = 3}} do
    print(yaml.encode(yaml.decode(yaml.encode(value))) == yaml.encode(value))
end
os.exit(0)
