/** Counts of times in nanoseconds, told apart to a thousandth of their size, up to a minute. */
final class Histogram {
    private static final long MAX = 60_000_000_000L;
    /** Steps between a power of two and the next. */
    private static final int STEPS = 1024;

    private final long[] counts = new long[index(MAX) + 1];

    void record(long value) {
        counts[index(Math.min(Math.max(value, 1), MAX))]++;
    }

    /** {@code [[value,count],...]}, the lowest first. */
    String json() {
        StringBuilder text = new StringBuilder("[");
        for (int index = 0; index < counts.length; index++) {
            if (counts[index] > 0) {
                text.append(text.length() > 1 ? "," : "");
                text.append('[').append(middle(index)).append(',').append(counts[index]).append(']');
            }
        }
        return text.append(']').toString();
    }

    private static int shift(long value) {
        return Math.max(0, 63 - Long.numberOfLeadingZeros(value) - 10);
    }

    private static int index(long value) {
        int shift = shift(value);
        return shift * STEPS + (int) (value >>> shift);
    }

    private static long middle(int index) {
        int shift = index < 2 * STEPS ? 0 : index / STEPS - 1;
        return ((long) (index - shift * STEPS) << shift) + (1L << shift >> 1);
    }
}
