/**
 * Groups of members that each user makes one by one, and reads whole once they are complete: what sets
 * and indexed rows have in common.
 */
final class Groups {
    /** What a user does next with one of its groups; {@code member} only where it adds one. */
    record Turn(boolean read, int group, int member) {}

    private final boolean read;
    private final int members;
    private final Progress progress;
    private final Random random;
    /** Groups that each user has complete. */
    private final int[] complete;

    Groups(boolean read, int members, Progress progress, int users, long seed) {
        this.read = read;
        this.members = members;
        this.progress = progress;
        random = new Random(seed);
        complete = new int[users];
        for (int user = 0; user < users; user++) {
            complete[user] = progress.of(user).made / members;
        }
    }

    int members() {
        return members;
    }

    /** Null when the user has nothing to read. */
    Turn next(int user) {
        if (read) {
            return complete[user] == 0 ? null : new Turn(true, random.below(complete[user]), 0);
        }
        int made = progress.of(user).made++;
        return new Turn(false, made / members, made % members);
    }
}
