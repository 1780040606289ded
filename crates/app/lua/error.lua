-- box.error: the errors of box, by their codes
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/box_error/).
local ladon = ...
local ffi = require('ffi')

local CODES = {
    {0, "UNKNOWN", "Unknown error"},
    {1, "ILLEGAL_PARAMS", "Illegal parameters, %s"},
    {2, "MEMORY_ISSUE", "Failed to allocate %s bytes in %s for %s"},
    {3, "TUPLE_FOUND", "Duplicate key exists in unique index '%s' in space '%s'"},
    {4, "TUPLE_NOT_FOUND", "Tuple doesn't exist in index '%s' in space '%s'"},
    {5, "UNSUPPORTED", "%s does not support %s"},
    {6, "NONMASTER", "Can't modify data on a replication slave. My master is: %s"},
    {7, "READONLY", "Can't modify data because this instance is in read-only mode."},
    {8, "INJECTION", "Error injection '%s'"},
    {9, "CREATE_SPACE", "Failed to create space '%s': %s"},
    {10, "SPACE_EXISTS", "Space '%s' already exists"},
    {11, "DROP_SPACE", "Can't drop space '%s': %s"},
    {12, "ALTER_SPACE", "Can't modify space '%s': %s"},
    {13, "INDEX_TYPE", "Unsupported index type supplied for index '%s' in space '%s'"},
    {14, "MODIFY_INDEX", "Can't create or modify index '%s' in space '%s': %s"},
    {15, "LAST_DROP", "Can't drop the primary key in a system space, space '%s'"},
    {16, "TUPLE_FORMAT_LIMIT", "Tuple format limit reached: %s"},
    {17, "DROP_PRIMARY_KEY", "Can't drop primary key in space '%s' while secondary keys exist"},
    {18, "KEY_PART_TYPE", "Supplied key type of part %s does not match index part type: expected %s"},
    {19, "EXACT_MATCH", "Invalid key part count in an exact match (expected %s, got %s)"},
    {20, "INVALID_MSGPACK", "Invalid MsgPack - %s"},
    {21, "PROC_RET", "msgpack.encode: can not encode Lua type '%s'"},
    {22, "TUPLE_NOT_ARRAY", "Tuple/Key must be MsgPack array"},
    {23, "FIELD_TYPE", "Tuple field %s type does not match one required by operation: expected %s"},
    {24, "INDEX_PART_TYPE_MISMATCH", "Field %s has type '%s' in one index, but type '%s' in another"},
    {25, "UPDATE_SPLICE", "SPLICE error on field %s: %s"},
    {26, "UPDATE_ARG_TYPE", "Argument type in operation '%s' on field %s does not match field type: expected %s"},
    {27, "FORMAT_MISMATCH_INDEX_PART", "Field %s has type '%s' in space format, but type '%s' in index definition"},
    {28, "UNKNOWN_UPDATE_OP", "Unknown UPDATE operation #%s: %s"},
    {29, "UPDATE_FIELD", "Field %s UPDATE error: %s"},
    {30, "FUNCTION_TX_ACTIVE", "Transaction is active at return from function"},
    {31, "KEY_PART_COUNT", "Invalid key part count (expected [0..%s], got %s)"},
    {32, "PROC_LUA", "%s"},
    {33, "NO_SUCH_PROC", "Procedure '%s' is not defined"},
    {34, "NO_SUCH_TRIGGER", "Trigger '%s' doesn't exist"},
    {35, "NO_SUCH_INDEX_ID", "No index #%s is defined in space '%s'"},
    {36, "NO_SUCH_SPACE", "Space '%s' does not exist"},
    {37, "NO_SUCH_FIELD_NO", "Field %s was not found in the tuple"},
    {38, "EXACT_FIELD_COUNT", "Tuple field count %s does not match space field count %s"},
    {39, "FIELD_MISSING", "Tuple field %s required by space format is missing"},
    {40, "WAL_IO", "Failed to write to disk"},
    {41, "MORE_THAN_ONE_TUPLE", "Get() doesn't support partial keys and non-unique indexes"},
    {42, "ACCESS_DENIED", "%s access to %s '%s' is denied for user '%s'"},
    {43, "CREATE_USER", "Failed to create user '%s': %s"},
    {44, "DROP_USER", "Failed to drop user or role '%s': %s"},
    {45, "NO_SUCH_USER", "User '%s' is not found"},
    {46, "USER_EXISTS", "User '%s' already exists"},
    {47, "PASSWORD_MISMATCH", "Incorrect password supplied for user '%s'"},
    {48, "UNKNOWN_REQUEST_TYPE", "Unknown request type %s"},
    {49, "UNKNOWN_SCHEMA_OBJECT", "Unknown object type '%s'"},
    {50, "CREATE_FUNCTION", "Failed to create function '%s': %s"},
    {51, "NO_SUCH_FUNCTION", "Function '%s' does not exist"},
    {52, "FUNCTION_EXISTS", "Function '%s' already exists"},
    {53, "BEFORE_REPLACE_RET", "Invalid return value of space:before_replace trigger: expected tuple or nil, got %s"},
    {54, "MULTISTATEMENT_TRANSACTION", "Can not perform %s in a multi-statement transaction"},
    {55, "TRIGGER_EXISTS", "Trigger '%s' already exists"},
    {56, "USER_MAX", "A limit on the total number of users has been reached: %s"},
    {57, "NO_SUCH_ENGINE", "Space engine '%s' does not exist"},
    {58, "RELOAD_CFG", "Can't set option '%s' dynamically"},
    {59, "CFG", "Incorrect value for option '%s': %s"},
    {60, "SAVEPOINT_EMPTY_TX", "Can not set a savepoint in an empty transaction"},
    {61, "NO_SUCH_SAVEPOINT", "Can not rollback to savepoint: the savepoint does not exist"},
    {62, "UNKNOWN_REPLICA", "Replica %s is not registered with replica set %s"},
    {63, "REPLICASET_UUID_MISMATCH", "Replica set UUID mismatch: expected %s, got %s"},
    {64, "INVALID_UUID", "Invalid UUID: %s"},
    {65, "REPLICASET_UUID_IS_RO", "Can't reset replica set UUID: it is already assigned"},
    {66, "INSTANCE_UUID_MISMATCH", "Instance UUID mismatch: expected %s, got %s"},
    {68, "INVALID_ORDER", "Invalid LSN order for instance %s: previous LSN = %s, new lsn = %s"},
    {69, "MISSING_REQUEST_FIELD", "Missing mandatory field '%s' in request"},
    {70, "IDENTIFIER", "Invalid identifier '%s' (expected printable symbols only or it is too long)"},
    {71, "DROP_FUNCTION", "Can't drop function %s: %s"},
    {72, "ITERATOR_TYPE", "Unknown iterator type '%s'"},
    {73, "REPLICA_MAX", "Replica count limit reached: %s"},
    {74, "INVALID_XLOG", "Failed to read xlog: %s"},
    {75, "INVALID_XLOG_NAME", "Invalid xlog name: expected %s found %s"},
    {76, "INVALID_XLOG_ORDER", "Invalid xlog order: %s and %s"},
    {77, "NO_CONNECTION", "Connection is not established"},
    {78, "TIMEOUT", "Timeout exceeded"},
    {79, "ACTIVE_TRANSACTION", "Operation is not permitted when there is an active transaction "},
    {80, "CURSOR_NO_TRANSACTION", "The transaction the cursor belongs to has ended"},
    {81, "CROSS_ENGINE_TRANSACTION", "A multi-statement transaction can not use multiple storage engines"},
    {82, "NO_SUCH_ROLE", "Role '%s' is not found"},
    {83, "ROLE_EXISTS", "Role '%s' already exists"},
    {84, "CREATE_ROLE", "Failed to create role '%s': %s"},
    {85, "INDEX_EXISTS", "Index '%s' already exists"},
    {86, "SESSION_CLOSED", "Session is closed"},
    {87, "ROLE_LOOP", "Granting role '%s' to role '%s' would create a loop"},
    {88, "GRANT", "Incorrect grant arguments: %s"},
    {89, "PRIV_GRANTED", "User '%s' already has %s access on %s%s"},
    {90, "ROLE_GRANTED", "User '%s' already has role '%s'"},
    {91, "PRIV_NOT_GRANTED", "User '%s' does not have %s access on %s '%s'"},
    {92, "ROLE_NOT_GRANTED", "User '%s' does not have role '%s'"},
    {93, "MISSING_SNAPSHOT", "Can't find snapshot"},
    {94, "CANT_UPDATE_PRIMARY_KEY", "Attempt to modify a tuple field which is part of index '%s' in space '%s'"},
    {95, "UPDATE_INTEGER_OVERFLOW", "Integer overflow when performing '%s' operation on field %s"},
    {96, "GUEST_USER_PASSWORD", "Setting password for guest user has no effect"},
    {97, "TRANSACTION_CONFLICT", "Transaction has been aborted by conflict"},
    {98, "UNSUPPORTED_PRIV", "Unsupported %s privilege '%s'"},
    {99, "LOAD_FUNCTION", "Failed to dynamically load function '%s': %s"},
    {100, "FUNCTION_LANGUAGE", "Unsupported language '%s' specified for function '%s'"},
    {101, "RTREE_RECT", "RTree: %s must be an array with %s (point) or %s (rectangle/box) numeric coordinates"},
    {102, "PROC_C", "%s"},
    {103, "UNKNOWN_RTREE_INDEX_DISTANCE_TYPE", "Unknown RTREE index distance type %s"},
    {104, "PROTOCOL", "%s"},
    {105, "UPSERT_UNIQUE_SECONDARY_KEY", "Space %s has a unique secondary index and does not support UPSERT"},
    {106, "WRONG_INDEX_RECORD", "Wrong record in _index space: got {%s}, expected {%s}"},
    {107, "WRONG_INDEX_PARTS", "Wrong index parts: %s; expected field1 id (number), field1 type (string), ..."},
    {108, "WRONG_INDEX_OPTIONS", "Wrong index options (field %s): %s"},
    {109, "WRONG_SCHEMA_VERSION", "Wrong schema version, current: %s, in request: %s"},
    {110, "MEMTX_MAX_TUPLE_SIZE", "Failed to allocate %s bytes for tuple: tuple is too large. Check 'memtx_max_tuple_size' configuration option."},
    {111, "WRONG_SPACE_OPTIONS", "Wrong space options (field %s): %s"},
    {112, "UNSUPPORTED_INDEX_FEATURE", "Index '%s' (%s) of space '%s' (%s) does not support %s"},
    {113, "VIEW_IS_RO", "View '%s' is read-only"},
    {114, "NO_TRANSACTION", "No active transaction"},
    {115, "SYSTEM", "%s"},
    {116, "LOADING", "Instance bootstrap hasn't finished yet"},
    {117, "CONNECTION_TO_SELF", "Connection to self"},
    {118, "KEY_PART_IS_TOO_LONG", "Key part is too long: %s of %s bytes"},
    {119, "COMPRESSION", "Compression error: %s"},
    {120, "CHECKPOINT_IN_PROGRESS", "Snapshot is already in progress"},
    {121, "SUB_STMT_MAX", "Can not execute a nested statement: nesting limit reached"},
    {122, "COMMIT_IN_SUB_STMT", "Can not commit transaction in a nested statement"},
    {123, "ROLLBACK_IN_SUB_STMT", "Rollback called in a nested statement"},
    {124, "DECOMPRESSION", "Decompression error: %s"},
    {125, "INVALID_XLOG_TYPE", "Invalid xlog type: expected %s, got %s"},
    {126, "ALREADY_RUNNING", "Failed to lock WAL directory %s and hot_standby mode is off"},
    {127, "INDEX_FIELD_COUNT_LIMIT", "Indexed field count limit reached: %s indexed fields"},
    {128, "LOCAL_INSTANCE_ID_IS_READ_ONLY", "The local instance id %s is read-only"},
    {129, "BACKUP_IN_PROGRESS", "Backup is already in progress"},
    {130, "READ_VIEW_ABORTED", "The read view is aborted"},
    {131, "INVALID_INDEX_FILE", "Invalid INDEX file %s: %s"},
    {132, "INVALID_RUN_FILE", "Invalid RUN file: %s"},
    {133, "INVALID_VYLOG_FILE", "Invalid VYLOG file: %s"},
    {134, "CHECKPOINT_ROLLBACK", "Can't start a checkpoint while in cascading rollback"},
    {135, "VY_QUOTA_TIMEOUT", "Timed out waiting for Vinyl memory quota"},
    {136, "PARTIAL_KEY", "%s index  does not support selects via a partial key (expected %s parts, got %s). Please Consider changing index type to TREE."},
    {137, "TRUNCATE_SYSTEM_SPACE", "Can't truncate a system space, space '%s'"},
    {138, "LOAD_MODULE", "Failed to dynamically load module '%s': %s"},
    {139, "VINYL_MAX_TUPLE_SIZE", "Failed to allocate %s bytes for tuple: tuple is too large. Check 'vinyl_max_tuple_size' configuration option."},
    {140, "WRONG_DD_VERSION", "Wrong _schema version: expected 'major.minor[.patch]'"},
    {141, "WRONG_SPACE_FORMAT", "Wrong space format (field %s): %s"},
    {142, "CREATE_SEQUENCE", "Failed to create sequence '%s': %s"},
    {143, "ALTER_SEQUENCE", "Can't modify sequence '%s': %s"},
    {144, "DROP_SEQUENCE", "Can't drop sequence '%s': %s"},
    {145, "NO_SUCH_SEQUENCE", "Sequence '%s' does not exist"},
    {146, "SEQUENCE_EXISTS", "Sequence '%s' already exists"},
    {147, "SEQUENCE_OVERFLOW", "Sequence '%s' has overflowed"},
    {148, "NO_SUCH_INDEX_NAME", "No index '%s' is defined in space '%s'"},
    {149, "SPACE_FIELD_IS_DUPLICATE", "Space field '%s' is duplicate"},
    {150, "CANT_CREATE_COLLATION", "Failed to initialize collation: %s."},
    {151, "WRONG_COLLATION_OPTIONS", "Wrong collation options (field %s): %s"},
    {152, "NULLABLE_PRIMARY", "Primary index of space '%s' can not contain nullable parts"},
    {153, "NO_SUCH_FIELD_NAME_IN_SPACE", "Field '%s' was not found in space '%s' format"},
    {154, "TRANSACTION_YIELD", "Transaction has been aborted by a fiber yield"},
    {155, "NO_SUCH_GROUP", "Replication group '%s' does not exist"},
    {156, "SQL_BIND_VALUE", "Bind value for parameter %s is out of range for type %s"},
    {157, "SQL_BIND_TYPE", "Bind value type %s for parameter %s is not supported"},
    {158, "SQL_BIND_PARAMETER_MAX", "SQL bind parameter limit reached: %s"},
    {159, "SQL_EXECUTE", "Failed to execute SQL statement: %s"},
    {160, "UPDATE_DECIMAL_OVERFLOW", "Decimal overflow when performing operation '%s' on field %s"},
    {161, "SQL_BIND_NOT_FOUND", "Parameter %s was not found in the statement"},
    {162, "ACTION_MISMATCH", "Field %s contains %s on conflict action, but %s in index parts"},
    {163, "VIEW_MISSING_SQL", "Space declared as a view must have SQL statement"},
    {164, "FOREIGN_KEY_CONSTRAINT", "Can not commit transaction: deferred foreign keys violations are not resolved"},
    {165, "NO_SUCH_MODULE", "Module '%s' does not exist"},
    {166, "NO_SUCH_COLLATION", "Collation '%s' does not exist"},
    {167, "CREATE_FK_CONSTRAINT", "Failed to create foreign key constraint '%s': %s"},
    {168, "DROP_FK_CONSTRAINT", "Failed to drop foreign key constraint '%s': %s"},
    {169, "NO_SUCH_CONSTRAINT", "Constraint '%s' does not exist in space '%s'"},
    {170, "CONSTRAINT_EXISTS", "%s constraint '%s' already exists in space '%s'"},
    {171, "SQL_TYPE_MISMATCH", "Type mismatch: can not convert %s to %s"},
    {172, "ROWID_OVERFLOW", "Rowid is overflowed: too many entries in ephemeral space"},
    {173, "DROP_COLLATION", "Can't drop collation %s : %s"},
    {174, "ILLEGAL_COLLATION_MIX", "Illegal mix of collations"},
    {175, "SQL_NO_SUCH_PRAGMA", "Pragma '%s' does not exist"},
    {176, "SQL_CANT_RESOLVE_FIELD", "Can’t resolve field '%s'"},
    {177, "INDEX_EXISTS_IN_SPACE", "Index '%s' already exists in space '%s'"},
    {178, "INCONSISTENT_TYPES", "Inconsistent types: expected %s got %s"},
    {179, "SQL_SYNTAX_WITH_POS", "Syntax error at line %s at or near position %s: %s"},
    {180, "SQL_STACK_OVERFLOW", "Failed to parse SQL statement: parser stack limit reached"},
    {181, "SQL_SELECT_WILDCARD", "Failed to expand '*' in SELECT statement without FROM clause"},
    {182, "SQL_STATEMENT_EMPTY", "Failed to execute an empty SQL statement"},
    {184, "SQL_SYNTAX_NEAR_TOKEN", "Syntax error at line %s near '%s'"},
    {185, "SQL_UNKNOWN_TOKEN", "At line %s at position %s: unrecognized token '%s'"},
    {186, "SQL_PARSER_GENERIC", "%s"},
    {187, "SQL_ANALYZE_ARGUMENT", "ANALYZE statement argument %s is not a base table"},
    {188, "SQL_COLUMN_COUNT_MAX", "Failed to create space '%s': space column count %s exceeds the limit (%s)"},
    {189, "HEX_LITERAL_MAX", "Hex literal %s%s length %s exceeds the supported limit (%s)"},
    {190, "INT_LITERAL_MAX", "Integer literal %s%s exceeds the supported range [-9223372036854775808, 18446744073709551615]"},
    {191, "SQL_PARSER_LIMIT", "%s %s exceeds the limit (%s)"},
    {192, "INDEX_DEF_UNSUPPORTED", "%s are prohibited in an index definition"},
    {193, "CK_DEF_UNSUPPORTED", "%s are prohibited in a ck constraint definition"},
    {194, "MULTIKEY_INDEX_MISMATCH", "Field %s is used as multikey in one index and as single key in another"},
    {195, "CREATE_CK_CONSTRAINT", "Failed to create check constraint '%s': %s"},
    {196, "CK_CONSTRAINT_FAILED", "Check constraint failed '%s': %s"},
    {197, "SQL_COLUMN_COUNT", "Unequal number of entries in row expression: left side has %s, but right side - %s"},
    {198, "FUNC_INDEX_FUNC", "Failed to build a key for functional index '%s' of space '%s': %s"},
    {199, "FUNC_INDEX_FORMAT", "Key format doesn't match one defined in functional index '%s' of space '%s': %s"},
    {200, "FUNC_INDEX_PARTS", "Wrong functional index definition: %s"},
    {201, "NO_SUCH_FIELD_NAME", "Field '%s' was not found in the tuple"},
    {202, "FUNC_WRONG_ARG_COUNT", "Wrong number of arguments is passed to %s(): expected %s, got %s"},
    {203, "BOOTSTRAP_READONLY", "Trying to bootstrap a local read-only instance as master"},
    {204, "SQL_FUNC_WRONG_RET_COUNT", "SQL expects exactly one argument returned from %s, got %s"},
    {205, "FUNC_INVALID_RETURN_TYPE", "Function '%s' returned value of invalid type: expected %s got %s"},
    {206, "SQL_PARSER_GENERIC_WITH_POS", "At line %s at or near position %s: %s"},
    {207, "REPLICA_NOT_ANON", "Replica '%s' is not anonymous and cannot register."},
    {208, "CANNOT_REGISTER", "Couldn't find an instance to register this replica on."},
    {209, "SESSION_SETTING_INVALID_VALUE", "Session setting %s expected a value of type %s"},
    {210, "SQL_PREPARE", "Failed to prepare SQL statement: %s"},
    {211, "WRONG_QUERY_ID", "Prepared statement with id %s does not exist"},
    {212, "SEQUENCE_NOT_STARTED", "Sequence '%s' is not started"},
    {213, "NO_SUCH_SESSION_SETTING", "Session setting %s doesn't exist"},
    {214, "UNCOMMITTED_FOREIGN_SYNC_TXNS", "Found uncommitted sync transactions from other instance with id %s"},
    {215, "SYNC_MASTER_MISMATCH", "CONFIRM message arrived for an unknown master id %s, expected %s"},
    {216, "SYNC_QUORUM_TIMEOUT", "Quorum collection for a synchronous transaction is timed out"},
    {217, "SYNC_ROLLBACK", "A rollback for a synchronous transaction is received"},
    {218, "TUPLE_METADATA_IS_TOO_BIG", "Can't create tuple: metadata size %s is too big"},
}

local templates, names = {}, {}
local last

-- What an error has beside its cdata. A cdata is a key by what it is, not by its value.
local parts = setmetatable({}, {__mode = 'k'})

local methods = {}

function methods.unpack(err)
    local of = parts[err]
    local shown = {
        type = of.type, code = of.code, message = of.message, base_type = of.base_type,
        trace = of.trace, object_type = of.object_type, object_name = of.object_name,
        access_type = of.access_type,
    }
    if of.prev ~= nil then
        shown.prev = of.prev
    end
    return shown
end

function methods.raise(err)
    last = err
    error(err, 0)
end

-- How it is shown by json and yaml.
function methods.__serialize(err)
    return parts[err].message
end

function methods.match(err, ...)
    -- By the string's own methods: those of persistent functions are bounded.
    return parts[err].message:match(...)
end

function methods.set_prev(err, prev)
    local at = prev
    while at ~= nil do
        if at == err then
            error('Cycles are not allowed', 2)
        end
        at = parts[at].prev
    end
    parts[err].prev = prev
end

local type_of
type_of = ffi.metatype('struct error', {
    __index = function(err, key)
        local of = parts[err]
        local method = methods[key]
        if method ~= nil then
            return method
        end
        return of and of[key]
    end,
    __tostring = function(err)
        return parts[err].message
    end,
    __eq = function(a, b)
        return rawequal(a, b) or (ffi.istype('struct error', a) and ffi.istype('struct error', b)
            and a.number == b.number)
    end,
    __concat = function(a, b)
        return tostring(a) .. tostring(b)
    end,
})

local count = 0

local OWN = 'builtin/'

-- File and line of whoever is not of these files: of a function of C as well, unless they are natives.
local function place(over_natives)
    local level = 3
    while true do
        local at = debug.getinfo(level, 'Sl')
        if at == nil then
            return '?', 0
        elseif at.what == 'C' then
            if not over_natives then
                return '[C]', 4294967295
            end
        elseif at.short_src:sub(1, #OWN) ~= OWN then
            return at.short_src, at.currentline
        end
        level = level + 1
    end
end

-- Makes an error.
local function make(of, over_natives)
    count = count + 1
    local err = type_of(count)
    local file, line = place(over_natives)
    of.trace = {{file = file, line = line}}
    of.base_type = of.base_type or of.type
    parts[err] = of
    return err
end

local function is_error(value)
    return type(value) == 'cdata' and ffi.istype('struct error', value)
end

-- Turns %s of a template into the arguments; what is missing stays.
local function format(template, ...)
    local arguments, at = {...}, 0
    return (template:gsub('%%s', function()
        at = at + 1
        return arguments[at] ~= nil and tostring(arguments[at]) or '%s'
    end))
end

local USAGE = 'Usage: box.error.new(code, args) or box.error.new(type, args)'

local function new_at(level, over_natives, code, ...)
    if type(code) == 'table' then
        local custom = code.type
        return make({
            type = custom or 'ClientError',
            base_type = custom and 'CustomError' or 'ClientError',
            custom_type = custom,
            code = code.code or (custom and box.error.CUSTOM_ERROR) or 0,
            message = code.reason or code.message or '',
        }, over_natives)
    end
    if type(code) == 'string' then
        if select('#', ...) == 0 then
            error(USAGE, level)
        end
        local text = select(1, ...)
        local message = select('#', ...) > 1 and string.format(...) or tostring(text)
        return make({
            type = code, base_type = 'CustomError', custom_type = code,
            code = box.error.CUSTOM_ERROR or 0, message = message,
        }, over_natives)
    end
    if type(code) ~= 'number' then
        error(USAGE, level)
    end
    local template = templates[code] or 'Unknown error'
    return make({type = 'ClientError', code = code, message = format(template, ...)},
        over_natives)
end

local functions = {}

function functions.new(...)
    return new_at(3, false, ...)
end

function functions.last()
    return last
end

function functions.clear()
    last = nil
end

function functions.is(value)
    return is_error(value)
end

function functions.set(err)
    if not is_error(err) then
        error('Usage: box.error.set(error object)', 2)
    end
    last = err
end

for _, one in ipairs(CODES) do
    templates[one[1]] = one[3]
    names[one[2]] = one[1]
end

box.error = setmetatable({}, {
    __index = function(_, key)
        local code = names[key]
        if code ~= nil then
            return code
        end
        return functions[key]
    end,
    __call = function(_, ...)
        if select('#', ...) == 0 then
            if last ~= nil then
                error(last, 0)
            end
            return
        end
        local first = ...
        if is_error(first) then
            last = first
            error(first, 0)
        end
        last = new_at(3, false, ...)
        error(last, 0)
    end,
    __pairs = function()
        return pairs(names)
    end,
})

ladon.is_error = is_error

-- Raises an error with this code and the arguments of its text.
function ladon.fail(code, ...)
    last = new_at(3, true, code, ...)
    error(last, 0)
end

local ACCESS_DENIED = 42
local TO, FOR = ' access to ', "' is denied for user '"
local find, sub = string.find, string.sub

-- The right that was missing, and the kind and name of what it was asked for. No pattern: names are long as anybody likes.
local function denied_access(message)
    local at, to = find(message, TO, 1, true)
    local quote = at and find(message, " '", to + 1, true)
    local stop, last = nil, quote and find(message, FOR, quote + 2, true)
    while last do
        stop, last = last, find(message, FOR, last + 1, true)
    end
    if stop then
        return sub(message, 1, at - 1), sub(message, to + 1, quote - 1), sub(message, quote + 2, stop - 1)
    end
end

-- The natives' way to raise one.
ladon.registry['ladon.raise'] = function(code, message, class)
    if class == 'LuajitError' then
        error(message, 3)
    end
    local of = {type = class, code = code, message = message}
    if code == ACCESS_DENIED then
        of.access_type, of.object_type, of.object_name = denied_access(message)
    end
    last = make(of, true)
    if code == ACCESS_DENIED then
        ladon.denied(message)
    end
    error(last, 0)
end

-- The error of a module that needs no box: of `fio`, with the system's number, and of `crypto`.
ladon.registry['ladon.module_error'] = function(class, message, number)
    last = make({type = class, code = number and 115 or 0, message = message, errno = number}, true)
    return last
end

-- MessagePack of errors, extension 3: {0: [errors, from the last one on]}, each a map
-- (https://www.tarantool.io/en/doc/latest/reference/internals/msgpack_extensions/).
local EXTENSION = 3
local CLASS, FILE, LINE, MESSAGE, ERRNO, CODE, FIELDS = 0, 1, 2, 3, 4, 5, 6

-- Makes an error of what came of a stack, and of its causes.
local function restore(stack)
    local made
    for at = #stack, 1, -1 do
        local entry = stack[at]
        local is_whole = type(entry) == 'table' and type(entry[CLASS]) == 'string'
            and type(entry[MESSAGE]) == 'string' and tonumber(entry[CODE]) ~= nil
        if not is_whole then
            return nil
        end
        local fields = type(entry[FIELDS]) == 'table' and entry[FIELDS] or {}
        local custom = type(fields.custom_type) == 'string' and fields.custom_type or nil
        local number = tonumber(entry[ERRNO])
        local err = make({
            type = custom or entry[CLASS], base_type = entry[CLASS], custom_type = custom,
            code = tonumber(entry[CODE]), message = entry[MESSAGE],
            errno = number ~= 0 and number or nil, prev = made,
            object_type = fields.object_type, object_name = fields.object_name,
            access_type = fields.access_type,
        }, true)
        parts[err].trace = {{
            file = tostring(entry[FILE] or '?'), line = tonumber(entry[LINE]) or 0,
        }}
        made = err
    end
    return made
end
ladon.restore_error = restore

local is_restoring = false

-- The error of an extension's payload, which has no errors in it.
ladon.registry['ladon.error_of'] = function(payload)
    local is_done, body = false, nil
    if not is_restoring then
        is_restoring = true
        is_done, body = pcall(require('msgpack').decode, payload)
        is_restoring = false
    end
    local stack = is_done and type(body) == 'table' and body[0]
    local err = type(stack) == 'table' and restore(stack)
    if not err then
        error('Can not parse an error from MsgPack', 0)
    end
    return err
end

-- Code, message and class of whatever was raised; of an error of box its file and line, further fields as
-- MessagePack, and the error that it came of as well.
ladon.registry['ladon.parts'] = function(raised)
    if is_error(raised) then
        local of = parts[raised]
        local at, fields = of.trace[1], nil
        if of.object_type ~= nil then
            fields = {
                object_type = of.object_type, object_name = of.object_name,
                access_type = of.access_type,
            }
        elseif of.custom_type ~= nil then
            fields = {custom_type = of.custom_type}
        end
        return of.code, of.message, of.custom_type and 'CustomError' or of.type, at.file, at.line,
            fields and require('msgpack').encode(fields), of.prev
    end
    if type(raised) == 'table' and getmetatable(raised) == nil then
        local text = raised.message or raised.reason
        if type(text) == 'string' then
            return 32, text, 'LuajitError'
        end
    end
    return 32, tostring(raised), 'LuajitError'
end

local function array_head(count)
    if count < 16 then
        return string.char(0x90 + count)
    end
    return string.char(0xdd, bit.rshift(count, 24), bit.band(bit.rshift(count, 16), 255),
        bit.band(bit.rshift(count, 8), 255), bit.band(count, 255))
end

local function payload_of(err)
    local encode, entries = require('msgpack').encode, {}
    while err ~= nil do
        local code, message, class, file, line, fields, prev = ladon.registry['ladon.parts'](err)
        entries[#entries + 1] = string.char(fields and 0x87 or 0x86)
            .. '\0' .. encode(class) .. '\2' .. encode(line) .. '\1' .. encode(file)
            .. '\3' .. encode(message) .. '\4' .. encode(parts[err].errno or 0)
            .. '\5' .. encode(code) .. (fields and '\6' .. fields or '')
        err = prev
    end
    return string.char(0x81, 0) .. array_head(#entries) .. table.concat(entries)
end

-- The payload of an error and the extension's number, where the session wants errors.
ladon.registry['ladon.extension'] = function(value)
    if is_error(value) and ladon.marshals ~= nil and ladon.marshals()
        and require('msgpack').cfg.encode_error_as_ext ~= false then
        return payload_of(value), EXTENSION
    end
end

ladon.add_plain(is_error, function(err)
    local payload, extension = ladon.registry['ladon.extension'](err)
    if payload ~= nil then
        return payload, extension
    end
    return tostring(err)
end)
