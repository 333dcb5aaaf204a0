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
 * The document that a policy judges: a part of a Kubernetes AdmissionRequest.
 *
 * <p>A document holds what the operator granted and the policy claimed, so every member may be
 * missing: then it reads null, like a member that is null. (Kubernetes leaves {@code name}, {@code
 * namespace} and {@code subResource} out when they are empty, and sends {@code null} for an {@code
 * object} that there is not, as on DELETE.) What is read belongs to the policy: it may be changed
 * and returned. Every method that reads a member throws {@link InvalidDocumentException} if it is
 * not what an AdmissionRequest holds there; a policy that lets it pass answers a failure.
 */
public final class Request {
    /** Types of Kubernetes know the members of their version, and a cluster may be newer. */
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
     * @param context is cancelled when nobody waits for the answer any more
     * @throws InvalidDocumentException it is not one JSON object
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

    /** The whole document, in the AdmissionRequest's own shape; unknown members included. */
    public ObjectNode document() {
        return document;
    }

    /** The document's JSON text, as it was sent. */
    public byte[] raw() {
        return raw.toByteArray();
    }

    /**
     * The AdmissionRequest's uid, for logs. A verdict must not depend on it: it differs in each
     * call.
     */
    public String uid() {
        return uid;
    }

    /** The kind of {@code object}: for a subresource its own, such as Scale or Eviction. */
    public GroupVersionKind kind() {
        return groupVersionKind("kind");
    }

    /** The resource that is asked for, in the version that the policy matched. */
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
     * The kind in the version in which the client called (differs from {@code kind} under
     * matchPolicy Equivalent).
     */
    public GroupVersionKind requestKind() {
        return groupVersionKind("requestKind");
    }

    /** The resource in the version in which the client called. */
    public GroupVersionResource requestResource() {
        return groupVersionResource("requestResource");
    }

    /** The subresource as the client called. */
    public String requestSubResource() {
        return text(document, "requestSubResource", "requestSubResource");
    }

    /** {@code CREATE}, {@code UPDATE}, {@code DELETE} or {@code CONNECT}. */
    public String operation() {
        return text(document, "operation", "operation");
    }

    /**
     * The object's name. Null where the API server makes it (generateName, mutating), and on a
     * deletecollection.
     */
    public String name() {
        return text(document, "name", "name");
    }

    /** The namespace; null for cluster-scoped objects, a Namespace's own name for Namespaces. */
    public String namespace() {
        return text(document, "namespace", "namespace");
    }

    /** Who calls. */
    public UserInfo userInfo() {
        return typed("userInfo", UserInfo.class);
    }

    /** Whether nothing will be stored. */
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

    /** The object as it would be stored; null on DELETE. */
    public ObjectNode object() {
        return member("object");
    }

    /**
     * The object in a type of Kubernetes that Jackson reads, such as fabric8's {@code Pod}. Members
     * that the type does not know are left out; so return changes as a patch, or change {@link
     * #object()}.
     */
    public <T> T object(Class<T> type) {
        return typed("object", type);
    }

    /** The object as it is stored; null on CREATE and CONNECT. */
    public ObjectNode oldObject() {
        return member("oldObject");
    }

    /** The stored object in a type of Kubernetes, as {@link #object(Class)}. */
    public <T> T oldObject(Class<T> type) {
        return typed("oldObject", type);
    }

    /** The operation's options, such as a CreateOptions; null on CONNECT. */
    public ObjectNode options() {
        return member("options");
    }

    /** The Namespace in which the object is, where the gateway offers it. */
    public ObjectNode namespaceObject() {
        return member("namespaceObject");
    }

    /** Whether nobody waits for the answer any more. */
    public boolean isCancelled() {
        return context.isCancelled();
    }

    /**
     * Completes when nobody waits for the answer any more: the caller has gone, or the time is
     * over. What a policy has started elsewhere it can stop then. Calls made with grpc-java inside
     * the policy's function are cancelled by themselves.
     */
    public CompletableFuture<Void> cancelled() {
        CompletableFuture<Void> told = new CompletableFuture<>();
        context.addListener(gone -> told.complete(null), Runnable::run);
        return told;
    }

    /** How large and for which log line; never the content, which may be a Secret. */
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
