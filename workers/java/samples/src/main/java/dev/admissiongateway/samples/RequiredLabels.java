package dev.admissiongateway.samples;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import dev.admissiongateway.worker.Answer;
import dev.admissiongateway.worker.Cause;
import dev.admissiongateway.worker.Finding;
import dev.admissiongateway.worker.Json;
import dev.admissiongateway.worker.Pointers;
import dev.admissiongateway.worker.Policy;
import dev.admissiongateway.worker.Request;
import dev.admissiongateway.worker.SettingsError;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * {@code required-labels} denies objects without the required labels, or with values that do not
 * match.
 *
 * <p>One denial reports all labels. The policy ignores DELETE and CONNECT, which have no object,
 * and subresources: a Scale has no labels of its own, and a client cannot label a Node through its
 * status.
 */
final class RequiredLabels {
    private static final Set<String> JUDGED = Set.of("CREATE", "UPDATE");

    private RequiredLabels() {}

    /**
     * Settings of required-labels.
     *
     * @param labels for each required key a regular expression (RE2's) that the whole value must
     *     match, or {@code ""} for any value
     */
    record Settings(@JsonProperty(required = true) Map<String, String> labels) {}

    static Policy policy() {
        return Policy.validating("required-labels")
                .settings(Settings.class, RequiredLabels::check)
                .inputs("/object/metadata/labels")
                .description(
                        "Denies objects that lack a required label, or whose label does not match.")
                .judge(RequiredLabels::judge);
    }

    /** Reports invalid label keys and regular expressions. */
    private static List<Finding> check(Settings settings) {
        List<Finding> found = new ArrayList<>();
        settings.labels()
                .forEach(
                        (key, pattern) -> {
                            String place = Pointers.pointer("labels", key);
                            if (!LabelSyntax.isKey(key)) {
                                found.add(
                                        new SettingsError(
                                                place,
                                                Json.quoted(key) + " cannot be a label's key"));
                            }
                            if (!Patterns.isPattern(pattern)) {
                                String message =
                                        Json.quoted(pattern)
                                                + " is no regular expression (RE2 syntax)";
                                found.add(new SettingsError(place, message));
                            }
                        });
        return found;
    }

    private static Answer judge(Request request, Settings settings) {
        ObjectNode object = request.object();
        if (object == null
                || !JUDGED.contains(String.valueOf(request.operation()))
                || isSubResource(request)) {
            return null;
        }
        ObjectNode labels = Trees.object(object, List.of("metadata", "labels"));
        List<Cause> causes = new ArrayList<>();
        settings.labels().forEach((key, pattern) -> judge(key, pattern, labels, causes));
        if (causes.isEmpty()) {
            return null;
        }
        String message = causes.stream().map(Cause::message).collect(Collectors.joining("; "));
        return Answer.deny(message).withCauses(causes);
    }

    private static void judge(String key, String pattern, ObjectNode labels, List<Cause> causes) {
        String field = "metadata.labels[" + key + "]";
        String label = "label " + Json.quoted(key);
        JsonNode value = labels.get(key);
        if (value == null) {
            String wanted =
                    pattern.isEmpty() ? "" : " with a value that matches " + Json.quoted(pattern);
            causes.add(new Cause(field, label + " is required" + wanted, "FieldValueRequired"));
        } else if (!value.isTextual()
                || !(pattern.isEmpty() || Patterns.matches(pattern, value.textValue()))) {
            String message =
                    label + " is " + Json.quoted(value) + " and must match " + Json.quoted(pattern);
            causes.add(new Cause(field, message));
        }
    }

    static boolean isSubResource(Request request) {
        return request.subResource() != null && !request.subResource().isEmpty();
    }
}
