import com.aerospike.client.AerospikeClient;
import com.aerospike.client.AerospikeException;
import com.aerospike.client.BatchRecord;
import com.aerospike.client.BatchWrite;
import com.aerospike.client.Bin;
import com.aerospike.client.Key;
import com.aerospike.client.Record;
import com.aerospike.client.Value;
import com.aerospike.client.async.EventLoop;
import com.aerospike.client.async.EventPolicy;
import com.aerospike.client.async.NioEventLoops;
import com.aerospike.client.cdt.MapOperation;
import com.aerospike.client.cdt.MapOrder;
import com.aerospike.client.cdt.MapPolicy;
import com.aerospike.client.cdt.MapWriteFlags;
import com.aerospike.client.listener.BatchOperateListListener;
import com.aerospike.client.listener.DeleteListener;
import com.aerospike.client.listener.RecordListener;
import com.aerospike.client.listener.RecordSequenceListener;
import com.aerospike.client.listener.WriteListener;
import com.aerospike.client.policy.ClientPolicy;
import com.aerospike.client.query.Filter;
import com.aerospike.client.query.IndexType;
import com.aerospike.client.query.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;

/** Aerospike through its own client, by its asynchronous calls: each under way has a connection. */
final class Aerospike implements Store {
    private static final String NAMESPACE = "lab";
    private static final String[] SETS = {"kv", "counters", "sets", "rows"};
    /** A server takes 15,000 connections unless told; what is beyond waits in the client. */
    private static final int UNDER_WAY_MAX = 8000;
    private static final MapPolicy ADD =
            new MapPolicy(MapOrder.UNORDERED, MapWriteFlags.CREATE_ONLY | MapWriteFlags.NO_FAIL);

    private final NioEventLoops loops;
    private final EventLoop loop;
    private final AerospikeClient client;

    Aerospike(String host, int port) {
        EventPolicy events = new EventPolicy();
        events.maxCommandsInProcess = UNDER_WAY_MAX;
        loops = new NioEventLoops(events, 1);
        loop = loops.get(0);
        ClientPolicy policy = new ClientPolicy();
        policy.eventLoops = loops;
        policy.asyncMaxConnsPerNode = UNDER_WAY_MAX;
        policy.readPolicyDefault.totalTimeout = 25_000;
        policy.readPolicyDefault.maxRetries = 0;
        policy.writePolicyDefault.totalTimeout = 25_000;
        policy.batchPolicyDefault.totalTimeout = 25_000;
        policy.queryPolicyDefault.totalTimeout = 25_000;
        client = new AerospikeClient(policy, host, port);
        client.createIndex(null, NAMESPACE, "rows", "rows_by_group", "g", IndexType.NUMERIC)
                .waitTillComplete();
    }

    @Override
    public String title() {
        return "Aerospike";
    }

    @Override
    public String version() {
        return AerospikeClient.class.getPackage().getImplementationVersion();
    }

    @Override
    public CompletionStage<?> ask(Operation operation) {
        if (operation instanceof Operation.Get get) {
            return read(get.key(), "kv", found -> found == null ? null : found.getValue("v"));
        }
        if (operation instanceof Operation.Set set) {
            return write(key("kv", set.key()), new Bin("v", set.value()));
        }
        if (operation instanceof Operation.Delete delete) {
            Answer<Object> answer = new Answer<>(null);
            client.delete(loop, answer, null, key("kv", delete.key()));
            return answer.future;
        }
        if (operation instanceof Operation.Add add) {
            Answer<Object> answer = new Answer<>(found -> found.getLong("n"));
            client.operate(
                    loop,
                    answer,
                    null,
                    key("counters", add.key()),
                    com.aerospike.client.Operation.add(new Bin("n", add.by())),
                    com.aerospike.client.Operation.get("n"));
            return answer.future;
        }
        if (operation instanceof Operation.AddMember add) {
            Answer<Object> answer = new Answer<>(found -> isSame(found.getList("m")));
            client.operate(
                    loop,
                    answer,
                    null,
                    key("sets", add.set()),
                    MapOperation.size("m"),
                    MapOperation.put(ADD, "m", Value.get(add.member()), Value.get(0)));
            return answer.future;
        }
        if (operation instanceof Operation.Members members) {
            return read(
                    members.set(),
                    "sets",
                    found -> found == null ? List.of() : found.getMap("m").keySet());
        }
        if (operation instanceof Operation.SetMany many) {
            return writeAll(many.pairs());
        }
        if (operation instanceof Operation.InsertRow insert) {
            return write(
                    new Key(NAMESPACE, "rows", insert.id()),
                    new Bin("id", insert.id()),
                    new Bin("g", insert.group()),
                    new Bin("v", insert.value()));
        }
        if (operation instanceof Operation.FindByGroup find) {
            return find(find.group());
        }
        throw new IllegalArgumentException("no such operation: " + operation);
    }

    /** Sizes before and after: the first is null of a set that was not there. */
    private static boolean isSame(List<?> sizes) {
        return sizes.get(1).equals(sizes.get(0));
    }

    private static Key key(String set, String key) {
        return new Key(NAMESPACE, set, key);
    }

    private CompletionStage<Object> read(String key, String set, Function<Record, Object> answer) {
        Answer<Object> result = new Answer<>(answer);
        client.get(loop, result, null, key(set, key));
        return result.future;
    }

    private CompletionStage<Object> write(Key key, Bin... bins) {
        Answer<Object> result = new Answer<>(null);
        client.put(loop, result, null, key, bins);
        return result.future;
    }

    private CompletionStage<Object> writeAll(Map<String, byte[]> pairs) {
        List<BatchRecord> records = new ArrayList<>(pairs.size());
        for (Map.Entry<String, byte[]> pair : pairs.entrySet()) {
            Bin bin = new Bin("v", pair.getValue());
            com.aerospike.client.Operation[] put = {com.aerospike.client.Operation.put(bin)};
            records.add(new BatchWrite(key("kv", pair.getKey()), put));
        }
        CompletableFuture<Object> done = new CompletableFuture<>();
        client.operate(
                loop,
                new BatchOperateListListener() {
                    @Override
                    public void onSuccess(List<BatchRecord> written, boolean all) {
                        if (all) {
                            done.complete(null);
                        } else {
                            done.completeExceptionally(new IllegalStateException("a write failed"));
                        }
                    }

                    @Override
                    public void onFailure(AerospikeException error) {
                        done.completeExceptionally(error);
                    }
                },
                null,
                records);
        return done;
    }

    private CompletionStage<Object> find(long group) {
        Statement statement = new Statement();
        statement.setNamespace(NAMESPACE);
        statement.setSetName("rows");
        statement.setFilter(Filter.equal("g", group));
        CompletableFuture<Object> done = new CompletableFuture<>();
        Map<Long, byte[]> rows = new HashMap<>();
        client.query(
                loop,
                new RecordSequenceListener() {
                    @Override
                    public void onRecord(Key key, Record found) {
                        rows.put(found.getLong("id"), (byte[]) found.getValue("v"));
                    }

                    @Override
                    public void onSuccess() {
                        done.complete(rows);
                    }

                    @Override
                    public void onFailure(AerospikeException error) {
                        done.completeExceptionally(error);
                    }
                },
                null,
                statement);
        return done;
    }

    @Override
    public void clear() {
        for (String set : SETS) {
            client.truncate(null, NAMESPACE, set, null);
        }
    }

    @Override
    public void close() {
        client.close();
        loops.close();
    }

    /** Completes with what is made of the record, with whether a record was there, or with null. */
    private static final class Answer<T>
            implements RecordListener, WriteListener, DeleteListener {
        final CompletableFuture<Object> future = new CompletableFuture<>();
        private final Function<Record, T> made;

        Answer(Function<Record, T> made) {
            this.made = made;
        }

        @Override
        public void onSuccess(Key key, Record found) {
            try {
                future.complete(made.apply(found));
            } catch (RuntimeException error) {
                future.completeExceptionally(error);
            }
        }

        @Override
        public void onSuccess(Key key) {
            future.complete(null);
        }

        @Override
        public void onSuccess(Key key, boolean existed) {
            future.complete(existed);
        }

        @Override
        public void onFailure(AerospikeException error) {
            future.completeExceptionally(error);
        }
    }
}
