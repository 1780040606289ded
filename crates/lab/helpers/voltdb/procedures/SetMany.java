import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;

/** Stores several keys as one transaction, whichever partitions they are in. */
public class SetMany extends VoltProcedure {
    public final SQLStmt write = new SQLStmt("UPSERT INTO kv VALUES (?, ?);");

    public long run(String[] keys, byte[][] values) {
        for (int index = 0; index < keys.length; index++) {
            voltQueueSQL(write, keys[index], values[index]);
        }
        voltExecuteSQL(true);
        return keys.length;
    }
}
