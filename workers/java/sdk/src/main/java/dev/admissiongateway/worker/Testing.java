package dev.admissiongateway.worker;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;

import io.grpc.Context;

import java.util.NoSuchElementException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;

/**
 * Calls a policy without a server, for tests.
 *
 * <pre>{@code
 * @Test
 * void aPodWithoutATeamIsDenied() throws Exception {
 *     Answer answer = Testing.review(WORKER, "required-label",
 *         """
 *         {"operation": "CREATE", "object": {"metadata": {}}}""", Map.of("key", "team"));
 *     assertEquals(Answer.deny("label \"team\" is required"), answer);
 * }
 * }</pre>
 *
 * <p>The policy gets the document that the gateway would send: only its inputs. So a policy that
 * reads a field that it does not claim fails its tests, not in production.
 */
public final class Testing {
    private Testing() {}

    /** Like {@link #review(Worker, String, Object, Object)}, without settings. */
    public static Answer review(Worker worker, String policy, Object request) throws Exception {
        return review(worker, policy, request, "{}");
    }

    /**
     * Calls a policy with a request, and waits for the answer.
     *
     * @param worker that has the policy
     * @param policy its name
     * @param request an AdmissionRequest, a part of it, or an AdmissionReview: JSON text, a
     *     JsonNode, a Map, or another value that Jackson writes
     * @param settings as the operator writes them, in the same forms
     * @return the answer, never null; {@link Change#value} is a patch
     * @throws NoSuchElementException the worker has no such policy
     * @throws InvalidSettingsException all errors in the settings
     * @throws InvalidAnswerException the answer is invalid in its phase
     * @throws Exception of the policy
     */
    public static Answer review(Worker worker, String policy, Object request, Object settings)
            throws Exception {
        Policy registered = worker.policies().get(policy);
        if (registered == null) {
            String names =
                    worker.policies().isEmpty()
                            ? "none"
                            : String.join(", ", worker.policies().keySet());
            throw new NoSuchElementException(
                    "worker "
                            + worker.name()
                            + " holds no policy "
                            + Json.quoted(policy)
                            + "; it holds: "
                            + names);
        }
        ObjectNode given = object(request, "the request");
        ObjectNode whole = given.get("request") instanceof ObjectNode inside ? inside : given;
        ByteString document = Json.write(Projection.document(whole, registered.inputs()));
        Object converted =
                registered.settings().read(Json.write(object(settings, "the settings"))).settings();
        Request made = new Request(document, whole.path("uid").asText(""), Context.current());
        return Outcomes.accepted(awaited(registered.invoke(made, converted)), registered.phase());
    }

    private static Object awaited(Object answer) throws Exception {
        if (!(answer instanceof CompletionStage<?> stage)) {
            return answer;
        }
        try {
            return stage.toCompletableFuture().get();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw error;
        }
    }

    private static ObjectNode object(Object value, String what) throws JacksonException {
        JsonNode read =
                value instanceof String text
                        ? Json.read(ByteString.copyFromUtf8(text))
                        : Json.node(value);
        if (!(read instanceof ObjectNode node)) {
            throw new IllegalArgumentException(
                    what + " must be a JSON object, is " + Json.typeOf(read));
        }
        return node;
    }
}
