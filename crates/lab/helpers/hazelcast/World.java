import com.hazelcast.internal.json.JsonObject;
import com.hazelcast.internal.json.JsonValue;
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
        String kind = asked.names().get(0);
        JsonObject what = asked.get(kind).asObject();
        String space = what.getString("space", "rows");
        int valueBytes = what.getInt("value_bytes", 0);
        int requests = users * depth;
        Progress here = progress.computeIfAbsent(space, name -> new Progress());
        switch (kind) {
            case "fill" -> {
                ledgers.put(space, new Ledger(space, what.getInt("keys", 0), valueBytes));
                return each("write", space, requests);
            }
            case "read_all" -> {
                return each("read", space, requests);
            }
            case "keyed" -> {
                List<Keyed.Deed> mix = new ArrayList<>();
                for (JsonValue share : what.get("mix").asArray()) {
                    mix.add(deed(share.asArray().get(0).asInt(), share.asArray().get(1)));
                }
                Ledger ledger = ledger(space, 0);
                Pick pick = new Pick(what.getString("distribution", ""), ledger.keys(), seed);
                return new Keyed(ledger, mix, pick, requests);
            }
            case "insert" -> {
                List<Keyed.Deed> mix = List.of(new Keyed.Deed("insert", 1, 100));
                Pick pick = new Pick("uniform", 1, seed);
                return new Keyed(ledger(space, valueBytes), mix, pick, requests);
            }
            case "iterations" -> {
                String deed = what.getString("deed", "");
                return new Iterations(space, deed, valueBytes, here, users);
            }
            case "counters" -> {
                Counters.Totals sums = totals.computeIfAbsent(space, name -> new Counters.Totals());
                return new Counters(space, what.getBoolean("one", false), sums, users, requests);
            }
            case "sets" -> {
                boolean read = what.getBoolean("read", false);
                return new Sets(space, read, what.getInt("members", 0), here, users, seed);
            }
            case "rows" -> {
                boolean read = what.getBoolean("read", false);
                int members = what.getInt("members", 0);
                return new Rows(read, members, valueBytes, here, users, seed);
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

    /** {@code "write"} or {@code {"write_many":{"keys":10}}}. */
    private static Keyed.Deed deed(int share, JsonValue deed) {
        if (deed.isString()) {
            return new Keyed.Deed(deed.asString(), 1, share);
        }
        String what = deed.asObject().names().get(0);
        if (!what.equals("write_many")) {
            throw new Unknown("asked for the deed `" + what + "`");
        }
        int keys = deed.asObject().get(what).asObject().getInt("keys", 1);
        return new Keyed.Deed(what, keys, share);
    }
}
