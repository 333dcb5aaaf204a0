package dev.admissiongateway.worker;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;

import java.util.List;
import java.util.Map;

/**
 * An authentication.k8s.io/v1 UserInfo: the client of the API server. A field that is empty or not
 * granted is null.
 *
 * @param username such as {@code system:serviceaccount:kube-system:deployment-controller}
 * @param uid of the user
 * @param groups such as {@code system:masters}
 * @param extra what the authenticator added
 */
@JsonIgnoreProperties(ignoreUnknown = true)
public record UserInfo(
        String username, String uid, List<String> groups, Map<String, List<String>> extra) {}
