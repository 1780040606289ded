import com.hazelcast.map.EntryProcessor;
import com.hazelcast.nio.ObjectDataInput;
import com.hazelcast.nio.ObjectDataOutput;
import com.hazelcast.nio.serialization.DataSerializableFactory;
import com.hazelcast.nio.serialization.IdentifiedDataSerializable;
import java.io.IOException;
import java.util.Map;

/** Adds to a counter where it lies, in its partition's thread, and answers the new value. */
public final class Add implements EntryProcessor<String, Long, Long>, IdentifiedDataSerializable {
    private static final long serialVersionUID = 1;

    private long by;

    Add(long by) {
        this.by = by;
    }

    @Override
    public Long process(Map.Entry<String, Long> entry) {
        Long before = entry.getValue();
        long now = (before == null ? 0 : before) + by;
        entry.setValue(now);
        return now;
    }

    @Override
    public void writeData(ObjectDataOutput out) throws IOException {
        out.writeLong(by);
    }

    @Override
    public void readData(ObjectDataInput in) throws IOException {
        by = in.readLong();
    }

    @Override
    public int getFactoryId() {
        return Factory.ID;
    }

    @Override
    public int getClassId() {
        return 1;
    }

    /** Java's own serialization would cost more than the addition; this is the form for hot paths. */
    public static final class Factory implements DataSerializableFactory {
        /** The member's configuration names it too. */
        static final int ID = 1;

        @Override
        public IdentifiedDataSerializable create(int type) {
            return new Add(0);
        }
    }
}
