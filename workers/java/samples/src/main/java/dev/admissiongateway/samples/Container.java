package dev.admissiongateway.samples;

import com.fasterxml.jackson.databind.node.ObjectNode;

import dev.admissiongateway.worker.Pointers;

import java.util.List;

/**
 * One container in an object.
 *
 * @param list the place of the list that holds it, as tokens: {@code [spec, containers]}
 * @param index its place in that list
 * @param value the container as it would be stored
 * @param before the container of that name in the same list as it is stored; null: there is none
 */
record Container(List<String> list, int index, ObjectNode value, ObjectNode before) {
    /** Its name, as far as there is one. */
    String name() {
        return Trees.text(value.get("name"));
    }

    /** Its place in Kubernetes' notation: {@code spec.containers[0]}. */
    String field() {
        return String.join(".", list) + "[" + index + "]";
    }

    /** A place below it, as a JSON Pointer over the object. */
    String pointer(Object... below) {
        return Pointers.pointer(list.toArray()) + Pointers.pointer(index) + Pointers.pointer(below);
    }
}
