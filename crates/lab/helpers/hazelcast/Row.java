/** A row of the table with a secondary index over {@code group}; sent in Hazelcast's compact form. */
record Row(long group, byte[] value) {}
