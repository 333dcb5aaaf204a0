package dev.admissiongateway.samples;

import com.fasterxml.jackson.databind.node.ObjectNode;

import dev.admissiongateway.worker.Pointers;

import java.util.List;

/**
 * A container in an object.
 *
 * @param list the path of its list: {@code [spec, containers]}
 * @param index in that list
 * @param value the new container
 * @param before the stored container of the same name and list; null: none
 */
record Container(List<String> list, int index, ObjectNode value, ObjectNode before) {
    /** Its name, or {@code ""}. */
    String name() {
        return Trees.text(value.get("name"));
    }

    /** Its path in Kubernetes' notation: {@code spec.containers[0]}. */
    String field() {
        return String.join(".", list) + "[" + index + "]";
    }

    /** The JSON Pointer of a value in it. */
    String pointer(Object... below) {
        return Pointers.pointer(list.toArray()) + Pointers.pointer(index) + Pointers.pointer(below);
    }
}
