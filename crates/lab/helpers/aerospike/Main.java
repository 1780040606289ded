import java.io.IOException;

/** {@code Main HOST PORT SEED}: see {@link Helper}. */
final class Main {
    private Main() {}

    public static void main(String[] arguments) throws IOException {
        try (Store store = new Aerospike(arguments[0], Integer.parseInt(arguments[1]))) {
            new Helper(store, Long.parseLong(arguments[2])).serve();
        }
        // Threads of the client may linger.
        System.exit(0);
    }
}
