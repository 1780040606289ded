import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramIterationValue;

/**
 * Keeps requests of many users under way: each sends a batch, and its next one when the last is answered
 * (closed loop) or is due (open loop; latency counts from then). A user goes on in the thread of the
 * client that completed its last request: no thread of ours stands between the two.
 */
final class Load implements AutoCloseable {
    /** The load cannot go on; {@code wrong} where an answer was. */
    static final class Failed extends Exception {
        private static final long serialVersionUID = 1;

        final boolean wrong;

        Failed(boolean wrong, String what) {
            super(what);
            this.wrong = wrong;
        }
    }

    /** What was seen in some stretch of time. */
    record Seen(long replies, long elapsedNs, long behindNs, Histogram latency) {
        /** Latency as pairs of a time and its count, the lowest first. */
        JsonObject json() {
            JsonArray pairs = new JsonArray();
            for (HistogramIterationValue step : latency.recordedValues()) {
                JsonArray pair = new JsonArray();
                pair.add(latency.medianEquivalentValue(step.getValueIteratedTo()));
                pair.add(step.getCountAtValueIteratedTo());
                pairs.add(pair);
            }
            JsonObject json = new JsonObject();
            json.addProperty("replies", replies);
            json.addProperty("elapsed_ns", elapsedNs);
            json.addProperty("behind_ns", behindNs);
            json.add("latency", pairs);
            return json;
        }
    }

    private static final long LATENCY_MAX_NS = 60_000_000_000L;
    private static final long STALL_NS = 30_000_000_000L;
    private static final long SILENCE_MAX_NS = 10_000_000_000L;

    private final Store store;
    private final Traffic traffic;
    private final int users;
    private final int depth;
    /** 0 in the closed loop. */
    private final long intervalNs;

    private final ScheduledExecutorService clock;

    // What follows is touched under the lock of this object only.
    private final int[] unanswered;
    private final long[] due;
    private final boolean[] ended;
    private int going;
    private int underWay;
    private boolean stopped;
    private Failed failed;
    private long lastReply = System.nanoTime();
    private long replies;
    private Histogram latency = latencies();

    Load(Store store, Traffic traffic, int users, int depth, long intervalNs) {
        this.store = store;
        this.traffic = traffic;
        this.users = users;
        this.depth = depth;
        this.intervalNs = intervalNs;
        unanswered = new int[users];
        due = new long[users];
        ended = new boolean[users];
        clock = intervalNs > 0 ? Executors.newSingleThreadScheduledExecutor() : null;
    }

    /** Of nanoseconds, told apart to a thousandth of their size. */
    private static Histogram latencies() {
        return new Histogram(LATENCY_MAX_NS, 3);
    }

    /** Lets every user begin; in the open loop, evenly over an interval. */
    void start() {
        long now = System.nanoTime();
        synchronized (this) {
            going = users;
        }
        for (int user = 0; user < users; user++) {
            due[user] = now + intervalNs * user / users;
            sendWhenDue(user);
        }
    }

    /** Waits until {@code ns} went by or there is nothing more to ask. */
    synchronized void goOn(long ns) throws Failed {
        long deadline = System.nanoTime() + ns;
        wait(() -> System.nanoTime() >= deadline || going == 0, deadline);
    }

    /** As {@link #goOn}, and tells what was seen. Where nothing was, goes on until something is. */
    synchronized Seen measure(long ns) throws Failed {
        replies = 0;
        latency = latencies();
        long began = System.nanoTime();
        goOn(ns);
        while (replies == 0 && going > 0 && System.nanoTime() - began < SILENCE_MAX_NS) {
            goOn(1_000_000);
        }
        long now = System.nanoTime();
        long behind = 0;
        for (int user = 0; user < users && intervalNs > 0; user++) {
            behind = Math.max(behind, ended[user] ? 0 : now - due[user]);
        }
        Seen seen = new Seen(replies, now - began, behind, latency);
        latency = latencies();
        return seen;
    }

    /** Sends nothing more and waits for what is under way. */
    synchronized void drain() throws Failed {
        stopped = true;
        wait(() -> underWay == 0, Long.MAX_VALUE);
    }

    /** Waits until there is nothing more to ask and all is answered. */
    synchronized void finish() throws Failed {
        wait(() -> going == 0, Long.MAX_VALUE);
    }

    @Override
    public void close() {
        if (clock != null) {
            clock.shutdownNow();
        }
    }

    private interface Condition {
        boolean holds();
    }

    /** Called under the lock. */
    private void wait(Condition condition, long deadline) throws Failed {
        while (failed == null && !condition.holds()) {
            long now = System.nanoTime();
            if (underWay > 0 && now - lastReply > STALL_NS) {
                throw new Failed(false, "no reply for 30 s, with " + underWay + " unanswered");
            }
            long left = deadline == Long.MAX_VALUE ? 100_000_000 : deadline - now;
            try {
                TimeUnit.NANOSECONDS.timedWait(this, Math.min(Math.max(left, 1), 100_000_000));
            } catch (InterruptedException interrupted) {
                throw new Failed(false, "interrupted");
            }
        }
        if (failed != null) {
            throw failed;
        }
    }

    private void sendWhenDue(int user) {
        long left = intervalNs == 0 ? 0 : due[user] - System.nanoTime();
        if (left <= 0) {
            send(user);
            return;
        }
        clock.schedule(() -> send(user), left, TimeUnit.NANOSECONDS);
    }

    private void send(int user) {
        Operation[] batch = new Operation[depth];
        int count = 0;
        synchronized (this) {
            while (!stopped && failed == null && count < depth) {
                Operation operation = traffic.next(user, user * depth + count);
                if (operation == null) {
                    break;
                }
                batch[count++] = operation;
            }
            unanswered[user] = count;
            underWay += count;
            if (count == 0) {
                ended[user] = true;
                going--;
                notifyAll();
                return;
            }
        }
        long started = intervalNs == 0 ? System.nanoTime() : due[user];
        due[user] += intervalNs;
        for (int slot = 0; slot < count; slot++) {
            ask(user, user * depth + slot, batch[slot], started);
        }
    }

    private void ask(int user, int request, Operation operation, long started) {
        try {
            // In the completing thread: another one would be a hop that no user of the client needs.
            store.ask(operation)
                    .whenCompleteAsync(
                            (answer, error) ->
                                    answered(user, request, operation, started, answer, error),
                            Runnable::run);
        } catch (RuntimeException error) {
            answered(user, request, operation, started, null, error);
        }
    }

    private void answered(
            int user, int request, Operation operation, long started, Object answer, Throwable error) {
        long now = System.nanoTime();
        synchronized (this) {
            underWay--;
            lastReply = now;
            if (error != null) {
                fail(new Failed(false, operation.getClass().getSimpleName() + ": " + error));
            } else {
                judge(user, request, operation, answer);
            }
            replies++;
            latency.recordValue(Math.min(Math.max(now - started, 1), LATENCY_MAX_NS));
            if (--unanswered[user] > 0) {
                return;
            }
            if (stopped) {
                notifyAll();
            }
        }
        sendWhenDue(user);
    }

    private void judge(int user, int request, Operation operation, Object answer) {
        String right;
        try {
            right = traffic.judge(user, request, operation, answer);
        } catch (RuntimeException error) {
            right = "an answer that can be read (" + error + ")";
        }
        if (right != null) {
            String got = answer instanceof byte[] value ? Value.text(value) : "" + answer;
            String text = "expected `" + right + "`, got `" + shortened(got) + "`";
            fail(new Failed(true, "wrong answer about " + shortened("" + operation) + ": " + text));
        }
    }

    private static String shortened(String text) {
        return text.length() <= 200 ? text : text.substring(0, 200) + "...";
    }

    private void fail(Failed reason) {
        if (failed == null) {
            failed = reason;
        }
        notifyAll();
    }
}
