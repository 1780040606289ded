/** Keys made of user and iteration, each set, then read, then deleted, as the published scripts do. */
final class Iterations implements Traffic {
    private final String space;
    private final String deed;
    private final int valueBytes;
    private final Progress progress;
    private final int[] cursors;

    Iterations(String space, String deed, int valueBytes, Progress progress, int users) {
        this.space = space;
        this.deed = deed;
        this.valueBytes = valueBytes;
        this.progress = progress;
        cursors = new int[users];
    }

    @Override
    public Operation next(int user, int request) {
        Progress.Reached reached = progress.of(user);
        switch (deed) {
            case "set" -> {
                int iteration = reached.made++;
                byte[] value = Value.of(number(user, iteration), 1, valueBytes);
                return new Operation.Set(key(user, iteration), value);
            }
            case "get" -> {
                int there = reached.made - reached.gone;
                if (there == 0) {
                    return null;
                }
                return new Operation.Get(key(user, reached.gone + cursors[user]++ % there));
            }
            case "delete" -> {
                if (reached.gone == reached.made) {
                    return null;
                }
                return new Operation.Delete(key(user, reached.gone++));
            }
            default -> throw new IllegalArgumentException("no deed " + deed);
        }
    }

    @Override
    public String judge(int user, int request, Operation operation, Object answer) {
        if (operation instanceof Operation.Get get) {
            // Requests of one user may be under way together: the key says which it was.
            int iteration = Integer.parseInt(get.key().substring(get.key().lastIndexOf(':') + 1));
            long number = number(user, iteration);
            boolean right = Value.versionOf(number, (byte[]) answer, valueBytes) == 1;
            return right ? null : Value.text(Value.of(number, 1, valueBytes));
        }
        if (operation instanceof Operation.Delete) {
            return Boolean.TRUE.equals(answer) ? null : "that it was there";
        }
        return null;
    }

    private String key(int user, int iteration) {
        return space + ':' + user + ':' + iteration;
    }

    private static long number(int user, int iteration) {
        return (long) user << 32 | iteration;
    }
}
