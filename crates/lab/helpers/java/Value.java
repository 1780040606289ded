import java.nio.charset.StandardCharsets;

/**
 * Values that say what they must be; the same text as the lab's own: the version in eight letters, then
 * letters that follow from number and version. Letters A to P stand for four bits each.
 */
final class Value {
    private static final int BYTES_MIN = 16;
    private static final int VERSION_BYTES = 8;

    private Value() {}

    /** SplitMix64's finish: spreads any change over all bits. */
    static long mix(long number) {
        long z = (number ^ number >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        return z ^ z >>> 31;
    }

    static String key(String space, int number) {
        StringBuilder text = new StringBuilder(space.length() + 11).append(space).append(':');
        String digits = Integer.toString(number);
        text.append("0000000000", 0, 10 - digits.length());
        return text.append(digits).toString();
    }

    static byte[] of(long number, int version, int bytes) {
        byte[] value = new byte[Math.max(bytes, BYTES_MIN)];
        letters(version, value, 0);
        long seed = seed(number, version);
        for (int start = VERSION_BYTES, index = 0; start < value.length; start += 8, index++) {
            letters((int) mix(seed + index), value, start);
        }
        return value;
    }

    /** The version that {@code value} says it is, if it is one of thing {@code number}'s; else 0. */
    static long versionOf(long number, byte[] value, int bytes) {
        if (value == null || value.length != Math.max(bytes, BYTES_MIN)) {
            return 0;
        }
        int version = 0;
        for (int place = 0; place < VERSION_BYTES; place++) {
            int digit = value[place] - 'A';
            if (digit < 0 || digit > 15) {
                return 0;
            }
            version = version << 4 | digit;
        }
        byte[] piece = new byte[8];
        long seed = seed(number, version);
        for (int start = VERSION_BYTES, index = 0; start < value.length; start += 8, index++) {
            letters((int) mix(seed + index), piece, 0);
            for (int place = 0; place < 8 && start + place < value.length; place++) {
                if (value[start + place] != piece[place]) {
                    return 0;
                }
            }
        }
        return Integer.toUnsignedLong(version);
    }

    static String text(byte[] value) {
        return value == null ? "nothing" : new String(value, StandardCharsets.ISO_8859_1);
    }

    private static long seed(long number, int version) {
        return mix(Long.rotateLeft(number, 32) ^ Integer.toUnsignedLong(version));
    }

    private static void letters(int bits, byte[] to, int start) {
        for (int place = 0; place < 8 && start + place < to.length; place++) {
            to[start + place] = (byte) ('A' + (bits >>> (28 - 4 * place) & 15));
        }
    }
}
