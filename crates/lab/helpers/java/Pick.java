/**
 * Which key comes next: evenly, by Zipf's law (constant 0.99) scattered over the space, or by it with
 * the newest the most popular. The method is of Gray et al., SIGMOD 1994, as YCSB has it.
 */
final class Pick {
    private static final double THETA = 0.99;

    private final Random random;
    private final String distribution;
    private final int count;
    private double zeta;
    private double eta;

    Pick(String distribution, int count, long seed) {
        this.random = new Random(seed);
        this.distribution = distribution;
        this.count = Math.max(count, 1);
        if (!distribution.equals("uniform")) {
            for (int rank = 1; rank <= this.count; rank++) {
                zeta += Math.pow(rank, -THETA);
            }
            double two = 1 + Math.pow(2, -THETA);
            eta = (1 - Math.pow(2.0 / this.count, 1 - THETA)) / (1 - two / zeta);
        }
    }

    /** Below {@code now}, which is above 0 and may have grown. */
    int below(int now) {
        return switch (distribution) {
            case "uniform" -> random.below(now);
            case "zipf" -> (int) Long.remainderUnsigned(Value.mix(rank() + 1L), now);
            case "latest" -> now - 1 - rank() % now;
            default -> throw new IllegalArgumentException("no distribution " + distribution);
        };
    }

    int evenly(int bound) {
        return random.below(bound);
    }

    private int rank() {
        double even = random.even();
        double scaled = even * zeta;
        if (scaled < 1) {
            return 0;
        }
        if (scaled < 1 + Math.pow(0.5, THETA)) {
            return Math.min(1, count - 1);
        }
        int rank = (int) (count * Math.pow(eta * even - eta + 1, 1 / (1 - THETA)));
        return Math.min(rank, count - 1);
    }
}
