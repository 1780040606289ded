/** Cheap, seeded random numbers: SplitMix64. */
final class Random {
    private long state;

    Random(long seed) {
        state = Value.mix(seed);
    }

    long bits() {
        state += 0x9E3779B97F4A7C15L;
        return Value.mix(state);
    }

    /** Below {@code bound}, which is above 0. */
    int below(int bound) {
        return (int) ((bits() >>> 32) * bound >>> 32);
    }

    /** From 0 to below 1. */
    double even() {
        return (bits() >>> 11) * 0x1.0p-53;
    }
}
