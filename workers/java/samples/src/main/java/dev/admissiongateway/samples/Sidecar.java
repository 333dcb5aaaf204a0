package dev.admissiongateway.samples;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import dev.admissiongateway.worker.Answer;
import dev.admissiongateway.worker.Finding;
import dev.admissiongateway.worker.GroupVersionKind;
import dev.admissiongateway.worker.Json;
import dev.admissiongateway.worker.Patch;
import dev.admissiongateway.worker.Policy;
import dev.admissiongateway.worker.Request;
import dev.admissiongateway.worker.SettingsError;

import java.util.ArrayList;
import java.util.List;

/**
 * {@code sidecar} adds a container to each Pod, once.
 *
 * <p>A container whose {@code restartPolicy} is {@code Always} is a sidecar as Kubernetes defines
 * it, and is appended to the init containers; any other is appended to the containers. It is added
 * only on CREATE, because containers are immutable later. It is not added:
 *
 * <ul>
 *   <li>if a container of that name exists, so that a second run changes nothing (names are unique
 *       in a Pod; if an init container without {@code restartPolicy: Always} has the name, the user
 *       gets a warning);
 *   <li>to mirror Pods, which the kubelet creates from files: the API server cannot change their
 *       containers;
 *   <li>if the Pod's annotation is {@code false}.
 * </ul>
 */
final class Sidecar {
    private static final String MIRROR = "kubernetes.io/config.mirror";
    private static final String RESTART_POLICY = "restartPolicy";
    private static final String ALWAYS = "Always";

    private Sidecar() {}

    /**
     * Settings of sidecar.
     *
     * @param container a v1 Container; the volumes that it mounts must exist in the Pods
     * @param annotation the key of a Pod's annotation which, with the value {@code false}, keeps
     *     the sidecar out
     */
    record Settings(@JsonProperty(required = true) ObjectNode container, String annotation) {
        Settings {
            annotation = annotation == null ? "sidecar.admission-gateway.dev/inject" : annotation;
        }
    }

    static Policy policy() {
        return Policy.mutating("sidecar")
                .settings(Settings.class, Sidecar::check)
                .inputs(
                        "/object/metadata/annotations",
                        "/object/spec/containers/*/name",
                        "/object/spec/initContainers/*/name",
                        "/object/spec/initContainers/*/restartPolicy")
                .writes("/spec/containers", "/spec/initContainers")
                .description("Adds a container to each Pod that is created.")
                .judge(Sidecar::judge);
    }

    /** Checks the required fields of a container. */
    private static List<Finding> check(Settings settings) {
        List<Finding> found = new ArrayList<>();
        for (String name : List.of("name", "image")) {
            if (Trees.text(settings.container().get(name)).isEmpty()) {
                found.add(
                        new SettingsError(
                                "/container/" + name, "Required value: a text that is not empty"));
            }
        }
        if (settings.container().has(RESTART_POLICY) && !isAlways(settings.container())) {
            String message = "must be Always (a sidecar that init containers can use) or absent";
            found.add(new SettingsError("/container/restartPolicy", message));
        }
        return found;
    }

    private static Answer judge(Request request, Settings settings) {
        boolean created =
                "CREATE".equals(request.operation()) && !RequiredLabels.isSubResource(request);
        if (!created || !isPod(request) || isKeptOut(request, settings)) {
            return null;
        }
        ObjectNode spec = Trees.object(request.object(), List.of("spec"));
        String name = Trees.text(settings.container().get("name"));
        if (named(spec.get("containers"), name) != null) {
            return null;
        }
        ObjectNode same = named(spec.get("initContainers"), name);
        if (same != null) {
            String warning =
                    "sidecar "
                            + Json.quoted(name)
                            + " is not added: an init container has its name";
            return isAlways(same) ? null : Answer.allow().withWarnings(warning);
        }
        String place = settings.container().has(RESTART_POLICY) ? "initContainers" : "containers";
        if (spec.path(place).isArray()) {
            return Answer.patch(new Patch().add("/spec/" + place + "/-", settings.container()));
        }
        return Answer.patch(new Patch().add("/spec/" + place, List.of(settings.container())));
    }

    private static boolean isPod(Request request) {
        GroupVersionKind kind = request.kind();
        return request.object() != null
                && kind != null
                && kind.group().isEmpty()
                && kind.kind().equals("Pod");
    }

    private static boolean isKeptOut(Request request, Settings settings) {
        ObjectNode annotations = Trees.object(request.object(), List.of("metadata", "annotations"));
        return annotations.has(MIRROR)
                || Trees.text(annotations.get(settings.annotation())).equals("false");
    }

    private static boolean isAlways(ObjectNode container) {
        return Trees.text(container.get(RESTART_POLICY)).equals(ALWAYS);
    }

    private static ObjectNode named(JsonNode list, String name) {
        if (list != null && list.isArray()) {
            for (JsonNode container : list) {
                if (container instanceof ObjectNode node
                        && Trees.text(node.get("name")).equals(name)) {
                    return node;
                }
            }
        }
        return null;
    }
}
