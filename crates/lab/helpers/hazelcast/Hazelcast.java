import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.client.config.ClientConnectionStrategyConfig.ReconnectMode;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.instance.BuildInfoProvider;
import com.hazelcast.map.IMap;
import com.hazelcast.multimap.MultiMap;
import com.hazelcast.query.Predicates;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Hazelcast through its own client.
 *
 * <p>Calls that the client has in an asynchronous form are made so. Multimaps and queries have none:
 * each of their callers has a thread, as a program of many users would.
 */
final class Hazelcast implements Store {
    private final HazelcastInstance client;
    private final IMap<String, byte[]> values;
    private final IMap<String, Long> counters;
    private final MultiMap<String, String> sets;
    private final IMap<Long, Row> rows;
    private final Callers callers;

    /** At most {@code callers} calls that block are under way at once. */
    Hazelcast(String address, String cluster, int callers) {
        ClientConfig config = new ClientConfig();
        config.setClusterName(cluster);
        config.getNetworkConfig().addAddress(address);
        // A member that is gone must be seen, not waited for.
        config.getConnectionStrategyConfig().setReconnectMode(ReconnectMode.OFF);
        config.getConnectionStrategyConfig()
                .getConnectionRetryConfig()
                .setClusterConnectTimeoutMillis(20_000);
        config.getSerializationConfig().addDataSerializableFactory(Add.Factory.ID, new Add.Factory());
        config.setProperty("hazelcast.logging.type", "none");
        client = HazelcastClient.newHazelcastClient(config);
        values = client.getMap("values");
        counters = client.getMap("counters");
        sets = client.getMultiMap("sets");
        rows = client.getMap("rows");
        this.callers = new Callers(callers);
    }

    @Override
    public String title() {
        return "Hazelcast";
    }

    @Override
    public String version() {
        return BuildInfoProvider.getBuildInfo().getVersion();
    }

    @Override
    public CompletionStage<?> ask(Operation operation) {
        if (operation instanceof Operation.Get get) {
            return values.getAsync(get.key());
        }
        if (operation instanceof Operation.Set set) {
            return values.setAsync(set.key(), set.value());
        }
        if (operation instanceof Operation.Delete delete) {
            return values.deleteAsync(delete.key());
        }
        if (operation instanceof Operation.Add add) {
            return counters.submitToKey(add.key(), new Add(add.by()));
        }
        if (operation instanceof Operation.SetMany many) {
            return values.putAllAsync(many.pairs());
        }
        if (operation instanceof Operation.InsertRow insert) {
            return rows.setAsync(insert.id(), new Row(insert.group(), insert.value()));
        }
        if (operation instanceof Operation.AddMember add) {
            return CompletableFuture.supplyAsync(() -> !sets.put(add.set(), add.member()), callers);
        }
        if (operation instanceof Operation.Members members) {
            return CompletableFuture.supplyAsync(() -> sets.get(members.set()), callers);
        }
        if (operation instanceof Operation.FindByGroup find) {
            return CompletableFuture.supplyAsync(() -> find(find.group()), callers);
        }
        throw new IllegalArgumentException("no such operation: " + operation);
    }

    private Map<Long, byte[]> find(long group) {
        Map<Long, byte[]> found = new HashMap<>();
        for (Map.Entry<Long, Row> entry : rows.entrySet(Predicates.equal("group", group))) {
            found.put(entry.getKey(), entry.getValue().value());
        }
        return found;
    }

    @Override
    public void clear() {
        values.clear();
        counters.clear();
        sets.clear();
        rows.clear();
    }

    @Override
    public void close() {
        callers.close();
        client.shutdown();
    }
}
