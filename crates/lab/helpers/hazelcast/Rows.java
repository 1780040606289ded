import java.util.Arrays;
import java.util.Map;

/** Rows with a secondary index: each user inserts its own groups, and reads those that are complete. */
final class Rows implements Traffic {
    private final boolean read;
    private final int members;
    private final int valueBytes;
    private final Progress progress;
    private final Random random;
    private final int[] complete;

    Rows(boolean read, int members, int valueBytes, Progress progress, int users, long seed) {
        this.read = read;
        this.members = members;
        this.valueBytes = valueBytes;
        this.progress = progress;
        random = new Random(seed);
        complete = new int[users];
        for (int user = 0; user < users; user++) {
            complete[user] = progress.of(user).made / members;
        }
    }

    @Override
    public Operation next(int user, int request) {
        if (read) {
            if (complete[user] == 0) {
                return null;
            }
            return new Operation.FindByGroup(group(user, random.below(complete[user])));
        }
        int made = progress.of(user).made++;
        long group = group(user, made / members);
        long id = id(group, made % members);
        return new Operation.InsertRow(id, group, Value.of(id, 1, valueBytes));
    }

    @Override
    public String judge(int user, int request, Operation operation, Object answer) {
        if (!(operation instanceof Operation.FindByGroup find)) {
            return null;
        }
        Map<?, ?> found = (Map<?, ?>) answer;
        boolean right = found.size() == members;
        for (int number = 0; number < members && right; number++) {
            long id = id(find.group(), number);
            right =
                    found.get(id) instanceof byte[] value
                            && Arrays.equals(value, Value.of(id, 1, valueBytes));
        }
        return right ? null : "its " + members + " rows";
    }

    /** A user's groups are its own: its number is the upper half. */
    private static long group(int user, int number) {
        return (long) user << 24 | number;
    }

    private long id(long group, int number) {
        return group * members + number;
    }
}
