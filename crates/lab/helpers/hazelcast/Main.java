import com.hazelcast.internal.json.Json;
import com.hazelcast.internal.json.JsonObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Loads Hazelcast through its own client, commanded by the lab: a line of JSON in, lines of JSON out.
 *
 * <pre>
 *   arguments  HOST:PORT CLUSTER SEED
 *                                      {"ready":"client's version"}
 *   {"warm":{"ns":N}}                  {"done":{}}
 *   {"prepare":ASKED,"users":N,"depth":N}
 *                                      {"done":{}}
 *   {"measure":ASKED,"users":N,"depth":N,"warm_up_ns":N,"measured_ns":N,"interval_ns":N}
 *                                      {"measuring":{}}   when the warm-up is over
 *                                      {"measured":{}}    when the time is
 *                                      {"seen":{...}}     when all is answered
 *   anything                           {"wrong":"..."}, {"cannot":"..."} or {"broken":"..."}
 * </pre>
 *
 * ASKED is the lab's description of what users ask. Ends with its input.
 */
final class Main {
    private static final int CALLERS = 4096;
    private static final int WARM_USERS = 32;

    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final Store store;
    private final World world;

    private Main(Store store, long seed) {
        this.store = store;
        world = new World(seed);
    }

    public static void main(String[] arguments) throws IOException {
        try (Store store = new Store(arguments[0], arguments[1], CALLERS)) {
            new Main(store, Long.parseLong(arguments[2])).serve();
        }
        // Threads of the client may linger.
        System.exit(0);
    }

    private void serve() throws IOException {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("ready", Json.value(Store.version()).toString());
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                serve(Json.parse(line).asObject());
            } catch (World.Unknown unknown) {
                say("cannot", Json.value("Hazelcast's helper: " + unknown.getMessage()).toString());
            } catch (Load.Failed failed) {
                String kind = failed.wrong ? "wrong" : "broken";
                say(kind, Json.value(failed.getMessage()).toString());
            } catch (RuntimeException error) {
                say("broken", Json.value(error.toString()).toString());
            }
        }
    }

    private void serve(JsonObject command) throws Load.Failed {
        if (command.get("warm") != null) {
            warm(command.get("warm").asObject().getLong("ns", 0));
            say("done", "{}");
            return;
        }
        int users = command.getInt("users", 1);
        int depth = command.getInt("depth", 1);
        if (command.get("prepare") != null) {
            Traffic traffic = world.traffic(command.get("prepare").asObject(), users, depth);
            try (Load load = new Load(store, traffic, users, depth, 0)) {
                load.start();
                load.finish();
            }
            say("done", "{}");
            return;
        }
        Traffic traffic = world.traffic(command.get("measure").asObject(), users, depth);
        long interval = command.getLong("interval_ns", 0);
        try (Load load = new Load(store, traffic, users, depth, interval)) {
            load.start();
            load.goOn(command.getLong("warm_up_ns", 0));
            say("measuring", "{}");
            Load.Seen seen = load.measure(command.getLong("measured_ns", 0));
            say("measured", "{}");
            load.drain();
            say(
                    "seen",
                    "{\"replies\":" + seen.replies()
                            + ",\"elapsed_ns\":" + seen.elapsedNs()
                            + ",\"behind_ns\":" + seen.behindNs()
                            + ",\"latency\":" + seen.latency().json() + "}");
        }
    }

    /**
     * Lets both Java machines compile what is measured later: every kind of request for its part of the
     * time, on things of their own that are removed afterwards.
     */
    private void warm(long ns) throws Load.Failed {
        World scratch = new World(0);
        String[] all = {
            "{'iterations':{'space':'w','deed':'set','value_bytes':64}}",
            "{'iterations':{'space':'w','deed':'get','value_bytes':64}}",
            "{'iterations':{'space':'w','deed':'delete','value_bytes':64}}",
            "{'counters':{'space':'w','one':false}}",
            "{'sets':{'space':'s','read':false,'members':10}}",
            "{'sets':{'space':'s','read':true,'members':10}}",
            "{'rows':{'read':false,'members':10,'value_bytes':64}}",
            "{'rows':{'read':true,'members':10,'value_bytes':64}}",
        };
        for (String one : all) {
            JsonObject asked = Json.parse(one.replace('\'', '"')).asObject();
            Traffic traffic = scratch.traffic(asked, WARM_USERS, 1);
            try (Load load = new Load(store, traffic, WARM_USERS, 1, 0)) {
                load.start();
                load.goOn(ns / all.length);
                load.drain();
            }
        }
        store.clear();
    }

    private void say(String kind, String json) {
        out.println("{\"" + kind + "\":" + json + "}");
        out.flush();
    }
}
