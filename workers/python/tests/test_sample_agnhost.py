"""The agnhost worker against the recorded answers of Kubernetes' reference webhook, policy by policy."""

import asyncio
import json
from pathlib import Path

import pytest

from admission_worker import EVERYTHING, Allow, Deny
from admission_worker.samples.agnhost import worker
from admission_worker.samples.agnhost.agnhost_worker import UnexpectedResourceError
from admission_worker.testing import review, review_async

_FILE = Path(__file__).parents[3] / "tests/conformance/agnhost_webhook_io.jsonl"
CASES = [case for case in map(json.loads, _FILE.read_bytes().splitlines()) if "reviewVersion" in case]

ROUTES = {
    *("always-allow-delay-5s", "always-deny", "add-label", "crd"),
    *("pods", "pods-attach", "mutating-pods", "mutating-pods-sidecar"),
    *("configmaps", "mutating-configmaps", "custom-resource", "mutating-custom-resource"),
}


def _settings(policy, case):
    match policy:
        case "always-allow-delay-5s":
            return {"seconds": 0}
        case "mutating-pods-sidecar":
            return {"image": case["flags"]["sidecar-image"]}
        case _:
            return {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}{case['route']}")
def test_a_policy_answers_as_its_route(case):
    """The verdict, the status and the very operations."""
    policy = case["route"].removeprefix("/").replace("/", "-")
    answer = review(worker, policy, case["request"]["body"], _settings(policy, case))
    expected = case["expected"]["body"]["response"]
    if expected["allowed"]:
        assert isinstance(answer, Allow)
        assert (answer.change and answer.change.value) == case["expected"].get("decodedPatch")
        return
    status = expected["status"]
    assert isinstance(answer, Deny)
    assert (answer.message, answer.reason) == (status.get("message", ""), status.get("reason", ""))
    assert answer.code == status.get("code", 400)


def test_there_is_one_policy_for_each_route():
    """Those that can change something are mutating, and each claims what it reads."""
    assert set(worker.policies) == ROUTES
    mutating = {name for name, policy in worker.policies.items() if policy.writes is not None}
    assert mutating == {name for name in ROUTES if name.startswith(("mutating", "add"))}
    assert all(policy.inputs not in {None, EVERYTHING} for policy in worker.policies.values())


def test_the_delay_is_five_seconds_by_default():
    """As the route's name says."""
    settings, _ = worker.policies["always-allow-delay-5s"].settings.read(b"{}")
    assert settings.seconds == 5


async def test_one_label_is_never_answered():
    """The end-to-end tests wait for the webhook's timeout: the policy waits until it is cancelled."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"webhook-e2e-test": "wait-forever"}}}
    request = {"operation": "CREATE", "resource": {"group": "", "version": "v1", "resource": "pods"}, "object": pod}
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await review_async(worker, "pods", request)


FOREIGN = {"operation": "CREATE", "resource": {"group": "", "version": "v1", "resource": "services"}, "object": {}}


@pytest.mark.parametrize("policy", ["configmaps", "mutating-configmaps", "mutating-pods", "mutating-pods-sidecar"])
def test_where_agnhost_crashes_the_policy_raises(policy):
    """A nil response is a call that has failed."""
    with pytest.raises(UnexpectedResourceError):
        review(worker, policy, FOREIGN, {"image": "i"} if policy == "mutating-pods-sidecar" else {})


CRDS = "{apiextensions.k8s.io v1beta1 customresourcedefinitions}, {apiextensions.k8s.io v1 customresourcedefinitions}"
ATTACHED = FOREIGN | {"name": "to-be-attached-pod"}
LIST = {"operation": "CREATE", "object": {"data": []}}
UNREAD = "json: cannot unmarshal array into Go struct field .Data of type map[string]string"


@pytest.mark.parametrize(
    ("policy", "admission", "message"),
    [
        ("crd", FOREIGN, f"expect resource to be one of [{CRDS}] but got {{ v1 services}}"),
        ("pods-attach", ATTACHED, "expect resource to be { v1 pods}, got { v1 services}"),
        ("custom-resource", {"operation": "CREATE", "object": None}, "unexpected end of JSON input"),
        ("mutating-custom-resource", LIST, UNREAD),
    ],
)
def test_what_no_recording_shows_is_as_its_source_says(policy, admission, message):
    """The handlers' other sentences."""
    answer = review(worker, policy, admission)
    assert isinstance(answer, Deny)
    assert (answer.message, answer.code) == (message, 400)
