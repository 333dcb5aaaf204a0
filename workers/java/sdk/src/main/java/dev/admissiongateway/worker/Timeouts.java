package dev.admissiongateway.worker;

import com.google.protobuf.Duration;

import java.math.BigDecimal;
import java.util.concurrent.TimeUnit;

/** Converts the contract's durations. */
final class Timeouts {
    /**
     * A hundred years: longer timeouts have no use, and sums of nanoseconds stay within 64 bits
     * (292 years).
     */
    private static final long MOST_SECONDS = TimeUnit.DAYS.toSeconds(36_500);

    private Timeouts() {}

    static long nanos(Duration timeout) {
        long seconds = Math.max(-MOST_SECONDS, Math.min(MOST_SECONDS, timeout.getSeconds()));
        return TimeUnit.SECONDS.toNanos(seconds) + timeout.getNanos();
    }

    /** In seconds: {@code 0.25}. */
    static String seconds(Duration timeout) {
        BigDecimal exact =
                BigDecimal.valueOf(timeout.getSeconds())
                        .add(BigDecimal.valueOf(timeout.getNanos(), 9));
        return exact.signum() == 0 ? "0" : exact.stripTrailingZeros().toPlainString();
    }
}
