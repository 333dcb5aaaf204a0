package dev.admissiongateway.worker;

/**
 * A metav1.GroupVersionKind. Absent members are {@code ""}.
 *
 * @param group the core group is {@code ""}
 * @param version such as {@code v1}
 * @param kind such as {@code Pod}
 */
public record GroupVersionKind(String group, String version, String kind) {}
