"""Admission of an object as kube-apiserver goes about it: mutating webhooks one after another, then validating ones,
each as it is registered: rules, namespace, Service, authority, failurePolicy.
"""

import base64
import copy
import http.client
import json
import socket
import ssl
import uuid
from urllib.parse import urlsplit

import jsonpatch

WAIT_SECONDS = 30
"""Seconds after which a call has failed, as kube-apiserver's own longest."""

RESOURCES = {
    "Deployment": "deployments",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "Pod": "pods",
    "Service": "services",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
"""Kinds that there are, and their resources."""

PHASES = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


class Refused(Exception):  # noqa: N818 - not an error: an answer
    """What the API server says to a request that it does not do: a status."""

    def __init__(self, message, *, reason="", code=400, details=None):
        super().__init__(message)
        self.reason, self.code, self.details = reason, code, details or {}


def key(kind, namespace, name):
    """Under which an object is kept in a cluster's state."""
    return f"{kind}/{namespace}/{name}"


def admit(state, obj, *, operation="CREATE", user="jane"):
    """What would be stored of an object, and the warnings. Raises Refused.

    ``state``: gives, as of this moment, the ``objects`` of a cluster, and of its ``pods`` the port that they listen on,
    by NAMESPACE/APP.
    """
    obj, warnings = decoded(obj), []
    for kind in PHASES:
        for webhook in _registered(state(), kind):
            if not _matches(webhook, obj, operation):
                continue
            response = _call(state, webhook, _request(obj, operation, user))
            if response is None:
                continue
            warnings += response.get("warnings", [])
            if not response["allowed"]:
                raise _denial(webhook, response.get("status", {}))
            if "patch" in response:
                obj = jsonpatch.apply_patch(obj, json.loads(base64.b64decode(response["patch"])))
    return obj, warnings


def decoded(obj):
    """An object as the API server sends it: whatever its types write, even if it is empty, is there."""
    obj = copy.deepcopy(obj)
    template = obj["spec"]["template"] if obj["kind"] == "Deployment" else obj
    for container in template["spec"]["containers"]:
        container.setdefault("resources", {})
    if obj["kind"] == "Deployment":
        obj["spec"].setdefault("strategy", {"type": "RollingUpdate"})
    obj.setdefault("status", {})
    return obj


def _registered(state, kind):
    """All webhooks of a phase, in the order of the names of their configurations."""
    objects = sorted((key, obj) for key, obj in state["objects"].items() if obj["kind"] == kind)
    return [webhook for _, obj in objects for webhook in obj.get("webhooks", [])]


def _matches(webhook, obj, operation):
    group, _, version = obj["apiVersion"].rpartition("/")
    wanted = {
        "operations": operation,
        "apiGroups": group,
        "apiVersions": version,
        "resources": RESOURCES[obj["kind"]],
    }
    ruled = any(
        all({value, "*"} & set(rule[name]) for name, value in wanted.items()) for rule in webhook.get("rules", [])
    )
    labels = obj["metadata"].get("labels", {})
    selected = (webhook.get("objectSelector") or {}).get("matchLabels", {}).items() <= labels.items()
    namespace = obj["metadata"].get("namespace", "default")
    return ruled and selected and _selects(webhook.get("namespaceSelector") or {}, namespace)


def _selects(selector, namespace):
    """By the label that every namespace has, which is all that the pages select by."""
    assert not selector.get("matchLabels"), "this cluster knows no other labels of namespaces"
    for requirement in selector.get("matchExpressions", ()):
        assert requirement["key"] == "kubernetes.io/metadata.name"
        if (namespace in requirement["values"]) != (requirement["operator"] == "In"):
            return False
    return True


def _request(obj, operation, user):
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": obj["kind"]}
    resource = {"group": group, "version": version, "resource": RESOURCES[obj["kind"]]}
    return {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"].get("namespace", "default"),
        "operation": operation,
        "userInfo": {"username": user, "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": True,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]},
    }


def _call(state, webhook, request):
    """The webhook's response; None where it cannot be called and fails open."""
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    try:
        status, body = _post(state, webhook, json.dumps(review).encode())
        assert status == 200, f"HTTP {status}: {body[:200]!r}"
        response = json.loads(body)["response"]
        assert response["uid"] == request["uid"]
    except (OSError, http.client.HTTPException, AssertionError) as error:
        if webhook.get("failurePolicy", "Fail") == "Ignore":
            return None
        text = f'Internal error occurred: failed calling webhook "{webhook["name"]}": {error}'
        raise Refused(text, reason="InternalError", code=500) from error
    return response


def _post(state, webhook, body):
    host, target, port = _destination(state(), webhook["clientConfig"])
    context = ssl.create_default_context(cadata=base64.b64decode(webhook["clientConfig"]["caBundle"]).decode())
    timeout = webhook.get("timeoutSeconds", 10)
    connection = http.client.HTTPSConnection(host, port, timeout=WAIT_SECONDS)
    connection.sock = context.wrap_socket(
        socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS), server_hostname=host
    )
    try:
        headers = {"Content-Type": "application/json", "Host": host}
        connection.request("POST", f"{target}?timeout={timeout}s", body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _destination(state, client):
    """The name that the certificate must have, the path, and the port of this machine."""
    if "service" not in client:
        url = urlsplit(client["url"])
        return url.hostname, url.path or "/", url.port or 443
    name, namespace = client["service"]["name"], client["service"]["namespace"]
    service = state["objects"].get(key("Service", namespace, name))
    port = client["service"].get("port", 443)
    if service is None or port not in [each["port"] for each in service["spec"]["ports"]]:
        raise ConnectionRefusedError(f'service "{name}" not found, or it has no port {port}')
    pods = state["pods"].get(f"{namespace}/{service['spec']['selector']['app']}")
    if pods is None:
        raise ConnectionRefusedError(f'no endpoints available for service "{name}"')
    return f"{name}.{namespace}.svc", client["service"].get("path", "/"), pods


def _denial(webhook, status):
    text = f'admission webhook "{webhook["name"]}" denied the request'
    said = status.get("message") or status.get("reason")
    code = status.get("code", 0)
    return Refused(
        f"{text}: {said}" if said else f"{text} without explanation",
        reason=status.get("reason", ""),
        code=max(code, 400),
        details=status.get("details"),
    )
