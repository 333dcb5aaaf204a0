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
 * Tests a policy without a server: a request and settings in, its answer out.
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
 * <p>The policy is sent what the gateway would send it: no more than it claims as its inputs. So a
 * policy that reads what it does not claim fails its tests, and not its first day in a cluster.
 */
public final class Testing {
    private Testing() {}

    /** As {@link #review(Worker, String, Object, Object)}, without settings. */
    public static Answer review(Worker worker, String policy, Object request) throws Exception {
        return review(worker, policy, request, "{}");
    }

    /**
     * What a policy answers to a request. Waits for a policy that answers later.
     *
     * @param worker which holds the policy
     * @param policy its name
     * @param request an AdmissionRequest in its JSON shape, or the parts of it that matter; or a
     *     whole AdmissionReview: JSON text, a JsonNode, a Map, or what else Jackson writes
     * @param settings as the operator would write them, in the same forms
     * @return the answer, never null; {@link Change#value} is a patch as it was given
     * @throws NoSuchElementException the worker holds no such policy
     * @throws InvalidSettingsException all that is wrong with the settings
     * @throws InvalidAnswerException the policy returned what is no answer in its phase
     * @throws Exception whatever the policy throws
     */
    public static Answer review(Worker worker, String policy, Object request, Object settings)
            throws Exception {
        Policy held = worker.policies().get(policy);
        if (held == null) {
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
        ByteString document = Json.write(Projection.document(whole, held.inputs()));
        Object converted =
                held.settings().read(Json.write(object(settings, "the settings"))).settings();
        Request made = new Request(document, whole.path("uid").asText(""), Context.current());
        return Outcomes.accepted(awaited(held.put(made, converted)), held.phase());
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
