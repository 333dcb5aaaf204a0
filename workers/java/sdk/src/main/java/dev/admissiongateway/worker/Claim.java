package dev.admissiongateway.worker;

import java.util.List;
import java.util.Set;

/**
 * Which places a policy reads or writes: everything, or exactly these. Not to say it at all is a
 * third thing in the contract.
 *
 * <p>A claim can only narrow what the operator granted. A policy that does not say is sent whatever
 * was granted; "nothing" is an empty list. What the gateway would refuse is refused here, where the
 * author sees it.
 */
public final class Claim {
    /**
     * What an input can begin with: the members of an AdmissionRequest (admission.k8s.io/v1) but
     * {@code uid}, and the Namespace, which the gateway adds for whoever names it.
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

    /** Members of an object that nobody changes: another kind of object is no changed object. */
    private static final Set<String> KIND = Set.of("apiVersion", "kind");

    private static final Claim EVERYTHING = new Claim(null);

    private final List<String> pointers;

    private Claim(List<String> pointers) {
        this.pointers = pointers;
    }

    /** Every place there is. */
    public static Claim everything() {
        return EVERYTHING;
    }

    /** No place: the operation and the kind are enough. */
    public static Claim nothing() {
        return new Claim(List.of());
    }

    /** Exactly these places, as JSON Pointers; a segment {@code *} is every element or member. */
    public static Claim of(String... pointers) {
        return new Claim(Values.list(pointers));
    }

    /** Exactly these places, as JSON Pointers; a segment {@code *} is every element or member. */
    public static Claim of(List<String> pointers) {
        return new Claim(pointers);
    }

    boolean isEverything() {
        return pointers == null;
    }

    /** The pointers; null where the claim is everything. */
    List<String> pointers() {
        return pointers;
    }

    /**
     * The claim of what a policy reads, checked.
     *
     * @param claim null: not said
     * @param what who claims it, for the error
     * @throws IllegalArgumentException something that is no JSON Pointer, or that no
     *     AdmissionRequest has, or its uid
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
     * The claim of what a policy changes, checked.
     *
     * @param claim null: not said
     * @param what who claims it, for the error
     * @throws IllegalArgumentException something that is no JSON Pointer, or what kind of object it
     *     is
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
