package dev.admissiongateway.samples;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import dev.admissiongateway.worker.GroupVersionKind;
import dev.admissiongateway.worker.Pointers;
import dev.admissiongateway.worker.Request;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Finds PodSpecs: in Pods, and in the templates of objects that create Pods.
 *
 * <p>{@link Container#before} shows whether an UPDATE changes a container.
 */
final class PodSpecs {
    static final List<String> RUNNING = List.of("initContainers", "containers");
    static final List<String> ALL = List.of("initContainers", "containers", "ephemeralContainers");

    private static final List<String> POD = List.of("spec");
    private static final List<String> JOB_TEMPLATE =
            List.of("spec", "jobTemplate", "spec", "template", "spec");
    private static final List<String> TEMPLATE = List.of("spec", "template", "spec");
    private static final List<String> BARE_TEMPLATE = List.of("template", "spec");

    /** All paths to a PodSpec, in the order in which claims name them. */
    static final List<List<String>> PATHS = List.of(POD, JOB_TEMPLATE, TEMPLATE, BARE_TEMPLATE);

    private record GroupKind(String group, String kind) {}

    /**
     * The path to the PodSpec in each built-in kind that has one. In the subresources of a Pod that
     * change containers ({@code ephemeralcontainers}, {@code resize}) the object is the Pod.
     */
    private static final Map<GroupKind, List<String>> BY_KIND =
            Map.of(
                    new GroupKind("", "Pod"), POD,
                    new GroupKind("", "PodTemplate"), BARE_TEMPLATE,
                    new GroupKind("", "ReplicationController"), TEMPLATE,
                    new GroupKind("apps", "DaemonSet"), TEMPLATE,
                    new GroupKind("apps", "Deployment"), TEMPLATE,
                    new GroupKind("apps", "ReplicaSet"), TEMPLATE,
                    new GroupKind("apps", "StatefulSet"), TEMPLATE,
                    new GroupKind("batch", "Job"), TEMPLATE,
                    new GroupKind("batch", "CronJob"), JOB_TEMPLATE);

    private PodSpecs() {}

    /** The path of the PodSpec in the request's object; null: its kind has none. */
    static List<String> pathOf(Request request) {
        GroupVersionKind kind = request.kind();
        return kind == null ? null : BY_KIND.get(new GroupKind(kind.group(), kind.kind()));
    }

    /** The containers in these lists of the PodSpec. */
    static List<Container> containers(Request request, List<String> lists) {
        List<Container> found = new ArrayList<>();
        List<String> path = pathOf(request);
        if (path == null) {
            return found;
        }
        ObjectNode now = Trees.object(request.object(), path);
        ObjectNode old = Trees.object(request.oldObject(), path);
        for (String name : lists) {
            Map<String, ObjectNode> before = byName(old.get(name));
            List<String> place = new ArrayList<>(path);
            place.add(name);
            JsonNode list = now.get(name);
            for (int index = 0; list != null && list.isArray() && index < list.size(); index++) {
                if (list.get(index) instanceof ObjectNode container) {
                    ObjectNode stored = before.get(Trees.text(container.get("name")));
                    found.add(new Container(place, index, container, stored));
                }
            }
        }
        return found;
    }

    /** The inputs for these members of containers, in object and oldObject. */
    static List<String> claims(List<String> lists, String... members) {
        List<String> claims = new ArrayList<>();
        for (String whole : List.of("object", "oldObject")) {
            for (List<String> path : PATHS) {
                for (String name : lists) {
                    for (String member : members) {
                        String place = Pointers.pointer(whole) + Pointers.pointer(path.toArray());
                        claims.add(
                                place
                                        + Pointers.pointer(name, "*")
                                        + Pointers.pointer((Object[]) member.split("/")));
                    }
                }
            }
        }
        return claims;
    }

    /** The writes for this member of containers. */
    static List<String> places(List<String> lists, String member) {
        List<String> places = new ArrayList<>();
        for (List<String> path : PATHS) {
            for (String name : lists) {
                places.add(Pointers.pointer(path.toArray()) + Pointers.pointer(name, "*", member));
            }
        }
        return places;
    }

    private static Map<String, ObjectNode> byName(JsonNode list) {
        Map<String, ObjectNode> found = new HashMap<>();
        if (list != null && list.isArray()) {
            for (JsonNode container : list) {
                if (container instanceof ObjectNode node) {
                    found.put(Trees.text(node.get("name")), node);
                }
            }
        }
        return found;
    }
}
