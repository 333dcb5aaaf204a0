package dev.admissiongateway.worker;

import java.time.Duration;

/**
 * The limits of a worker. At a limit the worker rejects calls; it never stalls. Limits are set by
 * flags or environment variables of the worker's command, or in code.
 *
 * @param inFlight accepted calls that have not ended, over all connections; more are rejected
 * @param messageBytes the largest gRPC message, received or sent
 * @param batchBytes the largest message of several outcomes on a stream
 * @param threads concurrent blocking policies
 * @param settingsKept cached settings, over all policies
 * @param settingsKeptBytes the JSON text of all cached settings
 * @param gracePeriod time for open calls when the worker stops
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
     * 16 gateways with 256 calls each. A call is a few KB besides its document, so 4,096 of them
     * are some 20 MB.
     */
    private static final int IN_FLIGHT = 4096;

    /**
     * The gateway accepts bodies of 20 MB. A document is at most that body, and mutating policies
     * before this one may have let it grow; a whole object that goes back may be larger again.
     * Twice the body, and 1 MiB for settings and the rest of the message; the gateway's own limit
     * is the same.
     */
    private static final int MESSAGE_BYTES = 2 * 20_000_000 + MIB;

    /**
     * gRPC's own default for what a receiver accepts. A batch is at most this large, so that a
     * gateway without a limit of its own can read it. A larger outcome is sent alone.
     */
    private static final int BATCH_BYTES = 4 * MIB;

    /** Blocking policies mostly wait: 32 that wait 50 ms each answer 640 calls a second. */
    private static final int THREADS = 32;

    /** One for each policy of a large configuration. */
    private static final int SETTINGS_KEPT = 256;

    /** A custom resource is at most 1.5 MB (etcd's limit), so ten of the largest fit. */
    private static final long SETTINGS_KEPT_BYTES = 16L * MIB;

    /**
     * A gateway that started the worker kills it after 10 seconds, Kubernetes after 30 by default;
     * 2 s are left for the rest of the shutdown.
     */
    private static final Duration GRACE_PERIOD = Duration.ofSeconds(8);

    /**
     * Validates the limits.
     *
     * @throws IllegalArgumentException a limit is not positive (the grace period may be 0)
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

    /** The default limits. */
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

    /** Sets the number of concurrent calls. */
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

    /** Sets the largest message. */
    public Limits withMessageBytes(int other) {
        return new Limits(
                inFlight, other, batchBytes, threads, settingsKept, settingsKeptBytes, gracePeriod);
    }

    /** Sets the number of concurrent blocking policies. */
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

    /** Sets the number of cached settings. */
    public Limits withSettingsKept(int other) {
        return new Limits(
                inFlight, messageBytes, batchBytes, threads, other, settingsKeptBytes, gracePeriod);
    }

    /** Sets the grace period. */
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
