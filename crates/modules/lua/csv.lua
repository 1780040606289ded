-- csv: comma-separated values
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/csv/).
local csv = {}

local CHUNK_BYTES = 4096
-- A row that is longer is refused, so that a quote that never ends takes no memory without end.
local ROW_BYTES_MAX = 64 * 1024 * 1024

-- A text as something to read from.
local function reader_of(readable)
    if type(readable) == 'string' then
        local is_read = false
        return function()
            if is_read then
                return nil
            end
            is_read = true
            return readable
        end
    end
    return nil
end

local Parser = {}
Parser.__index = Parser

local function new_parser(options)
    local delimiter = options.delimiter or ','
    local quote = options.quote_char or '"'
    if #delimiter ~= 1 or #quote ~= 1 then
        error('csv: delimiter and quote_char are single characters', 3)
    end
    local special = ('%s%s\r\n '):format(delimiter, quote):gsub('[%^%]%-%%]', '%%%0')
    return setmetatable({
        delimiter = delimiter, quote = quote, plain = '^[^' .. special .. ']+',
        row = {}, parts = {}, bytes = 0, in_quotes = false, was_quote = false,
        has_text = false, after_return = false, rows = {},
    }, Parser)
end

local function put(parser, text)
    parser.bytes = parser.bytes + #text
    if parser.bytes > ROW_BYTES_MAX then
        error('csv: a row is longer than 64 MiB', 0)
    end
    parser.parts[#parser.parts + 1] = text
    -- Spaces at the end are no part of the field, unless quotes have them.
    parser.kept = #parser.parts
    parser.has_text = true
end

local function end_field(parser)
    parser.row[#parser.row + 1] = table.concat(parser.parts, '', 1, parser.kept or 0)
    parser.parts, parser.kept = {}, 0
end

local function end_row(parser)
    end_field(parser)
    parser.rows[#parser.rows + 1] = parser.row
    parser.row, parser.bytes, parser.has_text = {}, 0, false
end

local function quote_met(parser)
    if parser.was_quote then
        put(parser, parser.quote)
        parser.was_quote = false
    else
        parser.was_quote = true
        parser.has_text = true
    end
    parser.in_quotes = not parser.in_quotes
end

-- A character that is no part of a run of plain ones.
local function special(parser, char)
    if char == parser.quote then
        quote_met(parser)
        parser.after_return = false
        return
    end
    parser.was_quote = false
    if parser.in_quotes then
        put(parser, char)
    elseif char == parser.delimiter then
        end_field(parser)
        parser.has_text = true
    elseif char == '\n' and parser.after_return then
        -- The row ended with the return in front.
        parser.after_return = false
        return
    elseif char == '\n' or char == '\r' then
        end_row(parser)
    elseif (parser.kept or 0) > 0 then
        parser.parts[#parser.parts + 1] = char
        parser.has_text = true
    else
        parser.has_text = true
    end
    parser.after_return = char == '\r'
end

function Parser.feed(parser, text)
    local at = 1
    while at <= #text do
        local _, stop = text:find(parser.plain, at)
        if stop ~= nil then
            put(parser, text:sub(at, stop))
            parser.was_quote, parser.after_return = false, false
            at = stop + 1
        else
            special(parser, text:sub(at, at))
            at = at + 1
        end
    end
end

function Parser.finish(parser)
    if parser.in_quotes then
        require('log').warn('CSV file has errors')
    elseif parser.has_text then
        end_row(parser)
    end
end

-- Rows of a text, or of an object with `read`, one by one: their numbers and tables of fields.
function csv.iterate(readable, options)
    options = options or {}
    local read = reader_of(readable)
    if read == nil then
        local most = options.chunk_size or CHUNK_BYTES
        if type(readable.read) ~= 'function' then
            error('Usage: load(string or object with method read(num_bytes)[, opts])', 2)
        end
        read = function()
            return readable:read(most)
        end
    end
    local parser, at, is_over = new_parser(options), 0, false
    local skipped = options.skip_head_lines or 0
    local function next_row()
        while true do
            at = at + 1
            local row = parser.rows[at]
            if row ~= nil then
                parser.rows[at] = false
                return row
            end
            if is_over then
                return nil
            end
            parser.rows, at = {}, 0
            local text = read()
            if text == nil or text == '' then
                is_over = true
                parser:finish()
            else
                parser:feed(text)
            end
        end
    end
    local is_skipped = false
    return function(_, number)
        if not is_skipped then
            is_skipped = true
            for _ = 1, skipped do
                if next_row() == nil then
                    return nil
                end
            end
        end
        local row = next_row()
        if row ~= nil then
            return number + 1, row
        end
    end, nil, 0
end

function csv.load(readable, options)
    local rows = {}
    for number, row in csv.iterate(readable, options) do
        rows[number] = row
    end
    return rows
end

local function shown_field(value, delimiter, quote)
    local text = tostring(value)
    local has_special = text:find(delimiter, 1, true) or text:find('[\r\n]')
    text = text:gsub(quote == '%' and '%%' or quote, function()
        return quote .. quote
    end)
    return has_special and quote .. text .. quote or text
end

local function shown_row(row, delimiter, quote)
    local fields = {}
    for _, value in pairs(row) do
        fields[#fields + 1] = shown_field(value, delimiter, quote)
    end
    return table.concat(fields, delimiter) .. '\n'
end

-- Rows, or one row, as a text; or piece by piece by `writable:write`.
function csv.dump(rows, options, writable)
    if type(rows) ~= 'table' then
        error('Usage: dump(table[, opts, writable])', 2)
    end
    options = options or {}
    local delimiter, quote = options.delimiter or ',', options.quote_char or '"'
    if type(rows[1]) ~= 'table' then
        rows = {rows}
    end
    local shown = {}
    for _, row in pairs(rows) do
        local text = shown_row(row, delimiter, quote)
        if writable ~= nil then
            writable:write(text)
        else
            shown[#shown + 1] = text
        end
    end
    if writable == nil then
        return table.concat(shown)
    end
end

return csv
