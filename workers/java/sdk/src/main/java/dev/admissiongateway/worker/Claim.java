package dev.admissiongateway.worker;

import java.util.List;
import java.util.Set;

/**
 * Which fields a policy reads or writes: everything, or a list of pointers. In the contract an
 * absent claim differs from both.
 *
 * <p>A claim can only narrow what the operator granted. A policy without a claim gets all that is
 * granted; "nothing" is an empty list. Claims that the gateway would reject are rejected here,
 * where the author sees it.
 */
public final class Claim {
    /**
     * The first segments of inputs: the members of an AdmissionRequest (admission.k8s.io/v1) except
     * {@code uid}, and the Namespace, which the gateway adds for policies that claim it.
     */
    private static final List<String> MEMBERS =
            List.of(
                    "kind",
                    "resource",
                    "subResource",
                    "requestKind",
                    "requestResource",
                    "requestSubResource",
                    "name",
                    "namespace",
                    "operation",
                    "userInfo",
                    "object",
                    "oldObject",
                    "dryRun",
                    "options",
                    "namespaceObject");

    /** Members of an object that a policy cannot change: its kind. */
    private static final Set<String> KIND = Set.of("apiVersion", "kind");

    private static final Claim EVERYTHING = new Claim(null);

    private final List<String> pointers;

    private Claim(List<String> pointers) {
        this.pointers = pointers;
    }

    /** All fields. */
    public static Claim everything() {
        return EVERYTHING;
    }

    /** No fields: the policy needs only the operation and the kind. */
    public static Claim nothing() {
        return new Claim(List.of());
    }

    /** These fields, as JSON Pointers; a segment {@code *} is every element or member. */
    public static Claim of(String... pointers) {
        return new Claim(Values.list(pointers));
    }

    /** These fields, as JSON Pointers; a segment {@code *} is every element or member. */
    public static Claim of(List<String> pointers) {
        return new Claim(pointers);
    }

    boolean isEverything() {
        return pointers == null;
    }

    /** The pointers; null: everything. */
    List<String> pointers() {
        return pointers;
    }

    /**
     * Validates the inputs of a policy.
     *
     * @param claim null: absent
     * @param what begins the error message
     * @throws IllegalArgumentException an invalid JSON Pointer, or one of the uid or a field that
     *     an AdmissionRequest does not have
     */
    static Claim inputs(Claim claim, String what) {
        if (claim == null || claim.isEverything()) {
            return claim;
        }
        List<String> places = Pointers.checked(claim.pointers, what);
        for (String place : places) {
            String first = Pointers.tokens(place).get(0);
            if (first.equals("uid")) {
                throw new IllegalArgumentException(
                        what
                                + ": no verdict may depend on \"/uid\", which is not part of a"
                                + " document");
            }
            if (!MEMBERS.contains(first)) {
                throw new IllegalArgumentException(
                        what
                                + ": "
                                + Json.quoted(place)
                                + " is no place in an AdmissionRequest, which has "
                                + String.join(", ", MEMBERS));
            }
        }
        return new Claim(places);
    }

    /**
     * Validates the writes of a policy.
     *
     * @param claim null: absent
     * @param what begins the error message
     * @throws IllegalArgumentException an invalid JSON Pointer, or one of the kind of the object
     */
    static Claim writes(Claim claim, String what) {
        if (claim == null || claim.isEverything()) {
            return claim;
        }
        List<String> places = Pointers.checked(claim.pointers, what);
        for (String place : places) {
            if (KIND.contains(Pointers.tokens(place).get(0)) || place.equals("/*")) {
                throw new IllegalArgumentException(
                        what
                                + ": "
                                + Json.quoted(place)
                                + " is or holds the object's kind, which cannot be changed; name"
                                + " other members");
            }
        }
        return new Claim(places);
    }
}
