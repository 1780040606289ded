import java.util.*;
import java.util.concurrent.*;
import org.tarantool.*;
import org.tarantool.Iterator;

/** Real work of org.tarantool:connector. */
public class Connector extends Work {
    private static TarantoolClientOps<Integer, List<?>, Object, List<?>> ops;

    /** Attempts to connect follow each other without a pause. */
    private static TarantoolClientImpl connect(String user, String password, int attempts) {
        TarantoolClientConfig config = new TarantoolClientConfig();
        config.username = user;
        config.password = password;
        config.initTimeoutMillis = 5000;
        config.retryCount = attempts;
        return new TarantoolClientImpl("127.0.0.1:" + PORT, config);
    }

    private static List<?> row(Object... fields) {
        return Arrays.asList(fields);
    }

    private static List<?> ids(String index, List<?> key, int offset, int limit, Iterator iterator) {
        return ops.select("people", index, key, offset, limit, iterator).stream()
            .map(tuple -> ((List<?>) tuple).get(0)).toList();
    }

    private static void reads(TarantoolClientImpl client) throws Exception {
        List<Future<List<?>>> answers = new ArrayList<>();
        for (int number = 1; number <= 1000; number += 1) {
            answers.add(client.asyncOps().insert("people", row(number, "name" + number, number == 500 ? null : number % 10)));
        }
        for (Future<List<?>> answer : answers) {
            answer.get(5, TimeUnit.SECONDS);
        }
        check("eq", ids("pk", row(5), 0, 3, Iterator.EQ), row(5));
        check("req", ids("age_name", row(5), 0, 2, Iterator.REQ), row(995, 985));
        check("ge", ids("pk", row(5), 0, 3, Iterator.GE), row(5, 6, 7));
        check("gt", ids("pk", row(5), 1, 3, Iterator.GT), row(7, 8, 9));
        check("le", ids("pk", row(5), 0, 3, Iterator.LE), row(5, 4, 3));
        check("lt", ids("pk", row(5), 0, 3, Iterator.LT), row(4, 3, 2));
        check("all", ids("pk", row(), 998, 5, Iterator.ALL), row(999, 1000));
        check("nil", ids("age_name", row((Object) null), 0, 5, Iterator.EQ), row(500));
        check("the whole key", ids("age_name", row(7, "name77"), 0, 5, Iterator.EQ), row(77));
        check("collation", ids("any_case", row("NAME77"), 0, 5, Iterator.EQ), row(77));
        check("composed", client.composableAsyncOps().select("people", "pk", row(7), 0, 1, Iterator.EQ)
            .thenApply(rows -> ((List<?>) rows.get(0)).get(1)).toCompletableFuture().get(), "name7");
    }

    private static void changes(TarantoolClientImpl client) throws Exception {
        fails("duplicate", () -> ops.insert("people", row(1, "other", 1)), "Duplicate key exists in unique index");
        fails("wrong type", () -> ops.insert("people", row("x", "other", 1)), "expected unsigned");
        fails("no such space", () -> ops.select(999, 0, row(1), 0, 1, Iterator.EQ), "Space '999' does not exist");
        fails("a space of no name", () -> ops.insert("nothing", row(1)), "SpaceNotFound");
        fails("an update of a wrong type", () -> ops.update("people", row(1), row("+", 1, 1)), "Argument type in operation '+'");
        try {
            ops.insert("people", row(1, "other", 1));
        } catch (TarantoolException error) {
            check("its code", error.getCode() & 0x7fff, 3L);
        }
        check("replace", ops.replace("people", row(1, "one", 10)), row(row(1, "one", 10)));
        check("update", ops.update("people", row(1), row("+", 2, 5), row("=", 1, "uno")), row(row(1, "uno", 15)));
        check("splice", ops.update("people", row(1), row(":", 1, 0, 1, "U")), row(row(1, "Uno", 15)));
        check("bits", ops.update("people", row(1), row("&", 2, 6)), row(row(1, "Uno", 6)));
        check("insert and delete a field", ops.update("people", row(1), row("!", 3, "x"), row("#", 3, 1), row("-", 2, 5)),
            row(row(1, "Uno", 1)));
        ops.upsert("people", row(2000), row(2000, "new", 1), row("+", 2, 1));
        ops.upsert("people", row(2000), row(2000, "new", 1), row("+", 2, 1));
        check("upsert", ops.delete("people", row(2000)), row(row(2000, "new", 2)));
        check("call", ops.call("box.space.people:get", row(2)), row(row(2, "name2", 2)));
        check("sequence", row(ops.insert("counted", row(null, "a")), ops.insert("counted", row(null, "b"))),
            row(row(row(1, "a")), row(row(2, "b"))));
        List<?> values = row("\u00e4\u4e2d".repeat(10000), 1.5, -5L, 5000000000L, null, true, row(1, Map.of("b", 2)));
        ops.insert("people", row(3000, "values", 1, values));
        check("values", String.valueOf(ops.select("people", "pk", row(3000), 0, 1, Iterator.EQ)),
            String.valueOf(row(row(3000, "values", 1, values))));
        ops.delete("people", row(3000));
        long sent = client.fireAndForgetOps().delete("people", row(999));
        check("sent and forgotten", sent > 0, true);
        check("and done", ids("pk", row(999), 0, 1, Iterator.EQ), row());
        ops.ping();
    }

    private static void rights() {
        fails("wrong password", () -> connect("ann", "wrong", 1), "supplied credentials are invalid");
        TarantoolClientImpl ann = connect("ann", "test", 1);
        check("ann reads", ann.syncOps().select(PEOPLE, 0, row(2), 0, 1, Iterator.EQ), row(row(2, "name2", 2)));
        fails("ann does not write", () -> ann.syncOps().delete(PEOPLE, row(2)), "Write access to space 'people' is denied");
        fails("nor reads all", () -> ann.syncOps().select(VALUES, 0, row(2), 0, 1, Iterator.EQ), "Read access to space");
        ann.close();
    }

    /** The connector asks by the schema's version, and reads the schema again when it is an old one. */
    private static void schemaChanges(TarantoolClientImpl client) {
        long version = client.getSchemaMeta().getSchemaVersion();
        TarantoolClientImpl other = connect("admin", "secret", Integer.MAX_VALUE);
        other.syncOps().insert(288, row(PEOPLE, 5, "nick", "tree", Map.of("unique", false),
            row(Map.of("field", 3, "type", "string", "is_nullable", true))));
        ops.update("people", row(2), row("!", 3, "two"));
        check("the new index", ids("nick", row("two"), 0, 1, Iterator.EQ), row(2));
        check("a new version", client.getSchemaMeta().getSchemaVersion(), version + 1);
        other.syncOps().update(280, row(PEOPLE), row("=", 2, "persons"));
        check("the new name", ops.select("persons", "nick", row("two"), 0, 1, Iterator.EQ).size(), 1);
        fails("the old name", () -> ids("nick", row("two"), 0, 1, Iterator.EQ), "SpaceNotFound");
        other.syncOps().update(280, row(PEOPLE), row("=", 2, "people"));
        other.syncOps().delete(288, row(PEOPLE, 5));
        fails("the index is gone", () -> ids("nick", row("two"), 0, 1, Iterator.EQ), "IndexNotFound");
        ops.update("people", row(2), row("#", 3, 1));
        other.close();
    }

    private static Writer writer() {
        TarantoolClientImpl client = connect("admin", "secret", Integer.MAX_VALUE);
        return new Writer() {
            public void insert(int number, String text) {
                client.syncOps().insert(LOG, row(number, text, 0));
            }

            public void count(int number) {
                client.syncOps().update(LOG, row(number), row("+", 2, 1));
            }
        };
    }

    private static List<?> patiently(Callable<List<?>> call) throws Exception {
        for (int attempt = 0; ; attempt += 1) {
            try {
                return call.call();
            } catch (CommunicationException | TarantoolException error) {
                if (attempt == 100) {
                    throw error;
                }
                Thread.sleep(50);
            }
        }
    }

    public static void main(String[] arguments) {
        run(Connector::work);
    }

    private static void work() throws Exception {
        TarantoolClientImpl client = connect("admin", "secret", Integer.MAX_VALUE);
        ops = client.syncOps();
        for (Map.Entry<Integer, List<?>> definition : definitions()) {
            ops.insert(definition.getKey(), definition.getValue());
        }
        reads(client);
        changes(client);
        rights();
        schemaChanges(client);
        Map<Integer, Integer> acknowledged = crashUnderLoad(Connector::writer);
        check("reconnects, and the data is there", patiently(() -> ops.select("people", "pk", row(1), 0, 1, Iterator.EQ)),
            row(row(1, "Uno", 1)));
        check("all of it", ids("pk", row(), 0, 5000, Iterator.ALL).size(), 999);
        check("the sequence goes on", ops.insert("counted", row(null, "c")), row(row(3, "c")));
        Map<Integer, List<?>> found = new HashMap<>();
        for (Object tuple : ops.select(LOG, 0, row(), 0, 10_000_000, Iterator.ALL)) {
            found.put(((Number) ((List<?>) tuple).get(0)).intValue(), (List<?>) tuple);
        }
        checkSurvived(acknowledged, found);
    }
}
