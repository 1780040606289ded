import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.HashMap;
import java.util.Map;

/**
 * One operation and its answer as JSON, so that the lab's tests can hold a client against a model.
 * Values are hexadecimal, keys and members text: {@code {"set":{"key":"k","value":"00ff"}}}.
 */
final class Single {
    private static final java.util.HexFormat HEX = java.util.HexFormat.of();

    private Single() {}

    static Operation operation(JsonObject asked) {
        String name = Json.name(asked);
        JsonObject what = asked.getAsJsonObject(name);
        String key = Json.text(what, "key", "");
        return switch (name) {
            case "set" -> new Operation.Set(key, value(what));
            case "get" -> new Operation.Get(key);
            case "delete" -> new Operation.Delete(key);
            case "add" -> new Operation.Add(key, Json.number(what, "by", 0));
            case "add_member" ->
                    new Operation.AddMember(Json.text(what, "set", ""), Json.text(what, "member", ""));
            case "members" -> new Operation.Members(Json.text(what, "set", ""));
            case "set_many" -> {
                Map<String, byte[]> pairs = new HashMap<>();
                for (JsonElement element : what.getAsJsonArray("pairs")) {
                    JsonObject pair = element.getAsJsonObject();
                    pairs.put(Json.text(pair, "key", ""), value(pair));
                }
                yield new Operation.SetMany(pairs);
            }
            case "insert_row" ->
                    new Operation.InsertRow(
                            Json.number(what, "id", 0), Json.number(what, "group", 0), value(what));
            case "find_by_group" -> new Operation.FindByGroup(Json.number(what, "group", 0));
            case "scan_from" -> new Operation.ScanFrom(key, Json.small(what, "count", 0));
            default -> throw new World.Unknown("asked to `" + name + "`");
        };
    }

    /** {@code "done"} where nothing is answered; else the answer's kind and what it is. */
    static JsonElement json(Operation operation, Object answer) {
        if (operation instanceof Operation.Get) {
            return Json.object("value", answer == null ? JsonNull.INSTANCE : hex(answer));
        }
        if (operation instanceof Operation.Delete || operation instanceof Operation.AddMember) {
            return Json.object("existed", new JsonPrimitive((Boolean) answer));
        }
        if (operation instanceof Operation.Add) {
            return Json.object("integer", new JsonPrimitive((Long) answer));
        }
        JsonArray list = new JsonArray();
        if (operation instanceof Operation.Members) {
            for (Object member : (Iterable<?>) answer) {
                list.add((String) member);
            }
            return Json.object("members", list);
        }
        if (operation instanceof Operation.ScanFrom) {
            for (Object value : (Iterable<?>) answer) {
                list.add(hex(value));
            }
            return Json.object("values", list);
        }
        if (operation instanceof Operation.FindByGroup) {
            for (Map.Entry<?, ?> row : ((Map<?, ?>) answer).entrySet()) {
                JsonArray pair = new JsonArray();
                pair.add((Number) row.getKey());
                pair.add(hex(row.getValue()));
                list.add(pair);
            }
            return Json.object("rows", list);
        }
        return Json.quote("done");
    }

    private static byte[] value(JsonObject what) {
        return HEX.parseHex(Json.text(what, "value", ""));
    }

    private static JsonPrimitive hex(Object value) {
        return Json.quote(HEX.formatHex((byte[]) value));
    }
}
