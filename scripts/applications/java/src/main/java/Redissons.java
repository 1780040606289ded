import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.*;
import org.redisson.api.map.event.EntryExpiredListener;
import org.redisson.api.options.LocalCachedMapOptions;
import org.redisson.api.stream.StreamAddArgs;
import org.redisson.api.stream.StreamCreateGroupArgs;
import org.redisson.api.stream.StreamMessageId;
import org.redisson.api.stream.StreamReadGroupArgs;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

/** What Redisson builds from scripts, messages and waits. */
final class Redissons {
    static void run(int port, Protocol protocol) throws Exception {
        Config config = new Config();
        config.setProtocol(protocol);
        config.setCodec(StringCodec.INSTANCE);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        RedissonClient one = Redisson.create(config), two = Redisson.create(config);
        ExecutorService pool = Executors.newCachedThreadPool();
        String with = "Redisson, " + protocol + ": ";
        try {
            locks(one, two, pool, with);
            waits(one, two, pool, with);
            maps(one, two, with);
            RTopic topic = two.getTopic("news");
            ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
            topic.addListener(String.class, (channel, message) -> heard.add(message));
            long receivers = one.getTopic("news").publish("hello");
            Main.check(receivers == 1 && Main.until(() -> heard.contains("hello")), with + "a topic");
            RRateLimiter limiter = one.getRateLimiter("limit");
            limiter.trySetRate(RateType.OVERALL, 5, Duration.ofSeconds(30));
            int admitted = 0;
            for (int n = 0; n < 12; n++) admitted += two.getRateLimiter("limit").tryAcquire() ? 1 : 0;
            Main.check(admitted == 5, with + "a rate limiter");
            RBatch batch = one.createBatch();
            for (int n = 0; n < 500; n++) batch.getAtomicLong("sum").addAndGetAsync(n);
            List<?> sums = batch.execute().getResponses();
            Main.check(sums.get(499).equals(124750L), with + "a batch of 500");
            RBloomFilter<String> filter = one.getBloomFilter("seen");
            filter.tryInit(1000, 0.01);
            for (int n = 0; n < 300; n++) filter.add("key" + n);
            boolean all = true;
            for (int n = 0; n < 300; n++) all &= two.<String>getBloomFilter("seen").contains("key" + n);
            Main.check(all && Math.abs(filter.count() - 300) < 20, with + "a Bloom filter");
            RTransaction transaction = one.createTransaction(TransactionOptions.defaults());
            transaction.getMap("account").put("a", "1");
            transaction.getBucket("total").set("1");
            transaction.commit();
            Main.check("1".equals(two.getMap("account").get("a")), with + "a transaction");
            one.getKeys().flushdb();
        } finally {
            pool.shutdownNow();
            one.shutdown();
            two.shutdown();
        }
    }

    private static void locks(RedissonClient one, RedissonClient two, ExecutorService pool, String with)
            throws Exception {
        int[] inside = {0, 0};
        CountDownLatch done = new CountDownLatch(8);
        for (int n = 0; n < 8; n++) {
            RedissonClient client = n % 2 == 0 ? one : two;
            pool.submit(() -> {
                for (int round = 0; round < 25; round++) {
                    RLock lock = client.getLock("lock");
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
        boolean all = done.await(60, TimeUnit.SECONDS);
        Main.check(all && inside[0] == 200 && inside[1] == 200, with + "a lock, 200 times by eight");
        one.getLock("leased").lock(300, TimeUnit.MILLISECONDS);
        long began = System.nanoTime();
        boolean got = pool.submit(() -> two.getLock("leased").tryLock(10, 10, TimeUnit.SECONDS)).get();
        long waited = (System.nanoTime() - began) / 1_000_000;
        Main.check(got && waited > 100 && waited < 5000, with + "a lock whose lease ends");
        RReadWriteLock readWrite = one.getReadWriteLock("readwrite");
        readWrite.readLock().lock();
        boolean reads = pool.submit(() -> two.getReadWriteLock("readwrite").readLock().tryLock()).get();
        boolean writes = pool.submit(() -> two.getReadWriteLock("readwrite").writeLock().tryLock()).get();
        Main.check(reads && !writes, with + "readers together, no writer beside them");
        RFencedLock fenced = one.getFencedLock("fenced");
        long first = fenced.lockAndGetToken();
        fenced.unlock();
        Main.check(fenced.lockAndGetToken() > first, with + "tokens of a fenced lock grow");
    }

    private static void waits(RedissonClient one, RedissonClient two, ExecutorService pool, String with)
            throws Exception {
        RSemaphore semaphore = one.getSemaphore("permits");
        semaphore.trySetPermits(2);
        semaphore.acquire(2);
        var waiting = pool.submit(() -> two.getSemaphore("permits").tryAcquire(Duration.ofSeconds(20)));
        Thread.sleep(200);
        boolean waited = !waiting.isDone();
        semaphore.release();
        Main.check(waited && waiting.get(), with + "a semaphore");
        RCountDownLatch latch = one.getCountDownLatch("latch");
        latch.trySetCount(2);
        var latched = pool.submit(() -> two.getCountDownLatch("latch").await(20, TimeUnit.SECONDS));
        latch.countDown();
        latch.countDown();
        Main.check(latched.get(), with + "a latch");
        var taken = pool.submit(() -> two.<String>getBlockingQueue("queue").poll(20, TimeUnit.SECONDS));
        Thread.sleep(200);
        one.getBlockingQueue("queue").offer("work");
        Main.check("work".equals(taken.get()), with + "a blocking queue");
        RStream<String, String> stream = one.getStream("stream");
        stream.createGroup(StreamCreateGroupArgs.name("group").makeStream());
        for (int n = 0; n < 50; n++) {
            stream.add(StreamAddArgs.entry("n", "" + n));
        }
        var read = two.<String, String>getStream("stream").readGroup("group", "me",
                StreamReadGroupArgs.neverDelivered().count(100));
        long acknowledged = stream.ack("group", read.keySet().toArray(new StreamMessageId[0]));
        Main.check(read.size() == 50 && acknowledged == 50, with + "a stream's group");
    }

    private static void maps(RedissonClient one, RedissonClient two, String with) throws Exception {
        RMapCache<String, String> cache = one.getMapCache("cache");
        AtomicInteger expired = new AtomicInteger();
        cache.addListener((EntryExpiredListener<String, String>) event -> expired.incrementAndGet());
        cache.put("short", "1", 500, TimeUnit.MILLISECONDS);
        cache.put("long", "2", 1, TimeUnit.HOURS);
        Main.check("1".equals(two.getMapCache("cache").get("short")), with + "an entry that expires");
        boolean gone = Main.until(() -> two.getMapCache("cache").get("short") == null);
        Main.check(gone && "2".equals(cache.get("long")), with + "and has, and others have not");
        Main.check(Main.until(() -> expired.get() == 1), with + "and its listener was told");
        var options = LocalCachedMapOptions.<String, String>name("near")
                .syncStrategy(LocalCachedMapOptions.SyncStrategy.UPDATE);
        RLocalCachedMap<String, String> near = one.getLocalCachedMap(options);
        RLocalCachedMap<String, String> other = two.getLocalCachedMap(options);
        near.put("k", "old");
        other.get("k");
        near.put("k", "new");
        Main.check(Main.until(() -> "new".equals(other.getCachedMap().get("k"))), with + "a near cache");
        RMap<String, String> map = one.getMap("map");
        map.putAll(Map.of("a", "1", "b", "2"));
        boolean put = "1".equals(map.putIfAbsent("a", "9")) && map.replace("b", "2", "3");
        Main.check(put && "3".equals(two.getMap("map").get("b")), with + "a map's conditional puts");
        RScoredSortedSet<String> sorted = one.getScoredSortedSet("sorted");
        for (int n = 0; n < 100; n++) sorted.add(n, "m" + n);
        Main.check(sorted.rank("m42") == 42 && sorted.pollFirst().equals("m0"), with + "a sorted set");
    }
}
