import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;

/** Fields of JSON as the lab writes it: of an object, with a value for one that is not there. */
final class Json {
    private Json() {}

    static JsonPrimitive quote(String text) {
        return new JsonPrimitive(text);
    }

    /** An object with one field. */
    static JsonObject object(String name, JsonElement value) {
        JsonObject object = new JsonObject();
        object.add(name, value);
        return object;
    }

    /** The name of the only field. */
    static String name(JsonObject object) {
        return object.keySet().iterator().next();
    }

    static String text(JsonObject object, String name, String otherwise) {
        return object.has(name) ? object.get(name).getAsString() : otherwise;
    }

    static long number(JsonObject object, String name, long otherwise) {
        return object.has(name) ? object.get(name).getAsLong() : otherwise;
    }

    static int small(JsonObject object, String name, int otherwise) {
        return Math.toIntExact(number(object, name, otherwise));
    }

    /** Whether the field is there and true. */
    static boolean is(JsonObject object, String name) {
        return object.has(name) && object.get(name).getAsBoolean();
    }
}
