"""The recorded answers of Kubernetes' reference webhook, agnhost, and what the gateway makes of each.

The gateway's answer is what kube-apiserver makes of agnhost's own: a denial without a code is 400; what is said with an
allow is dropped; a patch is what it makes of the object, for the gateway writes it in its own words.
"""

import base64
import json
from pathlib import Path

import jsonpatch

_, *_RECORDED = map(json.loads, Path(__file__).with_name("agnhost_webhook_io.jsonl").read_bytes().splitlines())

CASES = {case["id"]: case for case in _RECORDED}
"""All of them, by number."""

IMAGE = "registry.example/side:1"
"""What ``--sidecar-image`` is in the cases that have it."""

MUTATING = ("add-label", "mutating-pods", "mutating-configmaps", "mutating-custom-resource", "mutating-pods-sidecar")
VALIDATING = ("always-allow-delay-5s", "always-deny", "pods", "pods-attach", "configmaps", "custom-resource", "crd")
"""Its routes, with ``-`` for ``/``, as policies."""

FOREIGN = ("mutating-pods", "mutating-configmaps", "configmaps")
"""Those whose handler crashes on another resource; mutating-pods-sidecar does too, where it has an image."""

_WITH_IMAGE = "with-image"


def called_of(case):
    """The policy of a case's route; ``with-image`` where ``--sidecar-image`` is given."""
    name = case["route"].removeprefix("/").replace("/", "-")
    return _WITH_IMAGE if name == "mutating-pods-sidecar" and case["flags"]["sidecar-image"] else name


def route_of(name):
    """The route of a policy."""
    if name == _WITH_IMAGE:
        return "/mutating-pods-sidecar"
    return "/pods/attach" if name == "pods-attach" else f"/{name}"


def phase_of(name):
    """``mutate`` or ``validate``."""
    return "mutate" if name in (*MUTATING, _WITH_IMAGE) else "validate"


def body_of(case, **fields):
    """The review of a case, as bytes; ``fields`` replace those of its request."""
    body = case["request"]["body"]
    return json.dumps(body | {"request": body["request"] | fields}).encode()


def foreign(name):
    """A review of a Service, to be put to a policy that knows no Services."""
    return body_of(CASES[38], uid=f"foreign-{name}")


def assert_as_recorded(case, answered, *, of_policy=False):
    """Allowed or not, with which status, and what becomes of the object.

    ``of_policy``: a worker's policy answered, whose denial gets a cause; that of a webhook goes out as it came.
    """
    expected = case["expected"]["body"]
    assert answered.status == case["expected"]["httpStatus"]
    assert (answered.review["apiVersion"], answered.review["kind"]) == (expected["apiVersion"], expected["kind"])
    response = answered.response
    assert (response["uid"], response["allowed"]) == (expected["response"]["uid"], expected["response"]["allowed"])
    if response["allowed"]:
        assert "status" not in response
    else:
        status = _as_kube_apiserver_reads(expected["response"]["status"])
        cause = {"reason": "DENIED", "message": status.get("message") or status["reason"]}
        assert response["status"] == status | ({"details": {"causes": [cause]}} if of_policy else {})
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    whole = case["request"]["body"]["request"]["object"]
    assert bool(patch) == ("decodedPatch" in case["expected"])
    assert jsonpatch.apply_patch(whole, patch) == jsonpatch.apply_patch(whole, case["expected"].get("decodedPatch", []))


def _as_kube_apiserver_reads(status):
    """A denial's status: "Failure" whatever it says, and 400 where the code is no error's."""
    code = status.get("code", 0)
    said = {name: status[name] for name in ("message", "reason") if status.get(name)}
    return {"status": "Failure", "code": max(code, 400), **said}
