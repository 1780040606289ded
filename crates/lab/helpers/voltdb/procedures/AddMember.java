import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;

/** Puts a member into a set and answers 1 if it was there already, else 0. */
public class AddMember extends VoltProcedure {
    public final SQLStmt read = new SQLStmt("SELECT m FROM sets WHERE s = ? AND m = ?;");
    public final SQLStmt write = new SQLStmt("INSERT INTO sets VALUES (?, ?);");

    public long run(String set, String member) {
        voltQueueSQL(read, set, member);
        if (voltExecuteSQL()[0].getRowCount() > 0) {
            return 1;
        }
        voltQueueSQL(write, set, member);
        voltExecuteSQL(true);
        return 0;
    }
}
