import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What the store was told so far, and what users ask next: the lab's {@code Asked}, read from JSON. */
final class World {
    private long seed;
    private final Map<String, Ledger> ledgers = new HashMap<>();
    private final Map<String, Progress> progress = new HashMap<>();
    private final Map<String, Counters.Totals> totals = new HashMap<>();

    World(long seed) {
        this.seed = seed;
    }

    /** What {@code users} users ask, with {@code depth} requests of each under way at once. */
    Traffic traffic(JsonObject asked, int users, int depth) {
        seed++;
        String kind = Json.name(asked);
        JsonObject what = asked.getAsJsonObject(kind);
        String space = Json.text(what, "space", "rows");
        int valueBytes = Json.small(what, "value_bytes", 0);
        int requests = users * depth;
        Progress here = progress.computeIfAbsent(space, name -> new Progress());
        switch (kind) {
            case "fill" -> {
                ledgers.put(space, new Ledger(space, Json.small(what, "keys", 0), valueBytes));
                return each("write", space, requests);
            }
            case "read_all" -> {
                return each("read", space, requests);
            }
            case "keyed" -> {
                List<Keyed.Deed> mix = new ArrayList<>();
                for (JsonElement share : what.getAsJsonArray("mix")) {
                    JsonArray pair = share.getAsJsonArray();
                    mix.add(deed(pair.get(0).getAsInt(), pair.get(1)));
                }
                Ledger ledger = ledger(space, 0);
                Pick pick = new Pick(Json.text(what, "distribution", ""), ledger.keys(), seed);
                return new Keyed(ledger, mix, pick, requests);
            }
            case "insert" -> {
                List<Keyed.Deed> mix = List.of(new Keyed.Deed("insert", 1, 100));
                Pick pick = new Pick("uniform", 1, seed);
                return new Keyed(ledger(space, valueBytes), mix, pick, requests);
            }
            case "iterations" -> {
                String deed = Json.text(what, "deed", "");
                return new Iterations(space, deed, valueBytes, here, users);
            }
            case "counters" -> {
                Counters.Totals sums = totals.computeIfAbsent(space, name -> new Counters.Totals());
                return new Counters(space, Json.is(what, "one"), sums, users, requests);
            }
            case "sets" -> {
                return new Sets(space, groups(what, here, users));
            }
            case "rows" -> {
                return new Rows(groups(what, here, users), valueBytes);
            }
            default -> throw new Unknown("asked for `" + kind + "`");
        }
    }

    /** Something that this program was not written for. */
    static final class Unknown extends RuntimeException {
        private static final long serialVersionUID = 1;

        Unknown(String what) {
            super(what);
        }
    }

    private Traffic each(String deed, String space, int requests) {
        List<Keyed.Deed> mix = List.of(new Keyed.Deed(deed, 1, 100));
        return new Keyed(ledger(space, 0), mix, null, requests);
    }

    private Ledger ledger(String space, int valueBytes) {
        return ledgers.computeIfAbsent(space, name -> new Ledger(name, 0, valueBytes));
    }

    private Groups.Plan groups(JsonObject what, Progress progress, int users) {
        return new Groups.Plan(Json.is(what, "read"), Json.small(what, "members", 0), progress, users, seed);
    }

    /** {@code "write"} or {@code {"write_many":{"keys":10}}}. */
    private static Keyed.Deed deed(int share, JsonElement deed) {
        if (deed.isJsonPrimitive()) {
            return new Keyed.Deed(deed.getAsString(), 1, share);
        }
        String what = Json.name(deed.getAsJsonObject());
        if (!what.equals("write_many") && !what.equals("scan")) {
            throw new Unknown("asked for the deed `" + what + "`");
        }
        JsonObject keys = deed.getAsJsonObject().getAsJsonObject(what);
        return new Keyed.Deed(what, Json.small(keys, "keys", 1), share);
    }
}
