import io.tarantool.driver.api.TarantoolClient;
import io.tarantool.driver.api.TarantoolClientFactory;
import io.tarantool.driver.api.TarantoolResult;
import io.tarantool.driver.api.conditions.Conditions;
import io.tarantool.driver.api.space.TarantoolSpaceOperations;
import io.tarantool.driver.api.tuple.DefaultTarantoolTupleFactory;
import io.tarantool.driver.api.tuple.TarantoolTuple;
import io.tarantool.driver.api.tuple.TarantoolTupleFactory;
import io.tarantool.driver.api.tuple.operations.TupleOperations;
import io.tarantool.driver.mappers.factories.DefaultMessagePackMapperFactory;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.*;
import java.util.concurrent.*;

/** Real work of io.tarantool:cartridge-driver, which keeps two connections. */
public class Cartridge extends Work {
    private static final TarantoolTupleFactory TUPLES =
        new DefaultTarantoolTupleFactory(DefaultMessagePackMapperFactory.getInstance().defaultComplexTypesMapper());

    private static TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> connect(String user, String password) {
        return TarantoolClientFactory.createClient().withAddress("127.0.0.1", PORT).withCredentials(user, password)
            .withConnections(2).withRequestTimeout(5000).withConnectTimeout(2000).build();
    }

    private static <T> T get(CompletableFuture<T> answer) throws Exception {
        return answer.get(10, TimeUnit.SECONDS);
    }

    private static TarantoolTuple tuple(Object... fields) {
        return TUPLES.create(fields);
    }

    private static List<Object> fields(TarantoolTuple tuple) {
        List<Object> all = new ArrayList<>();
        for (int at = 0; at < tuple.size(); at += 1) {
            all.add(tuple.getObject(at).orElse(null));
        }
        return all;
    }

    private static List<List<Object>> rows(CompletableFuture<TarantoolResult<TarantoolTuple>> answer) throws Exception {
        return get(answer).stream().map(Cartridge::fields).toList();
    }

    private static List<Object> row(Object... fields) {
        return Arrays.asList(fields);
    }

    private static List<Object> ids(CompletableFuture<TarantoolResult<TarantoolTuple>> answer) throws Exception {
        return rows(answer).stream().map(tuple -> tuple.get(0)).toList();
    }

    private static void reads(TarantoolSpaceOperations<TarantoolTuple, TarantoolResult<TarantoolTuple>> people) throws Exception {
        List<CompletableFuture<?>> answers = new ArrayList<>();
        for (int number = 1; number <= 1000; number += 1) {
            answers.add(people.insert(tuple(number, "name" + number, number == 500 ? null : number % 10)));
        }
        for (CompletableFuture<?> answer : answers) {
            get(answer);
        }
        check("by a field", rows(people.select(Conditions.equals("id", 5))), row(row(5, "name5", 5)));
        check("by an index's name", ids(people.select(Conditions.indexEquals("name", row("name77")))), row(77));
        check("by an index's number", ids(people.select(Conditions.indexEquals(1, row("name78")))), row(78));
        check("greater", ids(people.select(Conditions.greaterThan("id", 5).withLimit(2))), row(6, 7));
        check("not less", ids(people.select(Conditions.greaterOrEquals("id", 5).withLimit(2).withOffset(1))), row(6, 7));
        check("less", ids(people.select(Conditions.lessThan("id", 5).withLimit(2))), row(4, 3));
        check("not greater", ids(people.select(Conditions.indexLessOrEquals("pk", row(5)).withLimit(2))), row(5, 4));
        check("downwards", ids(people.select(Conditions.descending().withLimit(2))), row(1000, 999));
        check("two conditions", ids(people.select(Conditions.indexEquals("age_name", row(7, "name77")))), row(77));
        check("nil", ids(people.select(Conditions.indexEquals("age_name", row((Object) null)))), row(500));
        check("collation", ids(people.select(Conditions.indexEquals("any_case", row("NAME77")))), row(77));
        check("all", get(people.select(Conditions.any())).size(), 1000);
    }

    private static void changes(TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> client) throws Exception {
        var people = client.space("people");
        var first = Conditions.equals("id", 1);
        fails("duplicate", () -> get(people.insert(tuple(1, "other", 1))), "Duplicate key exists in unique index");
        fails("wrong type", () -> get(people.insert(tuple("x", "other", 1))), "expected unsigned");
        fails("of a wrong type", () -> get(people.update(first, TupleOperations.add(1, 1))), "Argument type in operation '+'");
        fails("no such space", () -> client.space("nothing"), "nothing");
        fails("no such function", () -> get(client.call("nothing")), "'nothing' is not defined");
        check("replace", rows(people.replace(tuple(1, "one", 10))), row(row(1, "one", 10)));
        check("update", rows(people.update(first, TupleOperations.add("age", 5).andSet("name", "uno"))), row(row(1, "uno", 15)));
        check("bits", rows(people.update(first, TupleOperations.bitwiseAnd(2, 6).andSplice(1, 0, 1, "U"))), row(row(1, "Uno", 6)));
        check("insert a field", rows(people.update(first, TupleOperations.insert(3, "x").andSubtract(2, 5))), row(row(1, "Uno", 1, "x")));
        check("delete a field", rows(people.update(first, TupleOperations.delete(3, 1))), row(row(1, "Uno", 1)));
        var late = Conditions.equals("id", 2000);
        get(people.upsert(late, tuple(2000, "new", 1), TupleOperations.add(2, 1)));
        get(people.upsert(late, tuple(2000, "new", 1), TupleOperations.add(2, 1)));
        check("upsert", rows(people.delete(late)), row(row(2000, "new", 2)));
        check("call", get(client.call("box.space.people:get", row(2))), row(row(2, "name2", 2)));
        var counted = client.space("counted");
        check("sequence", row(rows(counted.insert(tuple(null, "a"))), rows(counted.insert(tuple(null, "b")))), row(row(row(1, "a")), row(row(2, "b"))));
        get(client.space("values").insert(tuple(values().toArray())));
        checkValues(client);
    }

    private static List<Object> values() {
        return row(1, new BigDecimal("-12.34"), new UUID(1, 7), Instant.parse("2024-02-29T01:02:03.123456789Z"),
            row("\u00e4\u4e2d", 1.5, -5, 5000000000L, null, true, Map.of("b", 2)));
    }

    private static void checkValues(TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> client) throws Exception {
        TarantoolTuple found = get(client.space("values").select(Conditions.equals("id", 1))).get(0);
        check("extension types", row(found.getDecimal("decimal"), found.getUUID("uuid"), found.getInstant("when"), found.getList("any")),
            values().subList(1, 5));
    }

    private static void rights() throws Exception {
        fails("wrong password", () -> get(connect("ann", "wrong").call("box.space.people:len")), "No available connections");
        try (var ann = connect("ann", "test")) {
            check("ann reads", rows(ann.space(PEOPLE).select(Conditions.equals("id", 2))), row(row(2, "name2", 2)));
            fails("ann does not write", () -> get(ann.space(PEOPLE).delete(Conditions.equals("id", 2))), "Write access to space 'people' is denied");
        }
    }

    private static void schemaChanges(TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> client) throws Exception {
        try (var other = connect("admin", "secret")) {
            Map<String, Object> nick = Map.of("field", 3, "type", "string", "is_nullable", true);
            get(other.space("_index").insert(tuple(PEOPLE, 5, "nick", "tree", Map.of("unique", false), row(nick))));
            get(client.space("people").update(Conditions.equals("id", 2), TupleOperations.insert(3, "two")));
            get(client.metadata().refresh());
            check("the new index", ids(client.space("people").select(Conditions.indexEquals("nick", row("two")))), row(2));
            get(other.space("_index").delete(Conditions.indexEquals("primary", row(PEOPLE, 5))));
            get(client.metadata().refresh());
            fails("the index is gone", () -> ids(client.space("people").select(Conditions.indexEquals("nick", row("two")))), "nick");
            get(client.space("people").update(Conditions.equals("id", 2), TupleOperations.delete(3, 1)));
        }
    }

    private static Writer writer() {
        var log = connect("admin", "secret").space("log");
        return new Writer() {
            public void insert(int number, String text) throws Exception {
                get(log.insert(tuple(number, text, 0)));
            }

            public void count(int number) throws Exception {
                get(log.update(Conditions.indexEquals(0, row(number)), TupleOperations.add(2, 1)));
            }
        };
    }

    public static void main(String[] arguments) {
        run(Cartridge::work);
    }

    private static void work() throws Exception {
        try (var maker = connect("admin", "secret")) {
            for (Map.Entry<Integer, List<?>> definition : definitions()) {
                get(maker.space(definition.getKey()).insert(TUPLES.create(definition.getValue())));
            }
        }
        var client = connect("admin", "secret");
        reads(client.space("people"));
        changes(client);
        rights();
        schemaChanges(client);
        Map<Integer, Integer> acknowledged = crashUnderLoad(Cartridge::writer);
        List<List<Object>> found = null;
        for (int attempt = 0; found == null; attempt += 1) {
            try {
                found = rows(client.space("people").select(Conditions.equals("id", 1)));
            } catch (Exception error) {
                if (attempt == 100) {
                    throw error;
                }
                Thread.sleep(50);
            }
        }
        check("reconnects, and the data is there", found, row(row(1, "Uno", 1)));
        checkValues(client);
        check("all of it", get(client.space("people").select(Conditions.any())).size(), 1000);
        check("the sequence goes on", rows(client.space("counted").insert(tuple(null, "c"))), row(row(3, "c")));
        Map<Integer, List<?>> log = new HashMap<>();
        rows(client.space("log").select(Conditions.any())).forEach(tuple -> log.put(((Number) tuple.get(0)).intValue(), tuple));
        checkSurvived(acknowledged, log);
    }
}
