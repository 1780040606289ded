-- crypto: sums, HMAC and ciphers
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/crypto/).
local native = ...

-- What there is; what the real one has besides is refused by name.
local SUMS = {'md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512'}
local CIPHERS = {aes128 = 16, aes192 = 24, aes256 = 32}
local MODES = {ecb = 0, cbc = 16, cfb = 16, ofb = 16}

local crypto = {}

-- Raises an error of the class that the real one raises.
local function fail(text)
    local make = debug.getregistry()['ladon.module_error']
    error(make ~= nil and make('CryptoError', text) or text, 0)
end

local function hex(bytes)
    return (bytes:gsub('.', function(byte)
        return ('%02x'):format(byte:byte())
    end))
end

-- Sums, plain or by a key. `kind` is what messages call them.
local sum_methods = {}
local Sum = {__index = sum_methods}

function sum_methods.init(sum, key)
    sum.key = key or sum.key
    if sum.is_keyed then
        if sum.key == nil then
            error('Key should be specified for HMAC operations')
        end
        sum.sink = native.sink_new(sum.name, sum.key)
    else
        sum.sink = native.sink_new(sum.name)
    end
end

function sum_methods.update(sum, text)
    if sum.sink == nil then
        error(sum.kind .. ' not initialized')
    end
    if type(text) ~= 'string' then
        error(('Usage: %s:update(string)'):format(sum.is_keyed and 'hmac' or 'digest'))
    end
    native.sink_update(sum.sink, text)
end

function sum_methods.result(sum)
    if sum.sink == nil then
        error(sum.kind .. ' not initialized')
    end
    local bytes = native.sink_result(sum.sink)
    sum.sink = nil
    return bytes
end

function sum_methods.free(sum)
    sum.sink, sum.key = nil, nil
end

local function new_sum(name, is_keyed, key)
    local sum = setmetatable({
        name = name, is_keyed = is_keyed, kind = is_keyed and 'HMAC' or 'Digest',
    }, Sum)
    sum:init(key)
    return sum
end

local digest, hmac = {}, {}
for _, name in ipairs(SUMS) do
    local function sum_of(_, text)
        if type(text) ~= 'string' then
            error(('Usage: digest.%s(string)'):format(name))
        end
        local sum = new_sum(name, false)
        sum:update(text)
        return sum:result()
    end
    digest[name] = setmetatable({
        new = function()
            return new_sum(name, false)
        end,
    }, {__call = sum_of})

    local function keyed_of(_, key, text)
        if type(key) ~= 'string' or type(text) ~= 'string' then
            error(('Usage: hmac.%s(key, string)'):format(name))
        end
        local sum = new_sum(name, true, key)
        sum:update(text)
        return sum:result()
    end
    hmac[name] = setmetatable({
        new = function(key)
            return new_sum(name, true, key)
        end,
    }, {__call = keyed_of})
    hmac[name .. '_hex'] = function(key, text)
        if type(key) ~= 'string' or type(text) ~= 'string' then
            error(('Usage: hmac.%s_hex(key, string)'):format(name))
        end
        return hex(keyed_of(nil, key, text))
    end
end

crypto.digest = setmetatable(digest, {
    __index = function(_, name)
        error(('Digest method "%s" is not supported'):format(tostring(name)), 2)
    end,
})
crypto.hmac = setmetatable(hmac, {
    __index = function(_, name)
        error(('HMAC method "%s" is not supported'):format(tostring(name)), 2)
    end,
})

-- Ciphers.
local cipher_methods = {}
local Cipher = {__index = cipher_methods}

function cipher_methods.init(cipher, key, iv)
    cipher.key, cipher.iv = key or cipher.key, iv or cipher.iv
    if cipher.key == nil or cipher.iv == nil then
        return
    end
    local key_bytes, iv_bytes = CIPHERS[cipher.algorithm], MODES[cipher.mode]
    if #cipher.key ~= key_bytes then
        fail(('key size expected %d, got %d'):format(key_bytes, #cipher.key))
    end
    if #cipher.iv ~= iv_bytes then
        fail(('IV size expected %d, got %d'):format(iv_bytes, #cipher.iv))
    end
    cipher.native = native.cipher_new(cipher.mode, cipher.encrypts, cipher.key, cipher.iv)
end

function cipher_methods.update(cipher, text)
    if cipher.native == nil then
        error('Cipher not initialized')
    end
    if type(text) ~= 'string' then
        error('Usage: cipher:update(string)')
    end
    return native.cipher_update(cipher.native, text)
end

function cipher_methods.result(cipher)
    if cipher.native == nil then
        error('Cipher not initialized')
    end
    local bytes, why = native.cipher_result(cipher.native)
    cipher.native = nil
    if bytes == nil then
        fail('OpenSSL error: ' .. why)
    end
    return bytes
end

function cipher_methods.free(cipher)
    cipher.native, cipher.key, cipher.iv = nil, nil, nil
end

local function direction(algorithm, mode, encrypts)
    local function new(key, iv)
        local cipher = setmetatable({
            algorithm = algorithm, mode = mode, encrypts = encrypts,
        }, Cipher)
        cipher:init(key, iv)
        return cipher
    end
    return setmetatable({new = new}, {
        __call = function(_, text, key, iv)
            local cipher = new(key, iv)
            return cipher:update(text) .. cipher:result()
        end,
    })
end

crypto.cipher = {}
for algorithm in pairs(CIPHERS) do
    local modes = {}
    for mode in pairs(MODES) do
        modes[mode] = {
            encrypt = direction(algorithm, mode, true),
            decrypt = direction(algorithm, mode, false),
        }
    end
    crypto.cipher[algorithm] = setmetatable(modes, {
        __index = function(_, mode)
            error(('Cipher mode %s is not supported'):format(tostring(mode)))
        end,
    })
end
setmetatable(crypto.cipher, {
    __index = function(_, name)
        error(('Cipher method "%s" is not supported'):format(tostring(name)), 2)
    end,
})

return crypto
