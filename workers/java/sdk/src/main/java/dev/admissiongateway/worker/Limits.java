package dev.admissiongateway.worker;

import java.time.Duration;

/**
 * How much a worker takes on. Full means a decided refusal, never a stall. Each limit can be set by
 * a flag of the worker's command or by its environment variable, or in code where a worker is
 * served by hand.
 *
 * @param inFlight calls taken and not yet worked off, over all connections; more are refused
 * @param messageBytes the largest gRPC message, received or sent
 * @param batchBytes up to which size outcomes are gathered into one message of the stream
 * @param threads blocking policies that run at the same time
 * @param settingsKept converted settings that are kept, over all policies
 * @param settingsKeptBytes their JSON text together
 * @param gracePeriod for open calls when the worker stops
 */
public record Limits(
        int inFlight,
        int messageBytes,
        int batchBytes,
        int threads,
        int settingsKept,
        long settingsKeptBytes,
        Duration gracePeriod) {
    private static final int MIB = 1024 * 1024;

    /**
     * 16 gateways with 256 calls each. A call is a few KB besides its document, so 4,096 of them are
     * some 20 MB.
     */
    private static final int IN_FLIGHT = 4096;

    /**
     * The gateway accepts bodies of 20 MB. A document is at most that body, and mutating policies
     * before this one may have let it grow; a whole object that goes back may be larger again.
     * Twice the body, and 1 MiB for settings and what stands around; the gateway's own limit is the
     * same.
     */
    private static final int MESSAGE_BYTES = 2 * 20_000_000 + MIB;

    /**
     * gRPC's own default for what a receiver accepts. Outcomes are gathered up to here, so that a
     * gateway which has set no limit can read every batch; a single outcome that is larger travels
     * alone.
     */
    private static final int BATCH_BYTES = 4 * MIB;

    /**
     * They wait more than they compute: 32 of them, waiting 50 ms each, answer 640 calls a second.
     */
    private static final int THREADS = 32;

    /** One for each policy of a large configuration. */
    private static final int SETTINGS_KEPT = 256;

    /** A custom resource is at most 1.5 MB (etcd's limit), so ten of the largest fit. */
    private static final long SETTINGS_KEPT_BYTES = 16L * MIB;

    /**
     * A gateway that started the worker kills it after 10 seconds, Kubernetes after 30 by default;
     * 2 are left for the rest of the shutdown.
     */
    private static final Duration GRACE_PERIOD = Duration.ofSeconds(8);

    /**
     * Checks the limits.
     *
     * @throws IllegalArgumentException one that is not positive (the grace period may be 0)
     */
    public Limits {
        positive("inFlight", inFlight);
        positive("messageBytes", messageBytes);
        positive("batchBytes", batchBytes);
        positive("threads", threads);
        positive("settingsKept", settingsKept);
        positive("settingsKeptBytes", settingsKeptBytes);
        if (gracePeriod == null || gracePeriod.isNegative()) {
            throw new IllegalArgumentException(
                    "limit gracePeriod: must be at least 0, is " + gracePeriod);
        }
    }

    /** What a worker has if nobody says otherwise. */
    public static Limits defaults() {
        return new Limits(
                IN_FLIGHT,
                MESSAGE_BYTES,
                BATCH_BYTES,
                THREADS,
                SETTINGS_KEPT,
                SETTINGS_KEPT_BYTES,
                GRACE_PERIOD);
    }

    /** The same with another number of calls at the same time. */
    public Limits withInFlight(int other) {
        return new Limits(
                other,
                messageBytes,
                batchBytes,
                threads,
                settingsKept,
                settingsKeptBytes,
                gracePeriod);
    }

    /** The same with another largest message. */
    public Limits withMessageBytes(int other) {
        return new Limits(
                inFlight, other, batchBytes, threads, settingsKept, settingsKeptBytes, gracePeriod);
    }

    /** The same with another number of blocking policies at the same time. */
    public Limits withThreads(int other) {
        return new Limits(
                inFlight,
                messageBytes,
                batchBytes,
                other,
                settingsKept,
                settingsKeptBytes,
                gracePeriod);
    }

    /** The same with another number of kept settings. */
    public Limits withSettingsKept(int other) {
        return new Limits(
                inFlight, messageBytes, batchBytes, threads, other, settingsKeptBytes, gracePeriod);
    }

    /** The same with another grace period. */
    public Limits withGracePeriod(Duration other) {
        return new Limits(
                inFlight,
                messageBytes,
                batchBytes,
                threads,
                settingsKept,
                settingsKeptBytes,
                other);
    }

    private static void positive(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(
                    "limit " + name + ": must be at least 1, is " + value);
        }
    }
}
