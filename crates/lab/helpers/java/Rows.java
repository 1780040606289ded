import java.util.Arrays;
import java.util.Map;

/** Rows with a secondary index: each user inserts its own groups, and reads those that are complete. */
final class Rows extends Groups {
    private final int valueBytes;

    Rows(Plan plan, int valueBytes) {
        super(plan);
        this.valueBytes = valueBytes;
    }

    @Override
    Operation add(int user, int number, int member) {
        long group = group(user, number);
        long id = id(group, member);
        return new Operation.InsertRow(id, group, Value.of(id, 1, valueBytes));
    }

    @Override
    Operation read(int user, int number) {
        return new Operation.FindByGroup(group(user, number));
    }

    @Override
    public String judge(int user, int request, Operation operation, Object answer) {
        if (!(operation instanceof Operation.FindByGroup find)) {
            return null;
        }
        Map<?, ?> found = (Map<?, ?>) answer;
        boolean right = found.size() == members();
        for (int number = 0; number < members() && right; number++) {
            long id = id(find.group(), number);
            right =
                    found.get(id) instanceof byte[] value
                            && Arrays.equals(value, Value.of(id, 1, valueBytes));
        }
        return right ? null : "its " + members() + " rows";
    }

    /** A user's groups are its own: its number is the upper half. */
    private static long group(int user, int number) {
        return (long) user << 24 | number;
    }

    private long id(long group, int number) {
        return group * members() + number;
    }
}
