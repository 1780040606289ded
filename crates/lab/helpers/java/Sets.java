import java.util.Collection;
import java.util.HashSet;
import java.util.Set;

/** Sets that each user fills with members one by one, and reads whole once they are complete. */
final class Sets extends Groups {
    private final String space;

    Sets(String space, Plan plan) {
        super(plan);
        this.space = space;
    }

    @Override
    Operation add(int user, int group, int number) {
        String set = set(user, group);
        return new Operation.AddMember(set, member(set, number));
    }

    @Override
    Operation read(int user, int group) {
        return new Operation.Members(set(user, group));
    }

    @Override
    public String judge(int user, int request, Operation operation, Object answer) {
        if (operation instanceof Operation.Members read) {
            Set<String> right = new HashSet<>();
            for (int number = 0; number < members(); number++) {
                right.add(member(read.set(), number));
            }
            Collection<?> found = (Collection<?>) answer;
            boolean same = found.size() == right.size() && right.equals(new HashSet<>(found));
            return same ? null : right.toString();
        }
        return Boolean.FALSE.equals(answer) ? null : "that it was not there yet";
    }

    private String set(int user, int group) {
        return space + ':' + user + ':' + group;
    }

    /** Which set it is stands in the member too, so that no other set's members pass. */
    private static String member(String set, int number) {
        return Value.key("m:" + set, number);
    }
}
