import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.config.Protocol;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;

/** Jedis, Lettuce and Redisson at work: Main PORT. Exit status: failed checks. */
final class Main {
    private static int failed;

    interface Condition {
        boolean holds() throws Exception;
    }

    static void check(boolean isRight, String what) {
        System.out.println((isRight ? "ok   " : "FAIL ") + what);
        failed += isRight ? 0 : 1;
    }

    static int failures() {
        return failed;
    }

    static boolean until(Condition condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (!condition.holds()) {
            if (System.nanoTime() > end) return false;
            Thread.sleep(20);
        }
        return true;
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        jedis(port);
        for (ProtocolVersion version : ProtocolVersion.values()) lettuce(port, version);
        for (Protocol protocol : Protocol.values()) Redissons.run(port, protocol);
        System.exit(failed);
    }

    private static void jedis(int port) throws Exception {
        try (Jedis jedis = new Jedis("127.0.0.1", port); Jedis other = new Jedis("127.0.0.1", port)) {
            Pipeline pipeline = jedis.pipelined();
            List<Response<Long>> counts = new ArrayList<>();
            for (int n = 0; n < 1000; n++) counts.add(pipeline.incr("count"));
            pipeline.sync();
            check(counts.get(999).get() == 1000, "Jedis: a pipeline of 1000");
            jedis.watch("count");
            other.incr("count");
            Transaction refused = jedis.multi();
            refused.incr("count");
            check(refused.exec() == null, "Jedis: a transaction that another client thwarts");
            Transaction done = jedis.multi();
            Response<Long> sum = done.incrBy("count", 10);
            check(done.exec().size() == 1 && sum.get() == 1011, "Jedis: a transaction");
            String script = "return {KEYS[1], redis.call('get', KEYS[1]), ARGV[1] + 1}";
            Object answer = jedis.evalsha(jedis.scriptLoad(script), 1, "count", "41");
            check(answer.toString().equals("[count, 1011, 42]"), "Jedis: a script");
            ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
            JedisPubSub subscriber = new JedisPubSub() {
                @Override
                public void onPMessage(String pattern, String channel, String message) {
                    heard.add(pattern + channel + message);
                }
            };
            Thread listener = new Thread(() -> other.psubscribe(subscriber, "n*"));
            listener.start();
            check(until(() -> jedis.publish("news", "x") == 1), "Jedis: a subscriber");
            check(until(() -> heard.contains("n*newsx")), "Jedis: a message");
            subscriber.punsubscribe();
            listener.join(5000);
            check(!listener.isAlive() && other.ping().equals("PONG"), "Jedis: and its end");
            jedis.flushAll();
        }
    }

    private static void lettuce(int port, ProtocolVersion version) throws Exception {
        String with = "Lettuce, " + version + ": ";
        var client = io.lettuce.core.RedisClient.create(RedisURI.create("127.0.0.1", port));
        client.setOptions(ClientOptions.builder().protocolVersion(version).build());
        try (StatefulRedisConnection<String, String> connection = client.connect();
                var other = client.connect(); var subscriber = client.connectPubSub()) {
            var async = connection.async();
            List<RedisFuture<Long>> futures = new ArrayList<>();
            for (int n = 0; n < 2000; n++) futures.add(async.incr("count"));
            boolean inOrder = true;
            for (int n = 0; n < 2000; n++) inOrder &= futures.get(n).get(20, TimeUnit.SECONDS) == n + 1;
            check(inOrder, with + "2000 requests under way");
            var sync = connection.sync();
            String script = "return {KEYS[1], tonumber(ARGV[1]) + 1, {ok='fine'}, false}";
            Object answer = sync.eval(script, ScriptOutputType.MULTI, new String[] {"k"}, "41");
            check(answer.toString().equals("[k, 42, fine, null]"), with + "a script");
            sync.hset("hash", Map.of("a", "1", "b", "2"));
            check(sync.hgetall("hash").equals(Map.of("a", "1", "b", "2")), with + "a hash");
            sync.multi();
            RedisFuture<String> queued = async.set("in", "transaction");
            check(sync.exec().size() == 1 && queued.get().equals("OK"), with + "a transaction");
            ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
            subscriber.addListener(new RedisPubSubAdapter<String, String>() {
                @Override
                public void message(String channel, String message) {
                    heard.add(channel + message);
                }
            });
            subscriber.sync().subscribe("news");
            check(sync.publish("news", "x") == 1 && until(() -> heard.contains("newsx")), with + "a message");
            var waiting = other.async().xread(XReadArgs.Builder.block(20_000),
                    XReadArgs.StreamOffset.latest("stream"));
            until(() -> sync.info("clients").contains("blocked_clients:1"));
            sync.xadd("stream", Map.of("f", "v"));
            check(waiting.get(20, TimeUnit.SECONDS).get(0).getBody().equals(Map.of("f", "v")), with + "XREAD BLOCK");
            if (version == ProtocolVersion.RESP3) {
                Map<String, String> cache = new ConcurrentHashMap<>();
                var frontend = ClientSideCaching.enable(CacheAccessor.forMap(cache), connection,
                        TrackingArgs.Builder.enabled());
                other.sync().set("cached", "old");
                check("old".equals(frontend.get("cached")) && cache.containsKey("cached"), with + "a client-side cache");
                other.sync().set("cached", "new");
                check(until(() -> !cache.containsKey("cached")), with + "and its invalidation");
                check("new".equals(frontend.get("cached")), with + "and the new value");
                sync.clientTracking(TrackingArgs.Builder.enabled(false));
            }
            sync.flushall();
        } finally {
            client.shutdown(0, 2, TimeUnit.SECONDS);
        }
    }
}
