import java.io.IOException;

/** {@code Main HOST:PORT SEED}: see {@link Helper}. */
final class Main {
    private Main() {}

    public static void main(String[] arguments) throws IOException {
        try (Store store = new VoltDb(arguments[0])) {
            new Helper(store, Long.parseLong(arguments[1])).serve();
        }
        // Threads of the client may linger.
        System.exit(0);
    }
}
