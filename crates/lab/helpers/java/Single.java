import java.util.HashMap;
import java.util.Map;
import java.util.StringJoiner;

/**
 * One operation and its answer as JSON, so that the lab's tests can hold a client against a model.
 * Values are hexadecimal, keys and members text: {@code {"set":{"key":"k","value":"00ff"}}}.
 */
final class Single {
    private static final java.util.HexFormat HEX = java.util.HexFormat.of();

    private Single() {}

    static Operation operation(Json asked) {
        Json what = asked.get(asked.name());
        String key = what.text("key", "");
        return switch (asked.name()) {
            case "set" -> new Operation.Set(key, value(what));
            case "get" -> new Operation.Get(key);
            case "delete" -> new Operation.Delete(key);
            case "add" -> new Operation.Add(key, what.number("by", 0));
            case "add_member" ->
                    new Operation.AddMember(what.text("set", ""), what.text("member", ""));
            case "members" -> new Operation.Members(what.text("set", ""));
            case "set_many" -> {
                Map<String, byte[]> pairs = new HashMap<>();
                for (Json pair : what.get("pairs").items()) {
                    pairs.put(pair.text("key", ""), value(pair));
                }
                yield new Operation.SetMany(pairs);
            }
            case "insert_row" ->
                    new Operation.InsertRow(
                            what.number("id", 0), what.number("group", 0), value(what));
            case "find_by_group" -> new Operation.FindByGroup(what.number("group", 0));
            case "scan_from" -> new Operation.ScanFrom(key, what.small("count", 0));
            default -> throw new World.Unknown("asked to `" + asked.name() + "`");
        };
    }

    /** Of something that answers nothing, {@code "done"}; else the answer's kind and what it is. */
    static String json(Operation operation, Object answer) {
        if (operation instanceof Operation.Get) {
            return "{\"value\":" + (answer == null ? "null" : hex(answer)) + "}";
        }
        if (operation instanceof Operation.Delete || operation instanceof Operation.AddMember) {
            return "{\"existed\":" + (Boolean) answer + "}";
        }
        if (operation instanceof Operation.Add) {
            return "{\"integer\":" + (Long) answer + "}";
        }
        StringJoiner list = new StringJoiner(",", "[", "]");
        if (operation instanceof Operation.Members) {
            for (Object member : (Iterable<?>) answer) {
                list.add(Json.quote((String) member));
            }
            return "{\"members\":" + list + "}";
        }
        if (operation instanceof Operation.ScanFrom) {
            for (Object value : (Iterable<?>) answer) {
                list.add(hex(value));
            }
            return "{\"values\":" + list + "}";
        }
        if (operation instanceof Operation.FindByGroup) {
            for (Map.Entry<?, ?> row : ((Map<?, ?>) answer).entrySet()) {
                list.add("[" + row.getKey() + "," + hex(row.getValue()) + "]");
            }
            return "{\"rows\":" + list + "}";
        }
        return "\"done\"";
    }

    private static byte[] value(Json what) {
        return HEX.parseHex(what.text("value", ""));
    }

    private static String hex(Object value) {
        return '"' + HEX.formatHex((byte[]) value) + '"';
    }
}
