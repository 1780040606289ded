-- digest: sums of texts, keys, base64
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/digest/).
local native = ...
local crypto = require('crypto')

local PBKDF2_ITERATIONS, PBKDF2_BYTES = 100000, 128
-- More would hold a thread that files wait for as well.
local PBKDF2_ITERATIONS_MAX = 10000000
local CRC_BEGIN, MURMUR_SEED = 4294967295, 13

local digest = {}

local function check_text(value, usage)
    if type(value) ~= 'string' then
        error('Usage: ' .. usage, 3)
    end
end

local function hex(bytes)
    return (bytes:gsub('.', function(byte)
        return ('%02x'):format(byte:byte())
    end))
end

for _, name in ipairs({'md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512'}) do
    digest[name] = function(text)
        check_text(text, ('digest.%s(string)'):format(name))
        return crypto.digest[name](text)
    end
    digest[name .. '_hex'] = function(text)
        check_text(text, ('digest.%s_hex(string)'):format(name))
        return hex(crypto.digest[name](text))
    end
end

-- Refused by name: no library that is kept well has it.
for _, name in ipairs({'md4', 'md4_hex'}) do
    digest[name] = function()
        error(('digest.%s is not supported'):format(name), 2)
    end
end

function digest.urandom(count)
    if count == nil then
        error('Usage: digest.urandom(len)', 2)
    end
    if type(count) ~= 'number' then
        error('digest.urandom: the length is a number', 2)
    end
    return native.urandom(count)
end

function digest.guava(key, buckets)
    return native.guava(key, buckets)
end

function digest.base64_encode(text, options)
    if type(text) ~= 'string' then
        error('Usage: digest.base64_encode(string[, table])', 2)
    end
    options = options or {}
    if type(options) ~= 'table' then
        error('Usage: digest.base64_encode(string[, table])', 2)
    end
    local is_url = options.urlsafe and true or false
    local pads = not (options.nopad or is_url)
    local wraps = not (options.nowrap or is_url)
    return native.base64_encode(text, pads, wraps, is_url)
end

function digest.base64_decode(text)
    check_text(text, 'digest.base64_decode(string)')
    return native.base64_decode(text)
end

local function pbkdf2(password, salt, iterations, length)
    if iterations ~= nil and type(iterations) ~= 'number' then
        error('iters must be a number', 3)
    elseif iterations ~= nil and iterations > PBKDF2_ITERATIONS_MAX then
        error('iters must be at most 10000000', 3)
    end
    if length ~= nil and type(length) ~= 'number' then
        error('digest_len must be a number', 3)
    end
    length = length or PBKDF2_BYTES
    if length > PBKDF2_BYTES then
        error('too big digest size', 3)
    end
    return native.pbkdf2(password, salt, iterations or PBKDF2_ITERATIONS, length)
end

function digest.pbkdf2(password, salt, iterations, length)
    if type(password) ~= 'string' or type(salt) ~= 'string' then
        error('Usage: digest.pbkdf2(pass, salt[,iters][,digest_len])', 2)
    end
    return pbkdf2(password, salt, iterations, length)
end

function digest.pbkdf2_hex(password, salt, iterations, length)
    if type(password) ~= 'string' or type(salt) ~= 'string' then
        error('Usage: digest.pbkdf2_hex(pass, salt)', 2)
    end
    return hex(pbkdf2(password, salt, iterations, length))
end

digest.aes256cbc = {
    encrypt = function(text, key, iv)
        return crypto.cipher.aes256.cbc.encrypt(text, key, iv)
    end,
    decrypt = function(text, key, iv)
        return crypto.cipher.aes256.cbc.decrypt(text, key, iv)
    end,
}

-- CRC-32C.
local crc_methods = {}
local Crc = {__index = crc_methods}

function crc_methods.update(crc, text)
    check_text(text, 'crc32:update(string)')
    crc.value = native.crc32(crc.value, text)
end

function crc_methods.result(crc)
    return crc.value
end

function crc_methods.clear(crc)
    crc.value = CRC_BEGIN
end

function crc_methods.copy(crc)
    return setmetatable({value = crc.value}, Crc)
end

digest.crc32 = setmetatable({
    crc_begin = CRC_BEGIN,
    new = function()
        return setmetatable({value = CRC_BEGIN}, Crc)
    end,
}, {
    __call = function(_, text)
        check_text(text, 'digest.crc32(string)')
        return native.crc32(CRC_BEGIN, text)
    end,
})

function digest.crc32_update(crc, text)
    check_text(text, 'digest.crc32_update(string)')
    return native.crc32(tonumber(crc), text)
end

-- MurmurHash3.
local murmur_methods = {}
local Murmur = {__index = murmur_methods}

local function new_murmur(options)
    local seed = options and options.seed or MURMUR_SEED
    if type(seed) ~= 'number' then
        error('digest.murmur: the seed is a number', 2)
    end
    return setmetatable({seed = seed, native = native.murmur_new(seed)}, Murmur)
end

function murmur_methods.update(murmur, text)
    check_text(text, 'murmur:update(string)')
    native.murmur_update(murmur.native, text)
end

function murmur_methods.result(murmur)
    return native.murmur_result(murmur.native)
end

function murmur_methods.clear(murmur)
    murmur.native = native.murmur_new(murmur.seed)
end

function murmur_methods.copy(murmur)
    return setmetatable({seed = murmur.seed, native = native.murmur_copy(murmur.native)}, Murmur)
end

digest.murmur = setmetatable({default_seed = MURMUR_SEED, new = new_murmur}, {
    __call = function(_, text)
        check_text(text, 'digest.murmur(string)')
        local murmur = new_murmur()
        murmur:update(text)
        return murmur:result()
    end,
})

return digest
