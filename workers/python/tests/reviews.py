"""Requests for the sample policies: recorded ones, and Pods in every place where there are some."""

import copy
import json

import jsonpatch

from admission_worker import Allow
from admission_worker.pointers import tokens
from admission_worker.projection import document_of
from admission_worker.samples import worker
from admission_worker.testing import review
from tests.traffic import recording, recordings

POD = {"group": "", "version": "v1", "kind": "Pod"}
DEPLOYMENT = {"group": "apps", "version": "v1", "kind": "Deployment"}
JOB = {"group": "batch", "version": "v1", "kind": "Job"}
CRON_JOB = {"group": "batch", "version": "v1", "kind": "CronJob"}

TEMPLATED = [
    POD,
    DEPLOYMENT,
    JOB,
    CRON_JOB,
    *({"group": "apps", "version": "v1", "kind": kind} for kind in ("DaemonSet", "StatefulSet", "ReplicaSet")),
    {"group": "", "version": "v1", "kind": "ReplicationController"},
    {"group": "", "version": "v1", "kind": "PodTemplate"},
]


def recorded(name):
    """The AdmissionRequest of a recording."""
    return json.loads(recording(name).body)["request"]


def all_recorded(phase=None):
    """All recorded AdmissionRequests by name, of one phase or of both."""
    found = {each.name: json.loads(each.body) for each in recordings() if phase in {None, each.phase}}
    return {name: body["request"] for name, body in found.items() if "request" in body}


def whole(kind, spec, metadata=None):
    """An object of a kind, around a PodSpec."""
    made = {"apiVersion": "v1", "kind": kind["kind"], "metadata": metadata or {"name": "n"}}
    match kind["kind"]:
        case "Pod":
            return made | {"spec": spec}
        case "PodTemplate":
            return made | {"template": {"spec": spec}}
        case "CronJob":
            return made | {"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}
        case _:
            return made | {"spec": {"template": {"spec": spec}}}


def request(kind=POD, *, spec=None, old=None, operation=None, metadata=None, **fields):
    """An AdmissionRequest for a kind with a PodSpec; with an ``old`` PodSpec an UPDATE."""
    return {
        "uid": "u",
        "kind": kind,
        "operation": operation or ("CREATE" if old is None else "UPDATE"),
        "object": None if spec is None else whole(kind, spec, metadata),
        "oldObject": None if old is None else whole(kind, old, metadata),
        "dryRun": False,
        **fields,
    }


def judge(policy, admission, settings):
    """A sample policy's answer, which must be the same for the whole document and for the claimed parts."""
    answer = review(worker, policy, admission, settings)
    claimed = worker.policies[policy].inputs
    assert claimed is not None
    everything = review(_Unclaimed(policy), policy, admission, settings)
    assert answer == everything, f"it reads what it does not claim: {document_of(admission, claimed)}"
    return answer


class _Unclaimed:
    """The samples with one policy without claims, which gets the whole document."""

    def __init__(self, policy):
        held = worker.policies[policy]
        fields = {name: getattr(held, name) for name in held.__slots__ if name != "inputs"}
        self.name = worker.name
        self.policies = {policy: type(held)(inputs=None, **fields)}


def changed(admission, answer):
    """The object after the answer, by the ``jsonpatch`` library; the answer must be allow."""
    assert isinstance(answer, Allow), answer
    if answer.change is None:
        return admission["object"]
    return jsonpatch.apply_patch(copy.deepcopy(admission["object"]), answer.change.value)


def differing(before, after, place=()):
    """The places where two values differ, as tokens: of objects and arrays on both sides, those inside them."""
    if isinstance(after, dict) and isinstance(before, dict | None):
        before = before or {}
        for name in {**before, **after}:
            yield from differing(before.get(name), after.get(name), (*place, name))
    elif isinstance(after, list) and isinstance(before, list) and len(after) >= len(before):
        for index, value in enumerate(after):
            yield from differing(before[index] if index < len(before) else None, value, (*place, str(index)))
    elif before != after:
        yield place


def _covers(wide, narrow):
    return len(wide) <= len(narrow) and all(token in {"*", its} for token, its in zip(wide, narrow, strict=False))


def mutate(policy, admission, settings):
    """The object after the policy, and its warnings. Called with it, the policy changes nothing; and it changes
    nothing that it does not claim.
    """
    answer = judge(policy, admission, settings)
    result = changed(admission, answer)
    claimed = [tokens(place) for place in worker.policies[policy].writes]
    for place in differing(admission["object"], result):
        assert any(_covers(each, place) for each in claimed), f"it changes what it does not claim: {place}"
    again = judge(policy, admission | {"object": result}, settings)
    assert again.change is None or again.change.value == [], f"not idempotent: {again.change.value}"
    return result, answer.warnings
