package dev.admissiongateway.worker;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/**
 * The probe policies, which {@code --conformance} adds for the conformance kit. {@code
 * workers/README.md} specifies them for all languages.
 */
final class Probes {
    /** The number of tokens of cancelled sleeps that are kept. */
    private static final int REMEMBERED = 1000;

    private final Set<String> cancelled =
            Collections.synchronizedSet(
                    Collections.newSetFromMap(
                            new LinkedHashMap<>() {
                                private static final long serialVersionUID = 1;

                                @Override
                                protected boolean removeEldestEntry(
                                        Map.Entry<String, Boolean> eldest) {
                                    return size() > REMEMBERED;
                                }
                            }));

    private Probes() {}

    /** All probe policies. */
    static List<Policy> policies() {
        Probes probes = new Probes();
        return List.of(
                Policy.mutating("probe-answer").settings(Arm.class).judge(Probes::answer),
                Policy.validating("probe-misuse").judge(request -> patch()),
                Policy.validating("probe-echo").inputs(Claim.everything()).judge(Probes::echo),
                Policy.validating("probe-sleep")
                        .inputs()
                        .settings(Sleep.class)
                        .judgeLater(probes::sleep),
                Policy.validating("probe-cancelled")
                        .inputs()
                        .settings(Token.class)
                        .judge(probes::wasCancelled),
                Policy.validating("probe-panic").inputs().judge(Probes::panic),
                Policy.validating("probe-flood")
                        .inputs()
                        .settings(Flood.class)
                        .judge((request, flood) -> Answer.deny("x".repeat(flood.bytes()))),
                Policy.validating("probe-settings")
                        .inputs()
                        .settings(Odd.class, Probes::check)
                        .judge(request -> Answer.allow()),
                Policy.mutating("probe-label")
                        .inputs("/object/metadata/labels")
                        .writes("/metadata/labels")
                        .judge(Probes::label),
                Policy.validating("probe-version")
                        .inputs()
                        .version("probe-7")
                        .judge(request -> Answer.allow()));
    }

    record Arm(
            @JsonProperty(required = true) String arm,
            List<String> warnings,
            Map<String, String> auditAnnotations,
            JsonNode cache) {
        Arm {
            warnings = warnings == null ? List.of() : warnings;
            auditAnnotations = auditAnnotations == null ? Map.of() : auditAnnotations;
        }

        CacheHint hint() {
            if (cache == null || cache.isNull()) {
                return null;
            }
            return cache.isNumber()
                    ? CacheHint.atMost(
                            Duration.ofNanos(cache.decimalValue().movePointRight(9).longValue()))
                    : CacheHint.noStore();
        }
    }

    record Sleep(double seconds, @JsonProperty(required = true) String token) {}

    record Token(@JsonProperty(required = true) String token) {}

    record Flood(int bytes) {}

    record Odd(long odd, String name, Boolean deprecated) {}

    private static Answer answer(Request request, Arm settings) {
        Answer plain =
                switch (settings.arm()) {
                    case "allow" -> Answer.allow();
                    case "nothing" -> null;
                    case "deny" -> denied();
                    case "deny-plainly" -> Answer.deny("denied");
                    case "patch" -> patch();
                    case "merge" ->
                            Answer.merge(
                                    metadata(Map.of("annotations", Map.of("probe", "merged"))));
                    case "mutated" -> mutated(request);
                    case "fail" -> Answer.fail("failed by the probe");
                    default -> Answer.fail("the probe has no arm " + Json.quoted(settings.arm()));
                };
        return decorated(plain, settings);
    }

    private static Answer decorated(Answer plain, Arm settings) {
        Answer made = plain;
        if (plain instanceof Allow allow) {
            Allow all = allow.withWarnings(settings.warnings()).withCache(settings.hint());
            for (Map.Entry<String, String> annotation : settings.auditAnnotations().entrySet()) {
                all = all.withAuditAnnotation(annotation.getKey(), annotation.getValue());
            }
            made = all;
        } else if (plain instanceof Deny deny) {
            Deny all = deny.withWarnings(settings.warnings()).withCache(settings.hint());
            for (Map.Entry<String, String> annotation : settings.auditAnnotations().entrySet()) {
                all = all.withAuditAnnotation(annotation.getKey(), annotation.getValue());
            }
            made = all;
        }
        return made;
    }

    private static Answer denied() {
        return Answer.deny("denied by the probe")
                .withCode(409)
                .withCauses(new Cause("spec.probe", "a cause"))
                .withDetails(new Details("probe", "probes.example.com", "Probe", "probe-uid", 7));
    }

    private static Answer patch() {
        return Answer.patch(new Patch().add("/metadata/annotations", Map.of("probe", "patched")));
    }

    private static Map<String, Object> metadata(Object content) {
        return Map.of("metadata", content);
    }

    private static Answer mutated(Request request) {
        ObjectNode object = request.object();
        if (object == null) {
            return Answer.allow();
        }
        object.withObjectProperty("metadata")
                .withObjectProperty("annotations")
                .put("probe", "mutated");
        return Answer.mutated(object);
    }

    private static Answer echo(Request request) {
        return Answer.deny(new String(request.raw(), StandardCharsets.UTF_8))
                .withCode(422)
                .withAuditAnnotation("uid", request.uid())
                .withAuditAnnotation("traceparent", Tracing.current());
    }

    private CompletionStage<Answer> sleep(Request request, Sleep settings) {
        CompletableFuture<Answer> answer = new CompletableFuture<>();
        answer.completeOnTimeout(
                Answer.allow(), (long) (settings.seconds() * 1e9), TimeUnit.NANOSECONDS);
        request.cancelled()
                .thenRun(
                        () -> {
                            if (answer.cancel(true)) {
                                cancelled.add(settings.token());
                            }
                        });
        return answer;
    }

    private Answer wasCancelled(Request request, Token settings) {
        String known = Boolean.toString(cancelled.contains(settings.token()));
        return Answer.allow().withAuditAnnotation("cancelled", known);
    }

    private static Answer panic(Request request) {
        throw new IllegalStateException("a secret that must not travel");
    }

    private static List<Finding> check(Odd settings) {
        List<Finding> found = new ArrayList<>();
        if (settings.odd() % 2 == 0) {
            found.add(new SettingsError("/odd", "must be odd, is " + settings.odd()));
        }
        if (settings.deprecated() != null) {
            found.add(new SettingsWarning("deprecated goes away"));
        }
        return found;
    }

    private static Answer label(Request request) {
        ObjectNode object = request.object();
        if (object == null) {
            return null;
        }
        JsonNode metadata = object.get("metadata");
        if (metadata == null || !metadata.isObject()) {
            return Answer.patch(
                    new Patch().add("/metadata", Map.of("labels", Map.of("probe", "yes"))));
        }
        JsonNode labels = metadata.get("labels");
        if (labels == null || !labels.isObject()) {
            return Answer.patch(new Patch().add("/metadata/labels", Map.of("probe", "yes")));
        }
        return labels.has("probe")
                ? null
                : Answer.patch(new Patch().add("/metadata/labels/probe", "yes"));
    }
}
