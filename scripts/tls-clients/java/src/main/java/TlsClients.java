import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;

/** Jedis and Lettuce over TLS, with a client's certificate: FOLDER PORT. */
class TlsClients {
    static final String PASSWORD = "secret";

    static void check(String what, boolean is) {
        if (!is) throw new AssertionError(what);
    }

    static void jedis(File folder, int port) throws Exception {
        var ssl = redis.clients.jedis.SslOptions.builder()
            .truststore(new File(folder, "trust.p12"), PASSWORD.toCharArray()).trustStoreType("PKCS12")
            .keystore(new File(folder, "client.p12"), PASSWORD.toCharArray()).keyStoreType("PKCS12")
            .build();
        var config = DefaultJedisClientConfig.builder().ssl(true).sslOptions(ssl).build();
        try (var client = new Jedis(new HostAndPort("localhost", port), config)) {
            var value = "x".repeat(1 << 20);
            client.set("jedis", value);
            check("GET of 1 MB", client.get("jedis").equals(value));
            var pipeline = client.pipelined();
            for (int i = 0; i < 1000; i++) pipeline.incr("jedis:count");
            check("1,000 INCR", pipeline.syncAndReturnAll().get(999).equals(1000L));
        }
        System.out.println("jedis: ok");
    }

    static void lettuce(File folder, int port) throws Exception {
        var ssl = SslOptions.builder().jdkSslProvider()
            .truststore(new File(folder, "trust.p12"), PASSWORD)
            .keystore(new File(folder, "client.p12"), PASSWORD.toCharArray()).keyStoreType("PKCS12")
            .build();
        var client = RedisClient.create(RedisURI.Builder.redis("localhost", port).withSsl(true).build());
        client.setOptions(ClientOptions.builder().sslOptions(ssl).build());
        try (var connection = client.connect()) {
            List<RedisFuture<Long>> futures = new ArrayList<>();
            for (int i = 0; i < 1000; i++) futures.add(connection.async().incr("lettuce:count"));
            check("1,000 INCR", futures.get(999).get() == 1000);
        }
        client.shutdown();
        System.out.println("lettuce: ok");
    }

    public static void main(String[] arguments) throws Exception {
        jedis(new File(arguments[0]), Integer.parseInt(arguments[1]));
        lettuce(new File(arguments[0]), Integer.parseInt(arguments[1]));
    }
}
