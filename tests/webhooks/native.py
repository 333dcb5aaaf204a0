"""Native webhook configurations, as in a cluster without the gateway."""

import base64
import json

SERVICE = ("agnhost", "webhooks")
"""Name and namespace of the Service."""

SERVICE_HOST = "agnhost.webhooks.svc"
"""The name that its certificate has."""

SERVICE_PORT = 8443

EVERYTHING = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]


def by_service(path, port=SERVICE_PORT):
    """A clientConfig that names the Service."""
    name, namespace = SERVICE
    return {"service": {"name": name, "namespace": namespace, "path": path, "port": port}}


def by_url(path, port):
    """A clientConfig that names the address."""
    return {"url": f"https://127.0.0.1:{port}{path}"}


def webhook(name, client, authority=None, *, rules=EVERYTHING, **fields):
    """One webhook; without ``authority`` it has no caBundle."""
    bundle = {"caBundle": base64.b64encode(authority.pem).decode()} if authority else {}
    base = {"name": name, "clientConfig": client | bundle, "rules": rules, "sideEffects": "None"}
    return base | {"admissionReviewVersions": ["v1", "v1beta1"], "timeoutSeconds": 10} | fields


def configuration(kind, name, *webhooks):
    """A Mutating or Validating configuration with these webhooks."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }


def text(*objects):
    """Objects as the text of a file."""
    return "---\n".join(json.dumps(each, indent=1) + "\n" for each in objects)
