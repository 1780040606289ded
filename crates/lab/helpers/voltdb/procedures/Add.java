import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;
import org.voltdb.VoltTable;

/** Adds to a counter in its partition and answers the new value. */
public class Add extends VoltProcedure {
    public final SQLStmt read = new SQLStmt("SELECT n FROM counters WHERE k = ?;");
    public final SQLStmt write = new SQLStmt("UPSERT INTO counters VALUES (?, ?);");

    public long run(String key, long by) {
        voltQueueSQL(read, key);
        VoltTable found = voltExecuteSQL()[0];
        long now = by + (found.advanceRow() ? found.getLong(0) : 0);
        voltQueueSQL(write, key, now);
        voltExecuteSQL(true);
        return now;
    }
}
