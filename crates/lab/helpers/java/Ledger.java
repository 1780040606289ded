import java.util.Arrays;

/**
 * What a space's keys may hold. Writes of one key may overtake each other, so several versions can be
 * right for a while; one that was acknowledged before a later acknowledged one was sent never is again.
 * While any write of a key is under way, {@code base} is the first version sent after the last moment
 * without one; an acknowledgement rules out everything below it: that is the key's floor.
 */
final class Ledger {
    final String space;
    final int valueBytes;
    private int keys;
    private int[] sent;
    private int[] base;
    private int[] floor;
    private int[] underWay;

    Ledger(String space, int keys, int valueBytes) {
        this.space = space;
        this.valueBytes = valueBytes;
        this.keys = keys;
        int room = Math.max(keys, 16);
        sent = new int[room];
        base = new int[room];
        floor = new int[room];
        underWay = new int[room];
    }

    int keys() {
        return keys;
    }

    /** Adds a key of which nothing was sent yet; its number. */
    int addKey() {
        if (keys == sent.length) {
            sent = Arrays.copyOf(sent, keys * 2);
            base = Arrays.copyOf(base, keys * 2);
            floor = Arrays.copyOf(floor, keys * 2);
            underWay = Arrays.copyOf(underWay, keys * 2);
        }
        return keys++;
    }

    /** Notes that the next version is being sent; its value. */
    byte[] send(int key) {
        sent[key]++;
        if (underWay[key] == 0) {
            base[key] = sent[key];
        }
        underWay[key]++;
        return Value.of(key, sent[key], valueBytes);
    }

    void acknowledge(int key) {
        underWay[key]--;
        floor[key] = Math.max(floor[key], base[key]);
    }

    /** The lowest version that a read sent now may answer with; 0 if the key may be missing. */
    int floor(int key) {
        return floor[key];
    }

    /** Whether a read that was sent when the floor was {@code from} may answer with {@code value}. */
    boolean mayHold(int key, int from, byte[] value) {
        if (value == null) {
            return from == 0;
        }
        long version = Value.versionOf(key, value, valueBytes);
        return version >= Math.max(from, 1) && version <= sent[key];
    }

    String describe(int key, int from) {
        return "a version from " + from + " to " + sent[key] + " of key " + key;
    }
}
