"""The recorded answers of Kubernetes' reference webhook, agnhost, from the gateway with the agnhost worker behind it.

Each case goes through a real gateway on the path of one policy, and the answer is what kube-apiserver makes of
agnhost's own: a denial without a code is 400; what is said with an allow is dropped; a patch is what it makes of the
object, for the gateway writes it in its own words.
"""

import base64
import json

import jsonpatch
import pytest

from tests.integration.client import post
from tests.integration.running import policy
from tests.workers.commands import AGNHOST, ROOT, command, languages
from tests.workers.running import EVERYTHING, Behind, asked

CASES = {
    case["id"]: case for case in json.loads((ROOT / "tests/conformance/agnhost_webhook_io.json").read_text())["cases"]
}

NOT_THE_WORKERS = {
    124: "a content type with a charset: agnhost answers nothing, the gateway reads it",
    125: "a body that is no JSON: HTTP 400 from both, in other words",
    126: "an empty body: likewise",
    127: "a body that is no AdmissionReview: likewise",
    130: "a request without a resource, which kube-apiserver never sends: no rule matches it, so no worker is asked",
    131: "a review without a request: agnhost crashes, the gateway says HTTP 400",
    132: "a version of AdmissionReview that there is not: HTTP 400 from both, in other words",
}
"""Cases about agnhost's own HTTP server, which a worker has none of."""

IMAGE = "registry.example/side:1"

MUTATING = ("add-label", "mutating-pods", "mutating-configmaps", "mutating-custom-resource", "mutating-pods-sidecar")
VALIDATING = ("always-allow-delay-5s", "always-deny", "pods", "pods-attach", "configmaps", "custom-resource", "crd")

FOREIGN = ("mutating-pods", "mutating-configmaps", "configmaps")
"""Policies whose handler crashes on another resource; without an image the sidecar's denies before it looks."""


def _policy(name, **fields):
    """A policy on a path of its own."""
    return policy(name, worker="judge", rules=EVERYTHING, isolate=True, **fields)


def _behind(argv):
    with_image = _policy("with-image", policy="mutating-pods-sidecar", settings={"image": IMAGE})
    # The end-to-end tests wait for the five seconds; here it is enough that the policy waits.
    soon = _policy("always-allow-delay-5s", settings={"seconds": 0.05})
    return Behind(
        argv=argv,
        mutating=[*map(_policy, MUTATING), with_image],
        validating=[soon, *(_policy(name) for name in VALIDATING if name != "always-allow-delay-5s")],
    )


def _post(name, body):
    phase = "mutate" if name in (*MUTATING, "with-image") else "validate"
    return post(json.dumps(body).encode(), f"/{phase}/{name}.test.example.com?timeout=10s")


def _asked_of(case):
    """The policy of a case's route, under its flags."""
    name = case["route"].removeprefix("/").replace("/", "-")
    return "with-image" if name == "mutating-pods-sidecar" and case["flags"]["sidecar-image"] else name


def _foreign(name):
    """A Service, put to a policy that knows no Services."""
    body = json.loads(json.dumps(CASES[38]["request"]["body"]))
    body["request"]["uid"] = f"foreign-{name}"
    return _post(name, body)


JUDGED = [number for number in CASES if number not in NOT_THE_WORKERS]


@pytest.fixture(scope="module", params=languages(AGNHOST))
def answers(request, serving, trust, tmp_path_factory):
    """The answers to all cases, by their number, and to foreign resources, by the policy's name."""
    folder = tmp_path_factory.mktemp("agnhost")
    requests = {number: _post(_asked_of(CASES[number]), CASES[number]["request"]["body"]) for number in JUDGED}
    requests |= {name: _foreign(name) for name in (*FOREIGN, "with-image")}
    found = asked(serving, trust, folder, _behind(command(AGNHOST, request.param)), requests.values())
    return dict(zip(requests, found, strict=True))


def test_every_case_is_there():
    """All 69 of them: those that a worker judges, and those that are listed with the reason why not."""
    assert len(CASES) == 69
    assert len(JUDGED) == 69 - len(NOT_THE_WORKERS)


@pytest.mark.parametrize("number", JUDGED, ids=lambda number: f"{number}{CASES[number]['route']}")
def test_a_case_has_agnhosts_answer(answers, number):
    """Allowed or not, with which status, and what becomes of the object."""
    case, answered = CASES[number], answers[number]
    expected = case["expected"]["body"]
    assert answered.status == case["expected"]["httpStatus"]
    assert (answered.review["apiVersion"], answered.review["kind"]) == (expected["apiVersion"], expected["kind"])
    response = answered.response
    assert (response["uid"], response["allowed"]) == (expected["response"]["uid"], expected["response"]["allowed"])
    if response["allowed"]:
        assert "status" not in response
    else:
        assert response["status"] == _as_kube_apiserver_reads(expected["response"]["status"])
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    whole = case["request"]["body"]["request"]["object"]
    assert bool(patch) == ("decodedPatch" in case["expected"])
    assert jsonpatch.apply_patch(whole, patch) == jsonpatch.apply_patch(whole, case["expected"].get("decodedPatch", []))


def _as_kube_apiserver_reads(status):
    """A denial's status: "Failure" whatever it says, and 400 where the code is no error's."""
    code = status.get("code", 0)
    said = {name: status[name] for name in ("message", "reason") if status.get(name)}
    return {"status": "Failure", "code": max(code, 400), **said}


@pytest.mark.parametrize("name", [*FOREIGN, "with-image"])
def test_where_agnhost_crashes_the_policy_fails(answers, name):
    """A resource that the handler does not know is a failure, under the failurePolicy, and no verdict."""
    assert answers[name].fails_with("WORKER_FAILURE")
