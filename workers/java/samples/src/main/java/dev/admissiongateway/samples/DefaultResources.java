package dev.admissiongateway.samples;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import dev.admissiongateway.worker.Answer;
import dev.admissiongateway.worker.Finding;
import dev.admissiongateway.worker.Patch;
import dev.admissiongateway.worker.Pointers;
import dev.admissiongateway.worker.Policy;
import dev.admissiongateway.worker.Request;
import dev.admissiongateway.worker.SettingsError;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * {@code default-resources} adds missing requests and limits to containers and init containers.
 *
 * <p>"If a limit is specified, but no request, ... the request defaults to the limit", and "a
 * request must be less than or equal to the limit", says Kubernetes. So the policy omits a default
 * with which a request would exceed its limit, and warns the user. It ignores containers whose
 * resources an UPDATE does not change (those of Pods and Jobs are immutable), and Pods with
 * resources of their own ({@code spec.resources}), which their containers share.
 */
final class DefaultResources {
    private static final Set<String> JUDGED = Set.of("CREATE", "UPDATE");
    private static final String REQUESTS = "requests";
    private static final String LIMITS = "limits";

    /**
     * The resources whose request may be below the limit. For huge pages and extended resources
     * "you cannot overcommit".
     */
    private static final List<String> RESOURCES = List.of("cpu", "memory", "ephemeral-storage");

    private static final String SCHEMA =
            """
            {"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":\
            {"requests":{"$ref":"#/$defs/quantities"},"limits":{"$ref":"#/$defs/quantities"}},"additionalProperties":false,\
            "$defs":{"quantities":{"type":"object","propertyNames":{"enum":["cpu","memory","ephemeral-storage"]},\
            "additionalProperties":{"type":["string","number"]}}}}\
            """;

    private DefaultResources() {}

    /**
     * Settings of default-resources.
     *
     * @param requests the default request of each resource, such as {@code {"cpu": "100m",
     *     "memory": "128Mi"}}
     * @param limits the default limit of each resource; none below its default request
     */
    record Settings(Map<String, JsonNode> requests, Map<String, JsonNode> limits) {
        Settings {
            requests = requests == null ? Map.of() : requests;
            limits = limits == null ? Map.of() : limits;
        }
    }

    static Policy policy() {
        List<String> inputs =
                new ArrayList<>(PodSpecs.claims(PodSpecs.RUNNING, "name", "resources"));
        for (List<String> path : PodSpecs.PATHS) {
            inputs.add(
                    Pointers.pointer("object") + Pointers.pointer(path.toArray()) + "/resources");
        }
        return Policy.mutating("default-resources")
                .settings(Settings.class, DefaultResources::check)
                .schema(SCHEMA)
                .inputs(inputs)
                .writes(PodSpecs.places(PodSpecs.RUNNING, "resources"))
                .description("Adds requests and limits that containers lack.")
                .judge(DefaultResources::judge);
    }

    /** Reports defaults that are invalid, negative, or contradict each other. */
    private static List<Finding> check(Settings settings) {
        List<Finding> found = new ArrayList<>();
        Map<String, BigDecimal> requests = checked(REQUESTS, settings.requests(), found);
        Map<String, BigDecimal> limits = checked(LIMITS, settings.limits(), found);
        requests.forEach(
                (name, value) -> {
                    if (limits.containsKey(name) && value.compareTo(limits.get(name)) > 0) {
                        String request = Quantities.text(settings.requests().get(name));
                        String limit = Quantities.text(settings.limits().get(name));
                        String message =
                                "the default request "
                                        + request
                                        + " exceeds the default limit "
                                        + limit;
                        found.add(new SettingsError(Pointers.pointer(REQUESTS, name), message));
                    }
                });
        return found;
    }

    private static Map<String, BigDecimal> checked(
            String kind, Map<String, JsonNode> defaults, List<Finding> found) {
        Map<String, BigDecimal> values = new LinkedHashMap<>();
        defaults.forEach(
                (name, written) -> {
                    String place = Pointers.pointer(kind, name);
                    if (!RESOURCES.contains(name)) {
                        String known = String.join(", ", RESOURCES);
                        found.add(new SettingsError(place, "Unknown member; known are: " + known));
                        return;
                    }
                    try {
                        BigDecimal value = Quantities.quantity(written);
                        values.put(name, value);
                        if (value.signum() < 0) {
                            String message = "must not be negative, is " + Quantities.text(written);
                            found.add(new SettingsError(place, message));
                        }
                    } catch (IllegalArgumentException error) {
                        found.add(new SettingsError(place, error.getMessage()));
                    }
                });
        return values;
    }

    private static Answer judge(Request request, Settings settings) {
        List<String> path = PodSpecs.pathOf(request);
        if (path == null || !JUDGED.contains(String.valueOf(request.operation()))) {
            return null;
        }
        if (!Trees.isEmpty(Trees.object(request.object(), path).get("resources"))) {
            return null;
        }
        Patch patch = new Patch();
        List<String> warnings = new ArrayList<>();
        for (Container container : PodSpecs.containers(request, PodSpecs.RUNNING)) {
            if (!isAsBefore(container)) {
                addTo(patch, container, missing(container, settings, warnings));
            }
        }
        return Answer.patch(patch).withWarnings(warnings);
    }

    private static boolean isAsBefore(Container container) {
        if (container.before() == null) {
            return false;
        }
        JsonNode before = container.before().get("resources");
        JsonNode now = container.value().get("resources");
        if (Trees.isEmpty(before) || Trees.isEmpty(now)) { // missing, null and empty are equal
            return Trees.isEmpty(before) && Trees.isEmpty(now);
        }
        return Trees.isSame(before, now);
    }

    /**
     * The defaults that the container lacks, by kind, and a warning for each that cannot be added.
     */
    private static Map<String, Map<String, String>> missing(
            Container container, Settings settings, List<String> warnings) {
        ObjectNode requests = Trees.object(container.value(), List.of("resources", REQUESTS));
        ObjectNode limits = Trees.object(container.value(), List.of("resources", LIMITS));
        Map<String, String> addedRequests = new LinkedHashMap<>();
        settings.requests()
                .forEach(
                        (name, written) -> {
                            if (requests.has(name)) {
                                return;
                            }
                            JsonNode limit = limits.has(name) ? limits.get(name) : written;
                            if (fits(written, limit)) {
                                addedRequests.put(name, Quantities.text(written));
                            } else {
                                String what = "default %s request %s exceeds its limit %s";
                                warnings.add(warning(container, what, name, written, limit));
                            }
                        });
        Map<String, String> addedLimits = new LinkedHashMap<>();
        settings.limits()
                .forEach(
                        (name, written) -> {
                            if (limits.has(name)) {
                                return;
                            }
                            JsonNode wanted = requests.has(name) ? requests.get(name) : written;
                            if (fits(wanted, written)) {
                                addedLimits.put(name, Quantities.text(written));
                            } else {
                                String what = "default %s limit %s is below its request %s";
                                warnings.add(warning(container, what, name, written, wanted));
                            }
                        });
        Map<String, Map<String, String>> added = new LinkedHashMap<>();
        added.put(REQUESTS, addedRequests);
        added.put(LIMITS, addedLimits);
        added.values().removeIf(Map::isEmpty);
        return added;
    }

    /** Adds the defaults, with missing parent objects. */
    private static void addTo(
            Patch patch, Container container, Map<String, Map<String, String>> added) {
        if (added.isEmpty()) {
            return;
        }
        if (!(container.value().get("resources") instanceof ObjectNode now)) {
            patch.add(container.pointer("resources"), added);
            return;
        }
        added.forEach(
                (kind, values) -> {
                    if (now.get(kind) instanceof ObjectNode) {
                        values.forEach(
                                (name, value) ->
                                        patch.add(
                                                container.pointer("resources", kind, name), value));
                    } else {
                        patch.add(container.pointer("resources", kind), values);
                    }
                });
    }

    /**
     * Whether a request is at most its limit. An invalid quantity never fits; the API server will
     * reject it.
     */
    private static boolean fits(JsonNode request, JsonNode limit) {
        try {
            return Quantities.quantity(request).compareTo(Quantities.quantity(limit)) <= 0;
        } catch (IllegalArgumentException none) {
            return false;
        }
    }

    private static String warning(
            Container container, String what, String name, JsonNode written, JsonNode other) {
        return container.field()
                + ": "
                + what.formatted(name, Quantities.text(written), Quantities.text(other))
                + ": not set";
    }
}
