package dev.admissiongateway.samples;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.google.re2j.Pattern;

import dev.admissiongateway.worker.Answer;
import dev.admissiongateway.worker.Finding;
import dev.admissiongateway.worker.Json;
import dev.admissiongateway.worker.Patch;
import dev.admissiongateway.worker.Policy;
import dev.admissiongateway.worker.Request;
import dev.admissiongateway.worker.SettingsError;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * {@code image-registry} rewrites images of one registry to another, such as a mirror.
 *
 * <p>An image is written {@code [REGISTRY[:PORT]/]PATH[:TAG][@DIGEST]}. Short names are Docker's:
 * the first component is a registry only if it has a {@code .} or a {@code :} or is {@code
 * localhost} (github.com/distribution/reference, normalize.go); otherwise it is {@code docker.io},
 * where a name of one component lies in {@code library/}. So {@code nginx} is {@code
 * docker.io/library/nginx}, and {@code user/app} is {@code docker.io/user/app}. Tag and digest stay
 * as they are.
 *
 * <p>Images that are already in the target registry stay, so that a second run changes nothing. So
 * does an image that an UPDATE does not change: rewriting it would restart a running Pod when a
 * client changes a label.
 */
final class ImageRegistry {
    private static final String DOCKER_HUB = "docker.io";

    /** The reference grammar's other name for the same registry. */
    private static final String OLD_DOCKER_HUB = "index.docker.io";

    private static final Pattern PLACE =
            Pattern.compile("[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*");
    private static final Set<String> JUDGED = Set.of("CREATE", "UPDATE");

    private ImageRegistry() {}

    /**
     * Settings of image-registry.
     *
     * @param source {@code from}: a registry such as {@code docker.io}, or a path in one such as
     *     {@code registry.example.com/team}
     * @param target {@code to}: the new registry, with or without a path
     */
    record Settings(
            @JsonProperty(value = "from", required = true) String source,
            @JsonProperty(value = "to", required = true) String target) {}

    static Policy policy() {
        return Policy.mutating("image-registry")
                .settings(Settings.class, ImageRegistry::check)
                .inputs(PodSpecs.claims(PodSpecs.ALL, "name", "image"))
                .writes(PodSpecs.places(PodSpecs.ALL, "image"))
                .description(
                        "Rewrites images of one registry to another, in Pods and in the templates"
                                + " of what creates Pods.")
                .judge(ImageRegistry::judge);
    }

    /** Reports invalid registries, and settings that never rewrite an image. */
    private static List<Finding> check(Settings settings) {
        List<Finding> found = new ArrayList<>();
        checkPlace("/from", settings.source(), found);
        checkPlace("/to", settings.target(), found);
        boolean sound = found.isEmpty();
        if (first(settings.source()).equals(OLD_DOCKER_HUB)) {
            String message =
                    OLD_DOCKER_HUB + " is another name of " + DOCKER_HUB + ": write " + DOCKER_HUB;
            found.add(new SettingsError("/from", message));
        }
        if (sound && rest(settings.source(), settings.target()) != null) {
            String places =
                    Json.quoted(settings.source()) + " lies in " + Json.quoted(settings.target());
            found.add(
                    new SettingsError(
                            "/from",
                            places + ", where images stay: nothing would ever be rewritten"));
        }
        return found;
    }

    private static void checkPlace(String pointer, String place, List<Finding> found) {
        if (!PLACE.matches(place) || !isRegistry(first(place))) {
            String wanted =
                    "a registry with or without a path, such as docker.io or"
                            + " mirror.example.com/hub";
            found.add(
                    new SettingsError(pointer, "must be " + wanted + ", is " + Json.quoted(place)));
        }
    }

    private static Answer judge(Request request, Settings settings) {
        if (!JUDGED.contains(String.valueOf(request.operation()))) {
            return null;
        }
        Patch patch = new Patch();
        for (Container container : PodSpecs.containers(request, PodSpecs.ALL)) {
            String image = Trees.text(container.value().get("image"));
            boolean touched =
                    container.before() == null
                            || !Trees.isSame(
                                    container.before().get("image"),
                                    container.value().get("image"));
            String moved = image.isEmpty() || !touched ? null : rewritten(image, settings);
            if (moved != null) {
                patch.replace(container.pointer("image"), moved);
            }
        }
        return Answer.patch(patch);
    }

    /** The image in the target registry; null: it stays. */
    static String rewritten(String image, Settings settings) {
        String whole = normalized(image);
        // The image as written is compared too: in the second run, one moved to a target such as
        // docker.io/a normalizes to docker.io/library/a.
        if (rest(whole, settings.target()) != null || rest(image, settings.target()) != null) {
            return null;
        }
        String rest = rest(whole, settings.source());
        return rest == null ? null : settings.target() + rest;
    }

    /** The image with its registry: {@code nginx:1} is {@code docker.io/library/nginx:1}. */
    private static String normalized(String image) {
        int slash = image.indexOf('/');
        String first = slash < 0 ? "" : image.substring(0, slash);
        String path = slash < 0 ? image : image.substring(slash + 1);
        if (slash < 0 || !isRegistry(first)) {
            first = DOCKER_HUB;
            path = image;
        } else if (first.equals(OLD_DOCKER_HUB)) {
            first = DOCKER_HUB;
        }
        if (first.equals(DOCKER_HUB) && !path.contains("/")) {
            path = "library/" + path;
        }
        return first + "/" + path;
    }

    private static String first(String place) {
        int slash = place.indexOf('/');
        return slash < 0 ? place : place.substring(0, slash);
    }

    private static boolean isRegistry(String component) {
        return component.contains(".")
                || component.contains(":")
                || component.equals("localhost")
                || !component.equals(component.toLowerCase(Locale.ROOT));
    }

    /**
     * The rest of a normalized image below a registry or path: a path, a tag or a digest; null: the
     * image is elsewhere.
     */
    private static String rest(String whole, String place) {
        if (!whole.startsWith(place)) {
            return null;
        }
        String rest = whole.substring(place.length());
        String ends =
                place.contains("/")
                        ? "/:@"
                        : "/"; // after a registry without a path, a colon begins the port
        return rest.isEmpty() || ends.indexOf(rest.charAt(0)) >= 0 ? rest : null;
    }
}
