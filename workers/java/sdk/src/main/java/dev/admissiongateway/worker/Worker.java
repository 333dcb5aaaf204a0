package dev.admissiongateway.worker;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A named set of policies that can be served.
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
     * @param name for logs, such as {@code labels}. It may differ from the worker's name in the
     *     gateway's configuration
     * @param version of the worker's build, such as {@code 1.4.2} or a commit. It is part of the
     *     cache key of verdicts, so it must change whenever a verdict may change
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

    /** The policies by name, in the order of their registration. */
    public Map<String, Policy> policies() {
        return Collections.unmodifiableMap(policies);
    }

    /**
     * Serves without TLS and with the default limits, until the returned handle is closed; for
     * tests and for use inside a program.
     *
     * @param address {@code HOST:PORT} (port 0: any free port), {@code unix:PATH} or {@code
     *     unix:///ABSOLUTE}
     * @throws AddressException the worker cannot listen on the address
     */
    public RunningWorker serve(String address) throws AddressException {
        return serve(address, Limits.defaults(), null);
    }

    /**
     * Serves until the returned handle is closed.
     *
     * @param address {@code HOST:PORT} (port 0: any free port), {@code unix:PATH} or {@code
     *     unix:///ABSOLUTE}
     * @param limits of everything
     * @param tls null: without TLS
     * @throws AddressException the worker cannot listen on the address, or use a certificate
     */
    public RunningWorker serve(String address, Limits limits, Tls tls) throws AddressException {
        return new RunningWorker(this, address, limits, tls);
    }

    /**
     * Runs the worker's command: serves until SIGTERM or SIGINT, then ends the process.
     *
     * @param arguments of the process
     */
    public void main(String[] arguments) {
        Command.run(this, arguments, System.getenv());
    }

    /** This worker with the probe policies added. */
    Worker withProbes() {
        Worker both = new Worker(name, version);
        policies.values().forEach(both::register);
        Probes.policies().forEach(both::register);
        return both;
    }
}
