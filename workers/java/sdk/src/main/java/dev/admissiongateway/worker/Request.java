package dev.admissiongateway.worker;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;

import io.grpc.Context;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;

/**
 * The document of a policy call: a part of a Kubernetes AdmissionRequest.
 *
 * <p>A document holds the fields that the operator granted and the policy claimed, so every member
 * may be absent. An absent member is null. (Kubernetes omits {@code name}, {@code namespace} and
 * {@code subResource} if they are empty, and sends {@code null} for an {@code object} that does not
 * exist, as on DELETE.) A policy may change and return the values. Every method that reads a member
 * throws {@link InvalidDocumentException} if the member has another type than in an
 * AdmissionRequest; if a policy does not catch it, the call is a failure.
 */
public final class Request {
    /** Java types have the members of their version of Kubernetes, and a cluster may be newer. */
    private static final ObjectReader TYPED =
            Json.MAPPER.reader().without(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

    private final ByteString raw;
    private final String uid;
    private final Context context;
    private final ObjectNode document;

    /**
     * Reads a document.
     *
     * @param raw the document's JSON text
     * @param uid the AdmissionRequest's uid, for logs
     * @param context is cancelled when the gateway no longer waits for the answer
     * @throws InvalidDocumentException the text is not one JSON object
     */
    Request(ByteString raw, String uid, Context context) {
        this.raw = raw;
        this.uid = uid;
        this.context = context;
        try {
            if (!(Json.read(raw) instanceof ObjectNode read)) {
                throw new InvalidDocumentException("the document is not one JSON object");
            }
            this.document = read;
        } catch (JacksonException error) {
            throw new InvalidDocumentException(
                    "the document is not one JSON object: " + Json.positionOf(error));
        }
    }

    /** The whole document, in the form of an AdmissionRequest; unknown members included. */
    public ObjectNode document() {
        return document;
    }

    /** The document's JSON text, as received. */
    public byte[] raw() {
        return raw.toByteArray();
    }

    /**
     * The uid of the AdmissionRequest, for logs. A verdict must not depend on it: it differs in
     * each request.
     */
    public String uid() {
        return uid;
    }

    /** The kind of {@code object}; for a subresource its own, such as Scale or Eviction. */
    public GroupVersionKind kind() {
        return groupVersionKind("kind");
    }

    /** The requested resource, in the version that the rules matched. */
    public GroupVersionResource resource() {
        return groupVersionResource("resource");
    }

    /**
     * The subresource, such as {@code status} or {@code ephemeralcontainers}; null: the resource
     * itself.
     */
    public String subResource() {
        return text(document, "subResource", "subResource");
    }

    /**
     * The kind in the client's original request (differs from {@code kind} under matchPolicy
     * Equivalent).
     */
    public GroupVersionKind requestKind() {
        return groupVersionKind("requestKind");
    }

    /** The resource in the client's original request. */
    public GroupVersionResource requestResource() {
        return groupVersionResource("requestResource");
    }

    /** The subresource in the client's original request. */
    public String requestSubResource() {
        return text(document, "requestSubResource", "requestSubResource");
    }

    /** {@code CREATE}, {@code UPDATE}, {@code DELETE} or {@code CONNECT}. */
    public String operation() {
        return text(document, "operation", "operation");
    }

    /**
     * The name of the object. Null if the API server has not generated it yet (generateName,
     * mutating phase), and on deletecollection.
     */
    public String name() {
        return text(document, "name", "name");
    }

    /** The namespace; null for cluster-scoped objects; for a Namespace its own name. */
    public String namespace() {
        return text(document, "namespace", "namespace");
    }

    /** The client of the API server. */
    public UserInfo userInfo() {
        return typed("userInfo", UserInfo.class);
    }

    /** Whether the request is a dry run, which stores nothing. */
    public Boolean dryRun() {
        JsonNode found = document.get("dryRun");
        if (found == null || found.isNull()) {
            return null;
        }
        if (!found.isBoolean()) {
            throw unexpected("dryRun", "a boolean", found);
        }
        return found.booleanValue();
    }

    /** The new object; null on DELETE. */
    public ObjectNode object() {
        return member("object");
    }

    /**
     * The object in a Java type that Jackson reads, such as fabric8's {@code Pod}. Members that the
     * type does not have are lost, so return changes as a patch, or change {@link #object()}.
     */
    public <T> T object(Class<T> type) {
        return typed("object", type);
    }

    /** The stored object; null on CREATE and CONNECT. */
    public ObjectNode oldObject() {
        return member("oldObject");
    }

    /** The stored object in a Java type, like {@link #object(Class)}. */
    public <T> T oldObject(Class<T> type) {
        return typed("oldObject", type);
    }

    /** The operation's options, such as a CreateOptions; null on CONNECT. */
    public ObjectNode options() {
        return member("options");
    }

    /** The Namespace of the object, if the inputs claim it. */
    public ObjectNode namespaceObject() {
        return member("namespaceObject");
    }

    /** Whether the gateway no longer waits for the answer. */
    public boolean isCancelled() {
        return context.isCancelled();
    }

    /**
     * Completes when the gateway no longer waits for the answer: it has cancelled the call, or the
     * timeout is over. A policy can then cancel its own operations. Calls with grpc-java inside the
     * policy's function are cancelled automatically.
     */
    public CompletableFuture<Void> cancelled() {
        CompletableFuture<Void> cancelled = new CompletableFuture<>();
        context.addListener(gone -> cancelled.complete(null), Runnable::run);
        return cancelled;
    }

    /** The size and the uid; never the content, which may be a Secret. */
    @Override
    public String toString() {
        return "Request of " + raw.size() + " bytes, uid " + uid;
    }

    private ObjectNode member(String name) {
        JsonNode found = document.get(name);
        if (found == null || found.isNull()) {
            return null;
        }
        if (!(found instanceof ObjectNode node)) {
            throw unexpected(name, "an object", found);
        }
        return node;
    }

    private GroupVersionKind groupVersionKind(String name) {
        ObjectNode node = member(name);
        return node == null
                ? null
                : new GroupVersionKind(
                        part(node, name, "group"),
                        part(node, name, "version"),
                        part(node, name, "kind"));
    }

    private GroupVersionResource groupVersionResource(String name) {
        ObjectNode node = member(name);
        return node == null
                ? null
                : new GroupVersionResource(
                        part(node, name, "group"),
                        part(node, name, "version"),
                        part(node, name, "resource"));
    }

    private <T> T typed(String name, Class<T> type) {
        ObjectNode node = member(name);
        if (node == null) {
            return null;
        }
        try {
            return TYPED.forType(type).readValue(node);
        } catch (IOException error) {
            throw new InvalidDocumentException(
                    "the document's "
                            + name
                            + " cannot be read as "
                            + type.getSimpleName()
                            + ": "
                            + error.getClass().getSimpleName());
        }
    }

    private static String part(ObjectNode parent, String where, String name) {
        String found = text(parent, name, where + "." + name);
        return found == null ? "" : found;
    }

    private static String text(ObjectNode parent, String name, String where) {
        JsonNode found = parent.get(name);
        if (found == null || found.isNull()) {
            return null;
        }
        if (!found.isTextual()) {
            throw unexpected(where, "a text", found);
        }
        return found.textValue();
    }

    private static InvalidDocumentException unexpected(
            String where, String wanted, JsonNode found) {
        return new InvalidDocumentException(
                "the document's "
                        + where
                        + " cannot be read: must be "
                        + wanted
                        + ", is "
                        + Json.typeOf(found));
    }
}
