import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Reads and writes of the keys of one space, in any mix; or one deed on each key, once, in order. */
final class Keyed implements Traffic {
    /** What is done with a key; {@code keys} of them where it is done with several. */
    record Deed(String what, int keys, int share) {}

    private static final class Request {
        int key;
        int keys;
        int floor;
        boolean thenWrite;
        /** For scans: how many keys from the first on must be there. */
        int certain;
    }

    private final Ledger ledger;
    private final List<Deed> mix;
    private final int shares;
    /** Null where each key comes once. */
    private final Pick pick;

    private final Request[] requests;
    private int next;
    /** Keys below this were all acknowledged once: what a read may be about. */
    private int known;

    Keyed(Ledger ledger, List<Deed> mix, Pick pick, int requests) {
        this.ledger = ledger;
        this.mix = mix;
        this.pick = pick;
        shares = mix.stream().mapToInt(Deed::share).sum();
        this.requests = new Request[requests];
        for (int number = 0; number < requests; number++) {
            this.requests[number] = new Request();
        }
        known = ledger.keys();
    }

    @Override
    public Operation next(int user, int number) {
        Request request = requests[number];
        if (request.thenWrite) {
            request.thenWrite = false;
            return write(request, request.key);
        }
        if (pick == null) {
            if (next >= known) {
                return null;
            }
            return operation(mix.get(0), request, next++);
        }
        Deed deed = choose();
        if (deed.what().equals("insert")) {
            return write(request, ledger.addKey());
        }
        // What was inserted last is known once it was acknowledged, but for those under way in order.
        while (known < ledger.keys() && ledger.floor(known) > 0) {
            known++;
        }
        return known == 0 ? null : operation(deed, request, pick.below(known));
    }

    private Deed choose() {
        if (mix.size() == 1) {
            return mix.get(0);
        }
        int left = pick.evenly(shares);
        for (Deed deed : mix) {
            if (left < deed.share()) {
                return deed;
            }
            left -= deed.share();
        }
        throw new IllegalStateException("shares do not add up");
    }

    private Operation operation(Deed deed, Request request, int key) {
        switch (deed.what()) {
            case "read", "read_then_write" -> {
                request.key = key;
                request.floor = ledger.floor(key);
                request.thenWrite = deed.what().equals("read_then_write");
                return new Operation.Get(Value.key(ledger.space, key));
            }
            case "write" -> {
                return write(request, key);
            }
            case "scan" -> {
                request.key = key;
                request.keys = 1 + pick.evenly(deed.keys());
                request.certain = known;
                return new Operation.ScanFrom(Value.key(ledger.space, key), request.keys);
            }
            case "write_many" -> {
                // All keys of the window exist; it begins where it fits.
                request.keys = Math.min(deed.keys(), known);
                request.key = Math.min(key, known - request.keys);
                Map<String, byte[]> pairs = new HashMap<>(request.keys * 2);
                for (int one = request.key; one < request.key + request.keys; one++) {
                    pairs.put(Value.key(ledger.space, one), ledger.send(one));
                }
                return new Operation.SetMany(pairs);
            }
            default -> throw new IllegalArgumentException("no deed " + deed.what());
        }
    }

    private Operation write(Request request, int key) {
        request.key = key;
        request.keys = 1;
        return new Operation.Set(Value.key(ledger.space, key), ledger.send(key));
    }

    @Override
    public String judge(int user, int number, Operation operation, Object answer) {
        Request request = requests[number];
        if (operation instanceof Operation.Get) {
            boolean right = ledger.mayHold(request.key, request.floor, (byte[]) answer);
            return right ? null : ledger.describe(request.key, request.floor);
        }
        if (operation instanceof Operation.ScanFrom) {
            String right = "the values of keys " + request.key + " and up to " + (request.keys - 1) + " more";
            return isScan(request, (List<?>) answer) ? null : right;
        }
        for (int key = request.key; key < request.key + request.keys; key++) {
            ledger.acknowledge(key);
        }
        return null;
    }

    /** Values from the key on: those that must be there, in order, and between them those that may. */
    private boolean isScan(Request request, List<?> values) {
        int seen = 0;
        for (int key = request.key; key < ledger.keys() && seen < request.keys; key++) {
            if (seen < values.size() && ledger.mayHold(key, 1, (byte[]) values.get(seen))) {
                seen++;
            } else if (key < request.certain) {
                return false;
            }
        }
        return seen == values.size();
    }
}
