import java.util.Arrays;
import java.util.Map;

/** Rows with a secondary index: each user inserts its own groups, and reads those that are complete. */
final class Rows implements Traffic {
    private final Groups groups;
    private final int valueBytes;

    Rows(Groups groups, int valueBytes) {
        this.groups = groups;
        this.valueBytes = valueBytes;
    }

    @Override
    public Operation next(int user, int request) {
        Groups.Turn turn = groups.next(user);
        if (turn == null) {
            return null;
        }
        long group = group(user, turn.group());
        if (turn.read()) {
            return new Operation.FindByGroup(group);
        }
        long id = id(group, turn.member());
        return new Operation.InsertRow(id, group, Value.of(id, 1, valueBytes));
    }

    @Override
    public String judge(int user, int request, Operation operation, Object answer) {
        if (!(operation instanceof Operation.FindByGroup find)) {
            return null;
        }
        Map<?, ?> found = (Map<?, ?>) answer;
        boolean right = found.size() == groups.members();
        for (int number = 0; number < groups.members() && right; number++) {
            long id = id(find.group(), number);
            right =
                    found.get(id) instanceof byte[] value
                            && Arrays.equals(value, Value.of(id, 1, valueBytes));
        }
        return right ? null : "its " + groups.members() + " rows";
    }

    /** A user's groups are its own: its number is the upper half. */
    private static long group(int user, int number) {
        return (long) user << 24 | number;
    }

    private long id(long group, int number) {
        return group * groups.members() + number;
    }
}
