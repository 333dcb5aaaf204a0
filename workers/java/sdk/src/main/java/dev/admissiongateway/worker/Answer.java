package dev.admissiongateway.worker;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * The answer of a policy: allow, deny, or failure.
 *
 * <p>An error is not a verdict. After {@link #fail} the operator's failurePolicy decides about the
 * request; it never overrides a denial. Answers are immutable and validated: the creation of an
 * invalid answer throws {@link InvalidAnswerException}, so that the outcome of the call is a
 * failure. {@code null} means {@link #allow}.
 */
public sealed interface Answer permits Allow, Deny, Failure {
    /**
     * Admits the request unchanged.
     *
     * @return an answer with methods that add warnings, audit annotations and a cache hint
     */
    static Allow allow() {
        return Allow.UNCHANGED;
    }

    /**
     * Rejects the request, with 403 Forbidden unless {@link Deny#withCode} sets another code.
     *
     * @param message for the user: what is wrong and what to do
     * @throws InvalidAnswerException the message is null or no Unicode text
     */
    static Deny deny(String message) {
        return Deny.forbidden(message);
    }

    /**
     * Admits the request and changes the object by a JSON Patch (RFC 6902). Mutating policies only.
     *
     * @param operations their paths start at the object; no operations: no change
     * @throws InvalidAnswerException a value cannot be encoded as JSON
     */
    static Allow patch(Patch operations) {
        return Allow.changed(Change.jsonPatch(operations));
    }

    /**
     * Admits the request and changes the object by a JSON Merge Patch (RFC 7386), in which null
     * removes a member. Mutating policies only.
     *
     * @param changes a Map, a JsonNode or another value that Jackson encodes as an object; arrays
     *     are replaced whole
     * @throws InvalidAnswerException not a JSON object, or it cannot be written as JSON
     */
    static Allow merge(Object changes) {
        return Allow.changed(Change.mergePatch(changes));
    }

    /**
     * Admits the request with this object, which the gateway compares with the one that it sent.
     * Mutating policies only.
     *
     * @param whole the complete changed object: {@link Request#object()} after changes, or another
     *     value that Jackson encodes as an object. In a {@link JsonNode} of the request numbers
     *     keep their text
     * @throws InvalidAnswerException not a JSON object, or it cannot be written as JSON
     */
    static Allow mutated(Object whole) {
        return Allow.changed(Change.wholeObject(whole));
    }

    /**
     * Reports that the policy has no verdict; the operator's failurePolicy decides.
     *
     * @param message for the operator: what failed, in one sentence. Under failurePolicy Fail the
     *     user sees it too
     * @throws InvalidAnswerException the message is null or no Unicode text
     */
    static Failure fail(String message) {
        return new Failure(message);
    }
}
