/**
 * A source of operations that knows the right answers. Called under one lock: an implementation needs
 * none of its own.
 */
interface Traffic {
    /** The next operation of user {@code user} in slot {@code request}; null when there is none. */
    Operation next(int user, int request);

    /**
     * Null if {@code answer} is a right one for {@code operation}, else what would have been, in words.
     * Answers are what {@link Store#ask} completes with.
     */
    String judge(int user, int request, Operation operation, Object answer);
}
