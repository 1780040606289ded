import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.voltdb.VoltTable;
import org.voltdb.client.Client2;
import org.voltdb.client.Client2Config;
import org.voltdb.client.ClientFactory;
import org.voltdb.client.ClientResponse;
import org.voltdb.client.ProcCallException;

/** VoltDB through its own client: every operation is a call of a stored procedure. */
final class VoltDb implements Store {
    private static final String[] TABLES = {"kv", "counters", "sets", "grouped"};
    /** More than any work has under way: it measures the system, not this client's queue. */
    private static final int UNDER_WAY_MAX = 1_000_000;

    private final Client2 client;

    VoltDb(String address) throws IOException {
        Client2Config config =
                new Client2Config()
                        .clientRequestLimit(UNDER_WAY_MAX)
                        .clientRequestBackpressureLevel(UNDER_WAY_MAX, UNDER_WAY_MAX)
                        .outstandingTransactionLimit(UNDER_WAY_MAX)
                        .procedureCallTimeout(25, TimeUnit.SECONDS);
        client = ClientFactory.createClient(config);
        client.connectSync(address);
        // Until the client knows who has which partition, requests take a detour.
        client.waitForTopology(10, TimeUnit.SECONDS);
    }

    @Override
    public String title() {
        return "VoltDB";
    }

    @Override
    public String version() {
        Properties properties = new Properties();
        try (InputStream file = Client2.class.getResourceAsStream("/org/voltdb/version.properties")) {
            properties.load(file);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return properties.getProperty("dist.version");
    }

    @Override
    public CompletionStage<?> ask(Operation operation) {
        if (operation instanceof Operation.Get get) {
            return call("KV.select", get.key()).thenApply(VoltDb::value);
        }
        if (operation instanceof Operation.Set set) {
            return call("KV.upsert", set.key(), set.value());
        }
        if (operation instanceof Operation.Delete delete) {
            return call("KV.delete", delete.key()).thenApply(VoltDb::isOne);
        }
        if (operation instanceof Operation.Add add) {
            return call("Add", add.key(), add.by()).thenApply(VoltTable::asScalarLong);
        }
        if (operation instanceof Operation.AddMember add) {
            return call("AddMember", add.set(), add.member()).thenApply(VoltDb::isOne);
        }
        if (operation instanceof Operation.Members members) {
            return call("Members", members.set()).thenApply(VoltDb::texts);
        }
        if (operation instanceof Operation.SetMany many) {
            String[] keys = many.pairs().keySet().toArray(new String[0]);
            return call("SetMany", keys, many.pairs().values().toArray(new byte[0][]));
        }
        if (operation instanceof Operation.InsertRow insert) {
            return call("GROUPED.upsert", insert.id(), insert.group(), insert.value());
        }
        if (operation instanceof Operation.FindByGroup find) {
            return call("FindByGroup", find.group()).thenApply(VoltDb::rows);
        }
        if (operation instanceof Operation.ScanFrom scan) {
            return call("ScanFrom", scan.key(), scan.count()).thenApply(VoltDb::values);
        }
        throw new IllegalArgumentException("no such operation: " + operation);
    }

    private CompletableFuture<VoltTable> call(String procedure, Object... arguments) {
        return client.callProcedureAsync(procedure, arguments)
                .thenApply(
                        response -> {
                            if (response.getStatus() != ClientResponse.SUCCESS) {
                                throw new IllegalStateException(response.getStatusString());
                            }
                            return response.getResults()[0];
                        });
    }

    private static boolean isOne(VoltTable table) {
        return table.asScalarLong() == 1;
    }

    private static byte[] value(VoltTable table) {
        return table.advanceRow() ? table.getVarbinary("V") : null;
    }

    private static List<String> texts(VoltTable table) {
        List<String> all = new ArrayList<>(table.getRowCount());
        while (table.advanceRow()) {
            all.add(table.getString(0));
        }
        return all;
    }

    private static List<byte[]> values(VoltTable table) {
        List<byte[]> all = new ArrayList<>(table.getRowCount());
        while (table.advanceRow()) {
            all.add(table.getVarbinary(0));
        }
        return all;
    }

    private static Map<Long, byte[]> rows(VoltTable table) {
        Map<Long, byte[]> all = new HashMap<>(table.getRowCount() * 2);
        while (table.advanceRow()) {
            all.put(table.getLong(0), table.getVarbinary(1));
        }
        return all;
    }

    @Override
    public void clear() {
        try {
            for (String table : TABLES) {
                client.callProcedureSync("@AdHoc", "TRUNCATE TABLE " + table);
            }
        } catch (IOException | ProcCallException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void close() {
        client.close();
    }
}
