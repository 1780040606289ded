import java.util.Map;

/** One request of one user, in the field's terms; the same as the lab's own. */
interface Operation {
    record Set(String key, byte[] value) implements Operation {}

    record Get(String key) implements Operation {}

    record Delete(String key) implements Operation {}

    record Add(String key, long by) implements Operation {}

    record AddMember(String set, String member) implements Operation {}

    record Members(String set) implements Operation {}

    record SetMany(Map<String, byte[]> pairs) implements Operation {}

    record InsertRow(long id, long group, byte[] value) implements Operation {}

    record FindByGroup(long group) implements Operation {}

    record ScanFrom(String key, int count) implements Operation {}
}
