package dev.admissiongateway.worker;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Holds policies and serves them.
 *
 * <pre>{@code
 * static final Worker WORKER = new Worker("labels", "1.0.0")
 *     .register(Policy.validating("required-label").settings(RequiredLabel.class).judge(Labels::requiredLabel));
 *
 * public static void main(String[] arguments) {
 *     WORKER.main(arguments);
 * }
 * }</pre>
 */
public final class Worker {
    private final String name;
    private final String version;
    private final Map<String, Policy> policies = new LinkedHashMap<>();

    /**
     * A worker without policies.
     *
     * @param name for logs, such as {@code labels}. It need not be the name that the gateway's
     *     configuration gives it
     * @param version of the worker's build, such as {@code 1.4.2} or a commit. It must change
     *     whenever a verdict may change: it is part of the key under which verdicts are cached
     * @throws IllegalArgumentException the version is missing
     */
    public Worker(String name, String version) {
        if (name == null) {
            throw new IllegalArgumentException("worker: a name is required, such as \"labels\"");
        }
        if (version == null || version.isEmpty()) {
            throw new IllegalArgumentException(
                    "worker "
                            + Json.quoted(name)
                            + ": a version is required, such as \"1.0.0\"; verdicts are cached by"
                            + " it");
        }
        this.name = name;
        this.version = version;
    }

    /**
     * Adds a policy.
     *
     * @return this worker
     * @throws IllegalArgumentException a policy of this name is registered already
     */
    public Worker register(Policy policy) {
        if (policies.putIfAbsent(policy.name(), policy) != null) {
            throw new IllegalArgumentException(
                    "worker "
                            + name
                            + ": a policy "
                            + Json.quoted(policy.name())
                            + " is registered already");
        }
        return this;
    }

    /** Its name. */
    public String name() {
        return name;
    }

    /** The version of its build. */
    public String version() {
        return version;
    }

    /** The registered policies by name, in the order of their registration. */
    public Map<String, Policy> policies() {
        return Collections.unmodifiableMap(policies);
    }

    /**
     * Serves until the returned handle is closed, without TLS and with the default limits; for
     * tests and for embedding.
     *
     * @param address {@code HOST:PORT} (port 0: any), {@code unix:PATH} or {@code unix:///ABSOLUTE}
     * @throws AddressException the address cannot be listened on
     */
    public RunningWorker serve(String address) throws AddressException {
        return serve(address, Limits.defaults(), null);
    }

    /**
     * Serves until the returned handle is closed.
     *
     * @param address {@code HOST:PORT} (port 0: any), {@code unix:PATH} or {@code unix:///ABSOLUTE}
     * @param limits of everything
     * @param tls null: without TLS
     * @throws AddressException the address cannot be listened on, or a certificate cannot be used
     */
    public RunningWorker serve(String address, Limits limits, Tls tls) throws AddressException {
        return new RunningWorker(this, address, limits, tls);
    }

    /**
     * Runs the worker's command: serves until SIGTERM or SIGINT, then ends the process.
     *
     * @param arguments the process's own
     */
    public void main(String[] arguments) {
        Command.run(this, arguments, System.getenv());
    }

    /** The same worker with the probe policies besides. */
    Worker withProbes() {
        Worker both = new Worker(name, version);
        policies.values().forEach(both::register);
        Probes.policies().forEach(both::register);
        return both;
    }
}
