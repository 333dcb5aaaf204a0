package dev.admissiongateway.samples;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import dev.admissiongateway.worker.Answer;
import dev.admissiongateway.worker.Finding;
import dev.admissiongateway.worker.Json;
import dev.admissiongateway.worker.Patch;
import dev.admissiongateway.worker.Pointers;
import dev.admissiongateway.worker.Policy;
import dev.admissiongateway.worker.Request;
import dev.admissiongateway.worker.SettingsError;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * {@code default-labels} adds missing labels, and never overwrites an existing one.
 *
 * <p>It ignores subresources, whose objects have no labels of their own or cannot change them.
 */
final class DefaultLabels {
    private static final Set<String> JUDGED = Set.of("CREATE", "UPDATE");

    private DefaultLabels() {}

    /**
     * Settings of default-labels.
     *
     * @param labels the labels to add, with their values
     */
    record Settings(@JsonProperty(required = true) Map<String, String> labels) {}

    static Policy policy() {
        return Policy.mutating("default-labels")
                .settings(Settings.class, DefaultLabels::check)
                .inputs("/object/metadata/labels")
                .writes("/metadata/labels")
                .description("Adds labels that an object lacks.")
                .judge(DefaultLabels::judge);
    }

    /** Reports labels that Kubernetes would reject. */
    private static List<Finding> check(Settings settings) {
        List<Finding> found = new ArrayList<>();
        settings.labels()
                .forEach(
                        (key, value) -> {
                            String place = Pointers.pointer("labels", key);
                            if (!LabelSyntax.isKey(key)) {
                                found.add(
                                        new SettingsError(
                                                place,
                                                Json.quoted(key) + " cannot be a label's key"));
                            }
                            if (!LabelSyntax.isValue(value)) {
                                found.add(
                                        new SettingsError(
                                                place,
                                                Json.quoted(value) + " cannot be a label's value"));
                            }
                        });
        return found;
    }

    private static Answer judge(Request request, Settings settings) {
        ObjectNode object = request.object();
        boolean judged =
                JUDGED.contains(String.valueOf(request.operation()))
                        && !RequiredLabels.isSubResource(request);
        if (object == null || !judged || settings.labels().isEmpty()) {
            return null;
        }
        return Answer.patch(added(object, settings.labels()));
    }

    private static Patch added(ObjectNode object, Map<String, String> labels) {
        if (!(object.get("metadata") instanceof ObjectNode metadata)) {
            return new Patch().add("/metadata", Map.of("labels", labels));
        }
        JsonNode there = metadata.get("labels");
        if (!(there instanceof ObjectNode)) {
            return new Patch().add("/metadata/labels", labels);
        }
        Patch patch = new Patch();
        labels.forEach(
                (key, value) -> {
                    if (!there.has(key)) {
                        patch.add(Pointers.pointer("metadata", "labels", key), value);
                    }
                });
        return patch;
    }
}
