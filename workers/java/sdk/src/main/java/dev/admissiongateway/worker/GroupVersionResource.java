package dev.admissiongateway.worker;

/**
 * A metav1.GroupVersionResource. Absent members are {@code ""}.
 *
 * @param group the core group is {@code ""}
 * @param version such as {@code v1}
 * @param resource such as {@code pods}
 */
public record GroupVersionResource(String group, String version, String resource) {}
