import java.util.*;
import java.util.concurrent.*;
import java.util.logging.LogManager;

/** What the programs in Java share: checks that are counted, definitions, a crash under load. */
class Work {
    static final int PORT = Integer.parseInt(System.getenv("IPROTO_PORT"));
    static final int PEOPLE = 700, VALUES = 701, COUNTED = 702, LOG = 703;
    static final int WRITERS = 6;
    private static int checks;

    /** Inserts and updates one row; throws once the server is gone. */
    interface Writer {
        void insert(int number, String text) throws Exception;

        void count(int number) throws Exception;
    }

    interface Call {
        void run() throws Exception;
    }

    static void check(String what, Object got, Object expected) {
        checks += 1;
        if (!Objects.equals(got, expected)) {
            throw new AssertionError(what + ": got " + got + ", not " + expected);
        }
    }

    /** The call must throw, and the message must have these words. */
    static void fails(String what, Call call, String words) {
        checks += 1;
        try {
            call.run();
        } catch (Throwable error) {
            StringBuilder all = new StringBuilder();
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                all.append(cause).append('\n');
            }
            if (!all.toString().contains(words)) {
                throw new AssertionError(what + ": failed with " + all, error);
            }
            return;
        }
        throw new AssertionError(what + ": did not fail");
    }

    /** Ends the process, with status 1 if the work failed. */
    static void run(Call work) {
        LogManager.getLogManager().reset();
        try {
            work.run();
            System.out.println("  " + checks + " checks passed");
            System.exit(0);
        } catch (Throwable error) {
            error.printStackTrace(System.out);
            System.exit(1);
        }
    }

    /** (space, tuple), as `box.schema.space.create` inserts them. 280 is _space, 288 is _index. */
    static List<Map.Entry<Integer, List<?>>> definitions() {
        Map<String, Object> unique = Map.of("unique", true), twice = Map.of("unique", false);
        List<Map<String, Object>> format = List.of(field("id", "unsigned"), field("name", "string"),
            Map.of("name", "age", "type", "unsigned", "is_nullable", true));
        List<Map<String, Object>> values = List.of(field("id", "unsigned"), field("decimal", "decimal"),
            field("uuid", "uuid"), field("when", "datetime"), field("any", "any"));
        List<?> first = List.of(List.of(0, "unsigned"));
        Map<String, Object> age = Map.of("field", 2, "type", "unsigned", "is_nullable", true);
        Map<String, Object> anyCase = Map.of("field", 1, "type", "string", "collation", 2);
        return List.of(
            Map.entry(280, List.of(PEOPLE, 1, "people", "memtx", 0, Map.of(), format)),
            Map.entry(288, List.of(PEOPLE, 0, "pk", "tree", unique, first)),
            Map.entry(288, List.of(PEOPLE, 1, "name", "tree", unique, List.of(List.of(1, "string")))),
            Map.entry(288, List.of(PEOPLE, 2, "age_name", "tree", twice, List.of(age, Map.of("field", 1, "type", "string")))),
            Map.entry(288, List.of(PEOPLE, 3, "any_case", "tree", twice, List.of(anyCase))),
            Map.entry(280, List.of(VALUES, 1, "values", "memtx", 0, Map.of(), values)),
            Map.entry(288, List.of(VALUES, 0, "pk", "hash", unique, first)),
            Map.entry(280, List.of(COUNTED, 1, "counted", "memtx", 0, Map.of(), List.of())),
            Map.entry(288, List.of(COUNTED, 0, "pk", "tree", unique, first)),
            Map.entry(284, List.of(60, 1, "counted_seq", 1, 1, 1000, 1, 0, false)),
            Map.entry(340, List.of(COUNTED, 60, false, 0, "")),
            Map.entry(280, List.of(LOG, 1, "log", "memtx", 0, Map.of(), List.of())),
            Map.entry(288, List.of(LOG, 0, "pk", "tree", unique, first)),
            Map.entry(304, List.of(40, 1, "ann", "user", Map.of("chap-sha1", "lL3OvhkIPOKh+Vn9Avlkx69M/Ck="), List.of(), 0)),
            Map.entry(312, List.of(1, 40, "universe", 0, 4 | 8 | 16)),
            Map.entry(312, List.of(1, 40, "role", 2, 4)),
            Map.entry(312, List.of(1, 40, "space", PEOPLE, 1)));
    }

    private static Map<String, Object> field(String name, String type) {
        return Map.of("name", name, "type", type);
    }

    /** Kills the server while it takes writes: what it acknowledged, and how often it was counted. */
    static Map<Integer, Integer> crashUnderLoad(Callable<Writer> connect) throws Exception {
        Map<Integer, Integer> acknowledged = new ConcurrentHashMap<>();
        List<Thread> threads = new ArrayList<>();
        for (int writer = 0; writer < WRITERS; writer += 1) {
            Writer own = connect.call();
            int first = writer * 1_000_000;
            threads.add(new Thread(() -> {
                try {
                    for (int number = first; ; number += 1) {
                        own.insert(number, "text " + number);
                        acknowledged.put(number, 0);
                        own.count(number);
                        acknowledged.put(number, 1);
                    }
                } catch (Exception end) {
                    // The connection ends with the server.
                }
            }));
        }
        threads.forEach(Thread::start);
        Thread.sleep(1000);
        check("the writers write", threads.stream().allMatch(Thread::isAlive), true);
        ProcessBuilder server = new ProcessBuilder(System.getenv("SERVER"), "crash");
        check("the server starts again", server.inheritIO().start().waitFor(), 0);
        for (Thread thread : threads) {
            thread.join();
        }
        return acknowledged;
    }

    static void checkSurvived(Map<Integer, Integer> acknowledged, Map<Integer, List<?>> found) {
        check("some writes were acknowledged", acknowledged.size() > 20, true);
        List<Integer> lost = acknowledged.entrySet().stream().filter(entry -> {
            List<?> row = found.get(entry.getKey());
            return row == null || !row.get(1).equals("text " + entry.getKey())
                || ((Number) row.get(2)).intValue() < entry.getValue();
        }).map(Map.Entry::getKey).limit(3).toList();
        check("lost, of " + acknowledged.size() + " acknowledged rows", lost, List.of());
        check("no more than one unanswered write of each", found.size() <= acknowledged.size() + WRITERS, true);
    }
}
