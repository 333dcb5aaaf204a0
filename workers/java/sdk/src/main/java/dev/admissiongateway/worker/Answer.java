package dev.admissiongateway.worker;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * What a policy answers: allow, deny, or that it could not judge. There is no fourth.
 *
 * <p>An error is not a verdict: {@link #fail} says that there is none, and the operator's
 * failurePolicy decides what becomes of the request; a denial stands whatever the failurePolicy.
 * The values are immutable and cannot be built wrong: an answer that means nothing throws {@link
 * InvalidAnswerException} where it is made, which makes the policy's outcome a failure. A policy
 * that returns {@code null} allows.
 */
public sealed interface Answer permits Allow, Deny, Failure {
    /**
     * Lets the request pass as it is.
     *
     * @return to which warnings, audit annotations and a cache hint can be added
     */
    static Allow allow() {
        return Allow.UNCHANGED;
    }

    /**
     * Lets the request not pass: 403 Forbidden, unless {@link Deny#withCode} says otherwise.
     *
     * @param message for the person who was denied: what is wrong and what to do
     * @throws InvalidAnswerException the message is null or no Unicode text
     */
    static Deny deny(String message) {
        return Deny.forbidden(message);
    }

    /**
     * Lets the request pass changed by a JSON Patch (RFC 6902). Mutating policies only.
     *
     * @param operations paths are over the object; no operation leaves the object as it is
     * @throws InvalidAnswerException a value that cannot be written as JSON
     */
    static Allow patch(Patch operations) {
        return Allow.changed(Change.jsonPatch(operations));
    }

    /**
     * Lets the request pass changed by a JSON Merge Patch (RFC 7386), where null removes. Mutating
     * policies only.
     *
     * @param changes a Map, a JsonNode or what else Jackson writes as an object; arrays are
     *     replaced whole
     * @throws InvalidAnswerException not a JSON object, or it cannot be written as JSON
     */
    static Allow merge(Object changes) {
        return Allow.changed(Change.mergePatch(changes));
    }

    /**
     * Lets the request pass with the object as given, which the gateway compares with the one it
     * sent. Mutating policies only.
     *
     * @param whole the object as it should be: {@link Request#object()}, changed, or what else
     *     Jackson writes as an object. A {@link JsonNode} of the request's keeps each number as it
     *     was written
     * @throws InvalidAnswerException not a JSON object, or it cannot be written as JSON
     */
    static Allow mutated(Object whole) {
        return Allow.changed(Change.wholeObject(whole));
    }

    /**
     * Says that the policy could not judge; the operator's failurePolicy decides.
     *
     * @param message for the operator, what went wrong in one sentence. It reaches the user under
     *     failurePolicy Fail
     * @throws InvalidAnswerException the message is null or no Unicode text
     */
    static Failure fail(String message) {
        return new Failure(message);
    }
}
