-- Gives the decimal type its operators. The functions are those of src/decimal.rs.
local functions = ...
local ffi = require('ffi')

ffi.metatype(ffi.typeof(functions.new(0)), {
    __add = functions.add,
    __sub = functions.subtract,
    __mul = functions.multiply,
    __div = functions.divide,
    __mod = functions.remainder,
    __pow = functions.power,
    __unm = functions.minus,
    __eq = functions.equal,
    __lt = functions.less,
    __le = functions.less_or_equal,
    __tostring = functions.tostring,
})

local module = {}
for _, name in ipairs({'new', 'abs', 'exp', 'ln', 'log10', 'sqrt', 'is_decimal', 'precision',
                       'scale', 'trim', 'round', 'rescale'}) do
    module[name] = functions[name]
end
return module
