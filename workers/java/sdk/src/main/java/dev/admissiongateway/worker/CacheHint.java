package dev.admissiongateway.worker;

import java.time.Duration;

/**
 * Limits how long the gateway may reuse a verdict. It can only shorten the time that the operator
 * configured.
 */
public final class CacheHint {
    /** A hundred years. A longer time is an error; a protobuf Duration ends at 10,000 years. */
    private static final Duration LONGEST = Duration.ofDays(36_500);

    private static final CacheHint NO_STORE = new CacheHint(null);

    private final Duration timeToLive;

    private CacheHint(Duration timeToLive) {
        this.timeToLive = timeToLive;
    }

    /** Forbids any reuse. */
    public static CacheHint noStore() {
        return NO_STORE;
    }

    /**
     * Limits the reuse to this time.
     *
     * @throws InvalidAnswerException the time is negative, or longer than a hundred years
     */
    public static CacheHint atMost(Duration timeToLive) {
        if (timeToLive == null || timeToLive.isNegative() || timeToLive.compareTo(LONGEST) > 0) {
            throw new InvalidAnswerException(
                    "cache: must be from 0 to " + LONGEST.toDays() + " days; noStore() is never");
        }
        return new CacheHint(timeToLive);
    }

    /** The time to live; null: no reuse. */
    public Duration timeToLive() {
        return timeToLive;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof CacheHint hint
                && (timeToLive == null
                        ? hint.timeToLive == null
                        : timeToLive.equals(hint.timeToLive));
    }

    @Override
    public int hashCode() {
        return timeToLive == null ? 0 : timeToLive.hashCode();
    }

    @Override
    public String toString() {
        return timeToLive == null ? "no-store" : timeToLive.toString();
    }
}
