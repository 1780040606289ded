import io.lettuce.core.ClientOptions;
import io.lettuce.core.protocol.ProtocolVersion;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.springframework.cache.Cache;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.cache.RedisCacheWriter;
import org.springframework.data.redis.cache.BatchStrategies;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.stream.Consumer;
import org.springframework.data.redis.connection.stream.MapRecord;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.ScanOptions;
import org.springframework.data.redis.core.script.RedisScript;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.PatternTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.data.redis.stream.StreamMessageListenerContainer;
import org.springframework.data.redis.stream.StreamMessageListenerContainer.StreamMessageListenerContainerOptions;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.session.FindByIndexNameSessionRepository;
import org.springframework.session.data.redis.RedisIndexedSessionRepository;
import org.springframework.session.data.redis.config.ConfigureNotifyKeyspaceEventsAction;
import org.springframework.session.events.AbstractSessionEvent;

/** Spring Session, Spring Data Redis and the locks of Spring Integration: Springs PORT. */
final class Springs {
    private static final String USER = FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME;

    public static void main(String[] args) throws Exception {
        for (ProtocolVersion version : ProtocolVersion.values()) run(Integer.parseInt(args[0]), version);
        System.exit(Main.failures());
    }

    private static void run(int port, ProtocolVersion version) throws Exception {
        String with = "Spring, " + version + ": ";
        LettuceConnectionFactory one = connect(port, version), two = connect(port, version);
        ExecutorService pool = Executors.newCachedThreadPool();
        RedisMessageListenerContainer listeners = new RedisMessageListenerContainer();
        listeners.setConnectionFactory(one);
        listeners.afterPropertiesSet();
        listeners.start();
        try {
            StringRedisTemplate template = new StringRedisTemplate(one);
            templates(template, with);
            messages(template, listeners, with);
            sessions(one, two, listeners, with);
            caches(one, template, with);
            streams(one, template, with);
            for (RedisLockType type : RedisLockType.values()) locks(one, two, type, pool, with);
            template.getConnectionFactory().getConnection().serverCommands().flushAll();
        } finally {
            listeners.destroy();
            pool.shutdownNow();
            one.destroy();
            two.destroy();
        }
    }

    private static LettuceConnectionFactory connect(int port, ProtocolVersion version) {
        var options = ClientOptions.builder().protocolVersion(version).build();
        var factory = new LettuceConnectionFactory(new RedisStandaloneConfiguration("127.0.0.1", port),
                LettuceClientConfiguration.builder().clientOptions(options).build());
        factory.afterPropertiesSet();
        factory.start();
        return factory;
    }

    private static void templates(StringRedisTemplate template, String with) {
        template.opsForValue().set("value", "1", Duration.ofSeconds(30));
        boolean expires = template.getExpire("value", TimeUnit.MILLISECONDS) > 29_000;
        Main.check(template.opsForValue().increment("value") == 2 && expires, with + "a value that expires");
        template.opsForHash().putAll("hash", Map.of("a", "1", "b", "2"));
        Main.check(template.opsForHash().multiGet("hash", List.of("a", "c", "b")).toString().equals("[1, null, 2]"),
                with + "a hash");
        for (int n = 0; n < 500; n++) template.opsForZSet().add("scores", "m" + n, n);
        var top = template.opsForZSet().reverseRangeByScoreWithScores("scores", 490, 495, 1, 2);
        Main.check(top.stream().map(it -> it.getValue() + it.getScore()).toList().toString()
                .equals("[m494494.0, m493493.0]"), with + "a sorted set");
        int seen = 0;
        try (var cursor = template.opsForZSet().scan("scores", ScanOptions.scanOptions().match("m*9").count(50).build())) {
            while (cursor.hasNext()) seen += cursor.next().getValue().endsWith("9") ? 1 : 0;
        }
        Main.check(seen == 50, with + "a scan: " + seen);
        List<Object> replies = template.executePipelined(new SessionCallback<Object>() {
            @Override
            @SuppressWarnings("unchecked")
            public Object execute(RedisOperations operations) {
                for (int n = 0; n < 500; n++) operations.opsForList().rightPush("list", "e" + n);
                return null;
            }
        });
        Main.check(replies.size() == 500 && replies.get(499).equals(500L), with + "a pipeline of 500");
        List<Object> done = template.execute(new SessionCallback<List<Object>>() {
            @Override
            @SuppressWarnings("unchecked")
            public List<Object> execute(RedisOperations operations) {
                operations.watch("value");
                operations.multi();
                operations.opsForValue().increment("value");
                operations.opsForSet().members("none");
                return operations.exec();
            }
        });
        Main.check(done.equals(List.of(3L, Set.of())), with + "a transaction: " + done);
        Long sum = template.execute(RedisScript.of("return redis.call('incrby', KEYS[1], ARGV[1])", Long.class),
                List.of("value"), "39");
        Main.check(sum == 42, with + "a script");
    }

    private static void messages(StringRedisTemplate template, RedisMessageListenerContainer listeners, String with)
            throws Exception {
        ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
        listeners.addMessageListener((message, pattern) -> heard.add("channel:" + message), new ChannelTopic("news.a"));
        listeners.addMessageListener((message, pattern) -> heard.add("pattern:" + message), new PatternTopic("news.*"));
        Main.check(Main.until(() -> template.convertAndSend("news.a", "x") == 2), with + "two subscriptions");
        Main.check(Main.until(() -> heard.contains("channel:x") && heard.contains("pattern:x")), with + "messages");
    }

    private static void sessions(LettuceConnectionFactory one, LettuceConnectionFactory two,
            RedisMessageListenerContainer listeners, String with) throws Exception {
        try (var connection = one.getConnection()) {
            new ConfigureNotifyKeyspaceEventsAction().configure(connection);
        }
        ConcurrentLinkedQueue<String> events = new ConcurrentLinkedQueue<>();
        var first = sessionsOf(one);
        var second = sessionsOf(two);
        second.setApplicationEventPublisher(event -> {
            if (event instanceof AbstractSessionEvent it) {
                String user = it.getSession() == null ? null : it.getSession().getAttribute(USER);
                events.add(it.getClass().getSimpleName() + " " + it.getSessionId() + " " + user);
            }
        });
        listeners.addMessageListener(second, List.of(new ChannelTopic(second.getSessionDeletedChannel()),
                new ChannelTopic(second.getSessionExpiredChannel()),
                new PatternTopic(second.getSessionCreatedChannelPrefix() + "*")));
        var template = new StringRedisTemplate(one);
        // A key that is no session's.
        Main.check(Main.until(() -> template.convertAndSend(second.getSessionExpiredChannel(), "other") == 1),
                with + "a subscription to what expires");
        var session = first.createSession();
        session.setAttribute(USER, "alice");
        session.setAttribute("cart", List.of("apple"));
        first.save(session);
        var brief = first.createSession();
        brief.setAttribute(USER, "alice");
        brief.setMaxInactiveInterval(Duration.ofSeconds(1));
        first.save(brief);
        var found = second.findById(session.getId());
        Main.check(found != null && List.of("apple").equals(found.getAttribute("cart")), with + "a session");
        found.setAttribute("cart", List.of("apple", "pear"));
        second.save(found);
        Main.check(first.findById(session.getId()).<List<?>>getAttribute("cart").size() == 2, with + "and its change");
        Main.check(second.findByPrincipalName("alice").keySet().equals(Set.of(session.getId(), brief.getId())),
                with + "the sessions of a user");
        Main.check(Main.until(() -> events.contains("SessionCreatedEvent " + session.getId() + " alice")),
                with + "news of its creation");
        Main.check(Main.until(() -> events.contains("SessionExpiredEvent " + brief.getId() + " alice")),
                with + "news that one has expired");
        Main.check(second.findById(brief.getId()) == null, with + "it is gone");
        String old = session.getId();
        String changed = found.changeSessionId();
        second.save(found);
        Main.check(first.findById(old) == null && first.findById(changed) != null, with + "a session's new name");
        Main.check(second.findByPrincipalName("alice").keySet().equals(Set.of(changed)), with + "the user's only one");
        first.deleteById(changed);
        Main.check(Main.until(() -> events.contains("SessionDeletedEvent " + changed + " alice")),
                with + "news of its deletion");
        Main.check(second.findByPrincipalName("alice").isEmpty(), with + "no session is left");
        listeners.removeMessageListener(second);
    }

    private static RedisIndexedSessionRepository sessionsOf(LettuceConnectionFactory factory) {
        RedisTemplate<String, Object> template = new RedisTemplate<>();
        template.setKeySerializer(RedisSerializer.string());
        template.setHashKeySerializer(RedisSerializer.string());
        template.setConnectionFactory(factory);
        template.afterPropertiesSet();
        return new RedisIndexedSessionRepository(template);
    }

    private static void caches(LettuceConnectionFactory factory, StringRedisTemplate template, String with)
            throws Exception {
        var writer = RedisCacheWriter.lockingRedisCacheWriter(factory, BatchStrategies.scan(100));
        var manager = RedisCacheManager.builder(writer)
                .cacheDefaults(RedisCacheConfiguration.defaultCacheConfig().entryTtl(Duration.ofSeconds(60)))
                .withCacheConfiguration("brief",
                        RedisCacheConfiguration.defaultCacheConfig().entryTtl(Duration.ofMillis(200)))
                .build();
        manager.afterPropertiesSet();
        Cache cache = manager.getCache("prices");
        for (int n = 0; n < 1000; n++) cache.put("k" + n, "v" + n);
        Main.check("v7".equals(cache.get("k7", String.class)) && template.getExpire("prices::k7") > 50, with + "a cache");
        Main.check(cache.get("k0", () -> "other").equals("v0") && cache.get("new", () -> "made").equals("made"),
                with + "a cache that makes its values");
        Main.check(cache.putIfAbsent("k1", "other").get().equals("v1"), with + "a value that is there already");
        cache.evict("k1");
        Main.check(cache.get("k1") == null, with + "a value put out");
        Cache brief = manager.getCache("brief");
        brief.put("k", "v");
        Main.check(Main.until(() -> brief.get("k") == null), with + "a value that expires");
        cache.clear();
        Main.check(Main.until(() -> template.keys("prices::*").isEmpty()), with + "a cache emptied by SCAN");
    }

    private static void streams(LettuceConnectionFactory factory, StringRedisTemplate template, String with)
            throws Exception {
        template.opsForStream().createGroup("orders", ReadOffset.from("0"), "group");
        var options = StreamMessageListenerContainerOptions.builder().pollTimeout(Duration.ofMillis(200)).batchSize(20)
                .build();
        var container = StreamMessageListenerContainer.create(factory, options);
        ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
        for (String name : List.of("a", "b")) {
            container.receive(Consumer.from("group", name), StreamOffset.create("orders", ReadOffset.lastConsumed()),
                    (MapRecord<String, String, String> record) -> {
                        seen.add(record.getValue().get("n"));
                        template.opsForStream().acknowledge("group", record);
                    });
        }
        container.start();
        for (int n = 0; n < 300; n++) template.opsForStream().add("orders", Map.of("n", "" + n));
        Main.check(Main.until(() -> seen.size() == 300) && Set.copyOf(seen).size() == 300, with + "a stream, each once");
        Main.check(Main.until(() -> template.opsForStream().pending("orders", "group").getTotalPendingMessages() == 0),
                with + "and acknowledged");
        container.stop();
    }

    private static void locks(LettuceConnectionFactory one, LettuceConnectionFactory two, RedisLockType type,
            ExecutorService pool, String with) throws Exception {
        var registries = List.of(new RedisLockRegistry(one, "locks"), new RedisLockRegistry(two, "locks"));
        registries.forEach(registry -> registry.setRedisLockType(type));
        int[] inside = {0, 0};
        CountDownLatch done = new CountDownLatch(4);
        for (int n = 0; n < 4; n++) {
            RedisLockRegistry registry = registries.get(n % 2);
            pool.submit(() -> {
                for (int round = 0; round < 15; round++) {
                    Lock lock = registry.obtain("lock");
                    lock.lock();
                    try {
                        inside[0]++;
                        Thread.yield();
                        inside[1]++;
                    } finally {
                        lock.unlock();
                    }
                }
                done.countDown();
                return null;
            });
        }
        Main.check(done.await(60, TimeUnit.SECONDS) && inside[0] == 60 && inside[1] == 60, with + "a lock, " + type);
        Lock held = registries.get(0).obtain("held");
        held.lock();
        Main.check(!registries.get(1).obtain("held").tryLock(300, TimeUnit.MILLISECONDS), with + "one that is held");
        held.unlock();
        // The message that it is free comes before its listeners end.
        Thread.sleep(100);
        registries.forEach(RedisLockRegistry::destroy);
    }
}
