import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletionException;

/**
 * Loads a system through its own client, commanded by the lab: a line of JSON in, lines of JSON out.
 *
 * <pre>
 *                                      {"ready":"client's version"}
 *   {"warm":{"ns":N}}                  {"done":{}}
 *   {"prepare":ASKED,"users":N,"depth":N}
 *                                      {"done":{}}
 *   {"measure":ASKED,"users":N,"depth":N,"warm_up_ns":N,"measured_ns":N,"interval_ns":N}
 *                                      {"measuring":{}}   when the warm-up is over
 *                                      {"measured":{}}    when the time is
 *                                      {"seen":{...}}     when all is answered
 *   {"ask":OPERATION}                  {"answer":...}     see {@link Single}
 *   anything                           {"wrong":"..."}, {"cannot":"..."} or {"broken":"..."}
 * </pre>
 *
 * ASKED is the lab's description of what users ask. Ends with its input.
 */
final class Helper {
    private static final int WARM_USERS = 32;

    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final Store store;
    private final World world;

    Helper(Store store, long seed) {
        this.store = store;
        world = new World(seed);
    }

    void serve() throws IOException {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("ready", Json.quote(store.version()));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                serve(JsonParser.parseString(line).getAsJsonObject());
            } catch (World.Unknown unknown) {
                say("cannot", Json.quote(store.title() + "'s helper: " + unknown.getMessage()));
            } catch (Load.Failed failed) {
                say(failed.wrong ? "wrong" : "broken", Json.quote(failed.getMessage()));
            } catch (CompletionException error) {
                say("broken", Json.quote(error.getCause().toString()));
            } catch (RuntimeException error) {
                say("broken", Json.quote(error.toString()));
            }
        }
    }

    private void serve(JsonObject command) throws Load.Failed {
        if (command.has("warm")) {
            warm(Json.number(command.getAsJsonObject("warm"), "ns", 0));
            say("done", new JsonObject());
            return;
        }
        if (command.has("ask")) {
            Operation operation = Single.operation(command.getAsJsonObject("ask"));
            Object answer = store.ask(operation).toCompletableFuture().join();
            say("answer", Single.json(operation, answer));
            return;
        }
        int users = Json.small(command, "users", 1);
        int depth = Json.small(command, "depth", 1);
        if (command.has("prepare")) {
            JsonObject asked = command.getAsJsonObject("prepare");
            Traffic traffic = world.traffic(asked, users, depth);
            try (Load load = new Load(store, traffic, users, depth, 0)) {
                load.start();
                load.finish();
            }
            say("done", new JsonObject());
            return;
        }
        Traffic traffic = world.traffic(command.getAsJsonObject("measure"), users, depth);
        long interval = Json.number(command, "interval_ns", 0);
        try (Load load = new Load(store, traffic, users, depth, interval)) {
            load.start();
            load.goOn(Json.number(command, "warm_up_ns", 0));
            say("measuring", new JsonObject());
            Load.Seen seen = load.measure(Json.number(command, "measured_ns", 0));
            say("measured", new JsonObject());
            load.drain();
            say("seen", seen.json());
        }
    }

    /**
     * Lets the client, and the system where it is Java too, compile what is measured later: every
     * kind of request for its part of the time, on things of their own that are removed afterwards.
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
            // Gson reads single quotes too.
            JsonObject asked = JsonParser.parseString(one).getAsJsonObject();
            Traffic traffic = scratch.traffic(asked, WARM_USERS, 1);
            try (Load load = new Load(store, traffic, WARM_USERS, 1, 0)) {
                load.start();
                load.goOn(ns / all.length);
                load.drain();
            }
        }
        store.clear();
    }

    private void say(String kind, JsonElement what) {
        out.println(Json.object(kind, what));
        out.flush();
    }
}
