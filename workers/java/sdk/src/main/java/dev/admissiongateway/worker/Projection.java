package dev.admissiongateway.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Projects an AdmissionRequest to the fields that a policy claims, as the gateway does.
 *
 * <ul>
 *   <li>{@code kind}, {@code resource}, {@code subResource}, {@code operation} and {@code dryRun}
 *       always; {@code uid} never; {@code namespaceObject} only if it is claimed.
 *   <li>A claimed value appears if it exists, and so does every object or array on the path to it.
 *       The order stays.
 *   <li>Arrays keep length and positions: an element that no claim reaches is {@code {}}, {@code
 *       []} or null, by its own kind.
 *   <li>Where claims overlap, the wider wins.
 * </ul>
 *
 * <p>This code serves tests, so that a policy that reads more than it claims fails before it is
 * deployed.
 */
final class Projection {
    /** Members of every document. */
    private static final List<String> ALWAYS =
            List.of("kind", "resource", "subResource", "operation", "dryRun");

    /**
     * Not part of "everything": the uid is never sent, and the Namespace is not a member of the
     * request.
     */
    private static final Set<String> NOT_IN_EVERYTHING = Set.of("uid", "namespaceObject");

    private Projection() {}

    /**
     * The document for a policy with these inputs.
     *
     * @param request an AdmissionRequest
     * @param inputs of the policy; null (absent) is everything
     */
    static ObjectNode document(ObjectNode request, Claim inputs) {
        if (inputs == null || inputs.isEverything()) {
            return request.deepCopy().without(NOT_IN_EVERYTHING);
        }
        List<List<String>> paths = new ArrayList<>();
        ALWAYS.forEach(name -> paths.add(List.of(name)));
        inputs.pointers().forEach(place -> paths.add(Pointers.tokens(place)));
        return members(request, paths);
    }

    private static ObjectNode members(JsonNode value, List<List<String>> paths) {
        ObjectNode found = JsonNodeFactory.instance.objectNode();
        value.properties()
                .forEach(
                        entry -> {
                            List<List<String>> below = below(paths, entry.getKey());
                            boolean reached = below.contains(List.<String>of());
                            if (reached
                                    || (!below.isEmpty() && entry.getValue().isContainerNode())) {
                                found.set(entry.getKey(), cut(entry.getValue(), below));
                            }
                        });
        return found;
    }

    /** The part of a value that the paths reach; an empty value of its kind if they reach none. */
    private static JsonNode cut(JsonNode value, List<List<String>> paths) {
        if (paths.contains(List.<String>of())) {
            return value;
        }
        if (!value.isContainerNode()) {
            return NullNode.instance;
        }
        if (value.isObject()) {
            return members(value, paths);
        }
        ArrayNode elements = JsonNodeFactory.instance.arrayNode();
        if (!paths.isEmpty()) {
            for (int index = 0; index < value.size(); index++) {
                elements.add(cut(value.get(index), below(paths, Integer.toString(index))));
            }
        }
        return elements;
    }

    /** The rest of the paths that go through this member or element. */
    private static List<List<String>> below(List<List<String>> paths, String name) {
        return paths.stream()
                .filter(
                        path ->
                                !path.isEmpty()
                                        && (path.get(0).equals(name) || path.get(0).equals("*")))
                .map(path -> path.subList(1, path.size()))
                .toList();
    }
}
