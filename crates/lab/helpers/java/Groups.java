/**
 * Groups of members that each user makes one by one, and reads whole once they are complete: what sets
 * and indexed rows have in common. What a member and a group are is an heir's.
 */
abstract class Groups implements Traffic {
    /** Whose groups are made or read, and of how many members. */
    record Plan(boolean read, int members, Progress progress, int users, long seed) {}

    private final Plan plan;
    private final Random random;
    /** Groups that each user has complete. */
    private final int[] complete;

    Groups(Plan plan) {
        this.plan = plan;
        random = new Random(plan.seed());
        complete = new int[plan.users()];
        for (int user = 0; user < complete.length; user++) {
            complete[user] = plan.progress().of(user).made / plan.members();
        }
    }

    /** Adds member {@code member} of a user's group {@code group}. */
    abstract Operation add(int user, int group, int member);

    /** Reads a user's group {@code group}, which is complete. */
    abstract Operation read(int user, int group);

    final int members() {
        return plan.members();
    }

    @Override
    public final Operation next(int user, int request) {
        if (plan.read()) {
            return complete[user] == 0 ? null : read(user, random.below(complete[user]));
        }
        int made = plan.progress().of(user).made++;
        return add(user, made / members(), made % members());
    }
}
