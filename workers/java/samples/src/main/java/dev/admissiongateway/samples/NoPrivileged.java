package dev.admissiongateway.samples;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import dev.admissiongateway.worker.Answer;
import dev.admissiongateway.worker.Cause;
import dev.admissiongateway.worker.Json;
import dev.admissiongateway.worker.Policy;
import dev.admissiongateway.worker.Request;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * {@code no-privileged} denies privileged containers, init and ephemeral containers included.
 *
 * <p>It checks Pods (with their {@code ephemeralcontainers}) and Pod templates, so that the client
 * that creates a Deployment sees the denial. It ignores a container that was privileged before,
 * with the same image: the UPDATE does not add it, and a denial would prevent labels on old Pods
 * and their deletion. Pods from an old template are still checked.
 */
final class NoPrivileged {
    private static final Set<String> JUDGED = Set.of("CREATE", "UPDATE");

    private NoPrivileged() {}

    /**
     * Settings of no-privileged.
     *
     * @param exemptImages globs of images that may run privileged, compared with the image as
     *     written. {@code *} also matches slashes, as in {@code registry.example.com/agents/*}
     */
    record Settings(List<String> exemptImages) {
        Settings {
            exemptImages = exemptImages == null ? List.of() : exemptImages;
        }
    }

    static Policy policy() {
        return Policy.validating("no-privileged")
                .settings(Settings.class)
                .inputs(
                        PodSpecs.claims(
                                PodSpecs.ALL, "name", "image", "securityContext/privileged"))
                .description(
                        "Denies privileged containers in Pods and in the templates of what creates"
                                + " Pods.")
                .judge(NoPrivileged::judge);
    }

    private static Answer judge(Request request, Settings settings) {
        if (!JUDGED.contains(String.valueOf(request.operation()))) {
            return null;
        }
        List<Cause> causes =
                PodSpecs.containers(request, PodSpecs.ALL).stream()
                        .filter(container -> isPrivileged(container.value()) && !wasSo(container))
                        .filter(container -> !isExempt(container, settings))
                        .map(NoPrivileged::cause)
                        .toList();
        if (causes.isEmpty()) {
            return null;
        }
        String all = causes.stream().map(Cause::message).collect(Collectors.joining("; "));
        return Answer.deny("privileged containers are not allowed: " + all).withCauses(causes);
    }

    private static boolean isPrivileged(ObjectNode container) {
        JsonNode context = container.get("securityContext");
        return context != null
                && context.isObject()
                && context.path("privileged").equals(BooleanNode.TRUE);
    }

    private static boolean wasSo(Container container) {
        ObjectNode before = container.before();
        return before != null
                && isPrivileged(before)
                && Trees.isSame(before.get("image"), container.value().get("image"));
    }

    private static boolean isExempt(Container container, Settings settings) {
        String image = Trees.text(container.value().get("image"));
        return settings.exemptImages().stream().anyMatch(glob -> Globs.matches(glob, image));
    }

    private static Cause cause(Container container) {
        String image = Json.quoted(Trees.text(container.value().get("image")));
        String message =
                container.field() + " (" + Json.quoted(container.name()) + ", image " + image + ")";
        return new Cause(
                container.field() + ".securityContext.privileged", message, "FieldValueForbidden");
    }
}
