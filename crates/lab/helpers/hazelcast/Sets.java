import java.util.Collection;
import java.util.HashSet;
import java.util.Set;

/** Sets that each user fills with members one by one, and reads whole once they are complete. */
final class Sets implements Traffic {
    private final String space;
    private final boolean read;
    private final int members;
    private final Progress progress;
    private final Random random;
    private final int[] complete;

    Sets(String space, boolean read, int members, Progress progress, int users, long seed) {
        this.space = space;
        this.read = read;
        this.members = members;
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
            return new Operation.Members(set(user, random.below(complete[user])));
        }
        int made = progress.of(user).made++;
        String set = set(user, made / members);
        return new Operation.AddMember(set, member(set, made % members));
    }

    @Override
    public String judge(int user, int request, Operation operation, Object answer) {
        if (operation instanceof Operation.Members read) {
            Set<String> right = new HashSet<>();
            for (int number = 0; number < members; number++) {
                right.add(member(read.set(), number));
            }
            Collection<?> found = (Collection<?>) answer;
            boolean same = found.size() == members && right.equals(new HashSet<>(found));
            return same ? null : right.toString();
        }
        return Boolean.FALSE.equals(answer) ? null : "that it was not there yet";
    }

    private String set(int user, int number) {
        return space + ':' + user + ':' + number;
    }

    /** Which set it is stands in the member too, so that no other set's members pass. */
    private static String member(String set, int number) {
        return Value.key("m:" + set, number);
    }
}
