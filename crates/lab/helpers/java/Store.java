import java.util.concurrent.CompletionStage;

/** A system through its own client: the only kind of class here that knows one. */
interface Store extends AutoCloseable {
    /** The system, as its makers write it. */
    String title();

    /** The client's version. */
    String version();

    /**
     * Asks, and completes with: the value or null of a read, a Long of a counter, a Boolean whether a
     * thing was there before, a collection of members, a map of rows' values by their number, a list of
     * the values of a scan, and for all else with anything.
     */
    CompletionStage<?> ask(Operation operation);

    /** Removes everything. */
    void clear();

    @Override
    void close();
}
