import java.util.HashMap;
import java.util.Map;

/**
 * Counters that users add one to and take it away again. A user's own counter has one right value; on a
 * shared one an answer counts all that was answered before it was asked and some of what was under way.
 */
final class Counters implements Traffic {
    /** What was added to and taken from the counters of a space so far. */
    static final class Totals {
        private final Map<Integer, Long> own = new HashMap<>();
        private long added;
        private long taken;
        private long addedSurely;
        private long takenSurely;
    }

    private record Request(long by, long value, long addedSurely, long takenSurely) {}

    private final String space;
    private final boolean one;
    private final Totals totals;
    private final boolean[] holding;
    private final Request[] requests;

    Counters(String space, boolean one, Totals totals, int users, int requests) {
        this.space = space;
        this.one = one;
        this.totals = totals;
        holding = new boolean[users];
        for (int user = 0; user < users; user++) {
            // Where a stretch ended with something held, the next one begins by giving it back.
            holding[user] = !one && totals.own.getOrDefault(user, 0L) > 0;
        }
        this.requests = new Request[requests];
    }

    @Override
    public Operation next(int user, int number) {
        long by = holding[user] ? -1 : 1;
        holding[user] = by > 0;
        long value = 0;
        long addedSurely = totals.addedSurely;
        long takenSurely = totals.takenSurely;
        if (!one) {
            value = totals.own.merge(user, by, Long::sum);
        } else if (by > 0) {
            totals.added++;
        } else {
            totals.taken++;
        }
        requests[number] = new Request(by, value, addedSurely, takenSurely);
        return new Operation.Add(space + (one ? ":all" : ":" + user), by);
    }

    @Override
    public String judge(int user, int number, Operation operation, Object answer) {
        Request request = requests[number];
        if (!(answer instanceof Long value)) {
            return "a number";
        }
        if (!one) {
            return value == request.value() ? null : Long.toString(request.value());
        }
        long low = request.addedSurely() - totals.taken;
        long high = totals.added - request.takenSurely();
        if (value < low || value > high) {
            return "a number from " + low + " to " + high;
        }
        if (request.by() > 0) {
            totals.addedSurely++;
        } else {
            totals.takenSurely++;
        }
        return null;
    }
}
