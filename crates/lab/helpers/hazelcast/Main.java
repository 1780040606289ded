import java.io.IOException;

/** {@code Main HOST:PORT CLUSTER SEED}: see {@link Helper}. */
final class Main {
    private static final int CALLERS = 4096;

    private Main() {}

    public static void main(String[] arguments) throws IOException {
        try (Store store = new Hazelcast(arguments[0], arguments[1], CALLERS)) {
            new Helper(store, Long.parseLong(arguments[2])).serve();
        }
        // Threads of the client may linger.
        System.exit(0);
    }
}
