import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Future;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.command.BinaryCommandFactory;
import net.rubyeye.xmemcached.command.TextCommandFactory;
import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.CASResponse;
import net.spy.memcached.ConnectionFactory;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;

/** Work of spymemcached and xmemcached, over both protocols, on the server at a port. */
public final class Main {
    private Main() {}

    private static void check(Object got, Object expected) {
        if (!Objects.equals(got, expected)) {
            throw new AssertionError(got + " instead of " + expected);
        }
    }

    private static void spy(ConnectionFactory factory, InetSocketAddress server, String prefix)
            throws Exception {
        MemcachedClient client = new MemcachedClient(factory, List.of(server));
        check(client.set(prefix + "a", 100, List.of("some", 1)).get(), true);
        check(client.get(prefix + "a"), List.of("some", 1));
        check(client.get(prefix + "none"), null);
        check(client.add(prefix + "a", 100, "other").get(), false);
        check(client.replace(prefix + "a", 100, "value").get(), true);
        var versioned = client.gets(prefix + "a");
        check(client.cas(prefix + "a", versioned.getCas(), "newer"), CASResponse.OK);
        check(client.cas(prefix + "a", versioned.getCas(), "newest"), CASResponse.EXISTS);
        check(client.cas(prefix + "none", 1, "x"), CASResponse.NOT_FOUND);
        check(client.incr(prefix + "n", 5, 7, 100), 7L);
        check(client.incr(prefix + "n", 5), 12L);
        check(client.decr(prefix + "n", 100), 0L);
        check(client.touch(prefix + "a", 50).get(), true);
        List<Future<Boolean>> sets = new ArrayList<>();
        List<String> keys = new ArrayList<>();
        for (int n = 0; n < 1000; n++) {
            keys.add(prefix + n);
            sets.add(client.set(prefix + n, 100, n));
        }
        for (Future<Boolean> set : sets) {
            check(set.get(), true);
        }
        Map<String, Object> values = client.getBulk(keys);
        check(values.size(), 1000);
        check(values.get(prefix + 999), 999);
        check(client.delete(prefix + "a").get(), true);
        check(client.delete(prefix + "a").get(), false);
        check(client.getStats().size(), 1);
        client.shutdown();
    }

    private static void xmemcached(boolean binary, InetSocketAddress server, String prefix)
            throws Exception {
        var builder = new XMemcachedClientBuilder(List.of(server));
        builder.setCommandFactory(binary ? new BinaryCommandFactory() : new TextCommandFactory());
        var client = builder.build();
        check(client.set(prefix + "a", 100, "value"), true);
        check(client.get(prefix + "a"), "value");
        check(client.add(prefix + "a", 100, "other"), false);
        check(client.cas(prefix + "a", 100, client.gets(prefix + "a"),
                new net.rubyeye.xmemcached.CASOperation<Object>() {
                    @Override public int getMaxTries() { return 1; }
                    @Override public Object getNewValue(long cas, Object now) { return now + "!"; }
                }), true);
        check(client.get(prefix + "a"), "value!");
        check(client.incr(prefix + "n", 5, 7), 7L);
        check(client.incr(prefix + "n", 5), 12L);
        List<String> keys = new ArrayList<>();
        for (int n = 0; n < 1000; n++) {
            keys.add(prefix + n);
            check(client.set(prefix + n, 100, n), true);
        }
        check(client.get(keys).size(), 1000);
        check(client.delete(prefix + "a"), true);
        check(client.getVersions(5000).size(), 1);
        client.shutdown();
    }

    public static void main(String[] args) throws Exception {
        var server = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0]));
        spy(new DefaultConnectionFactory(), server, "spy:text:");
        spy(new BinaryConnectionFactory(), server, "spy:binary:");
        System.out.println("spymemcached: ok");
        xmemcached(false, server, "x:text:");
        xmemcached(true, server, "x:binary:");
        System.out.println("xmemcached: ok");
        System.exit(0);
    }
}
