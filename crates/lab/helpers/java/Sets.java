import java.util.Collection;
import java.util.HashSet;
import java.util.Set;

/** Sets that each user fills with members one by one, and reads whole once they are complete. */
final class Sets implements Traffic {
    private final String space;
    private final Groups groups;

    Sets(String space, Groups groups) {
        this.space = space;
        this.groups = groups;
    }

    @Override
    public Operation next(int user, int request) {
        Groups.Turn turn = groups.next(user);
        if (turn == null) {
            return null;
        }
        String set = space + ':' + user + ':' + turn.group();
        return turn.read()
                ? new Operation.Members(set)
                : new Operation.AddMember(set, member(set, turn.member()));
    }

    @Override
    public String judge(int user, int request, Operation operation, Object answer) {
        if (operation instanceof Operation.Members read) {
            Set<String> right = new HashSet<>();
            for (int number = 0; number < groups.members(); number++) {
                right.add(member(read.set(), number));
            }
            Collection<?> found = (Collection<?>) answer;
            boolean same = found.size() == right.size() && right.equals(new HashSet<>(found));
            return same ? null : right.toString();
        }
        return Boolean.FALSE.equals(answer) ? null : "that it was not there yet";
    }

    /** Which set it is stands in the member too, so that no other set's members pass. */
    private static String member(String set, int number) {
        return Value.key("m:" + set, number);
    }
}
