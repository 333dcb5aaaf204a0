"""Cases of a mutating chain: one request, webhooks in order with what they answer -> verdicts, object, status.

Each hook is a policy that matches every resource, unless it has rules of its own; what its webhook would send over HTTP
goes through the real reading of answers, and time is the world's. A verdict from the memo counts as a call: the webhook
would have been called.

Compared: allowed; calls (hook and the labels in its document, in order); the object; warnings; the hooks' own audit
annotations; code and reason; and kube-apiserver's own annotations, which the Decision knows. Not compared: messages,
what the gateway says of its own (failing open has a warning), and what ``expected`` does not say.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

from msgspec.structs import replace

from gateway.engine.answer_source import Source
from gateway.engine.decision import Decision
from gateway.engine.engine import Engine
from gateway.engine.plan import Described, make_plan
from gateway.engine.verdicts import Answer, Failure
from gateway.policies.model import Phase, Policy, ReinvocationPolicy, SideEffects
from gateway.reasons import Reason
from gateway.review.response import annotation_key
from gateway.scopes.writes import Writes
from gateway.serving.dispatch_simulator import is_unsent
from gateway.transports.webhook_answers import review_answer
from tests.conformance.cases import Case, CaseError, Result, checked, member, same
from tests.conformance.matchings import to_policy
from tests.conformance.requests import to_request
from tests.world import World

KIND = "chain"

PATCH_FAILURE = "a patch that does not apply is a failure under the policy's failurePolicy"
"""Where kube-apiserver answers 500 whatever the policy says."""

KIND_CHANGE = "a patch that changes apiVersion or kind is a failure"
"""Where kube-apiserver calls the next webhook, and refuses the object afterwards."""

API = "admission.k8s.io/v1"
UID = "3c1f6a52-0a3e-4c39-a4a4-3c3f1f6f2f15"
_KUBERNETES = "webhook.admission.k8s.io/"
_EVERYTHING = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
_LEFT_OUT = {"patchNoType": "patchType", "typeNoPatch": "patch"}
_OWN_WORDS = ("failed", "failed-open", "changed")
_STATUS = ("status", "message", "reason", "code")


def recognizes(case: Case) -> bool:
    """Whether this is such a case."""
    return case.has("hooks", "attributes")


def run(case: Case) -> Result:
    """Walk the chain."""
    configuration = case.get("configuration", str, "conformance")
    hooks = case.get("hooks", list)
    policies = [_policy(hook, index, configuration) for index, hook in enumerate(hooks)]
    behaviors = [member(hook, "behavior", dict) for hook in hooks]
    request = to_request(case.get("attributes", dict))
    env = case.get("env", (dict, NoneType), {}) or {}
    world = World(
        namespaces=member(env, "namespaces", dict, {}),
        behaviours={each.policy: _Webhook(each.name, behaviors[each.index]) for each in policies},
        latencies={str(index): member(each, "delayMs", (int, float), 0) / 1000 for index, each in enumerate(behaviors)},
    )
    availabilities = {policy.qualified_name: Described(version="1") for policy in policies}
    ends = world.now + case.get("requestTimeoutSeconds", (int, float), 30)
    plan = make_plan(Phase.MUTATING, () if is_unsent(request) else policies, availabilities)
    decision = world.decide(Engine(request, plan, ends=ends))
    written = case.get("expected", dict)
    expected, got = _expected(written, policies, request.object), _got(decision, world)
    agrees = same(expected, {name: got[name] for name in expected})
    difference = "" if agrees else _difference(written, expected, got, decision)
    return Result(expected=expected, got=got, agrees=agrees, difference=difference)


def _policy(hook: Any, index: int, configuration: str) -> Policy:
    # As the cases are described: "all match every resource; objectSelector as given; namespaceSelector {}".
    return replace(
        to_policy({"rules": _EVERYTHING, "namespaceSelector": {}} | checked(hook, dict, "hook"), Phase.MUTATING),
        configuration=configuration,
        index=index,
        name=member(hook, "name", str),
        worker=f"webhook {index}",
        policy=str(index),
        reinvocation_policy=ReinvocationPolicy(member(hook, "reinvocationPolicy", str, "Never")),
        side_effects=SideEffects(member(hook, "sideEffects", str, "Unknown")),
        writes=Writes.EVERYTHING,
        timeout=float(member(hook, "timeoutSeconds", (int, float), 10)),
    )


# -------------------------------------------------------------------------------------------------- webhooks


class _Webhook:
    """Answers as a case says, in the words of a webhook."""

    def __init__(self, name: str, behavior: Any) -> None:
        self._name = name
        self._behavior = behavior

    def __call__(self, document: Any) -> Answer:
        kind = member(self._behavior, "kind", str)
        if kind == "http":
            code = member(self._behavior, "code", int)
            if not 200 <= code < 300:
                message = f'failed calling webhook "{self._name}": the server answered {code}'
                return Failure(reason=Reason.WORKER_FAILURE, message=message)
            body = member(self._behavior, "body", str, "")
        elif kind == "rawBody":
            body = member(self._behavior, "body", str, "")
        else:
            body = json.dumps(self._review(kind, (document.get("object") or {}).get("metadata") or {}))
        return review_answer(self._name, body.encode(), uid=UID, api_version=API, phase=Phase.MUTATING)

    def _review(self, kind: str, metadata: Any) -> dict[str, Any]:
        response = None if kind == "nilResponse" else self._response(kind, metadata.get("labels") or {})
        return {"apiVersion": API, "kind": "AdmissionReview", "response": response}

    def _response(self, kind: str, labels: Mapping[str, str]) -> dict[str, Any]:
        said = {name: self._behavior[name] for name in ("warnings", "auditAnnotations") if name in self._behavior}
        uid = {"wrongUID": "nope", "noUID": ""}.get(kind, UID)
        return {"uid": uid, "allowed": kind != "deny", **said, **self._verdict(kind, labels)}

    def _verdict(self, kind: str, labels: Mapping[str, str]) -> dict[str, Any]:
        match kind:
            case "deny":
                status = {name: self._behavior[name] for name in _STATUS if name in self._behavior}
                return {"status": status} if status else {}
            case "patchUnlessLabel" | "patchIfLabel":
                unless = kind == "patchUnlessLabel"
                present = member(self._behavior, "unlessLabel" if unless else "ifLabel", str) in labels
                return {} if present is unless else self._patch()
            case "patch" | "patchNoType" | "typeNoPatch" | "allow" | "wrongUID" | "noUID":
                patch = {} if kind in {"allow", "wrongUID", "noUID"} else self._patch()
                return {name: value for name, value in patch.items() if _LEFT_OUT.get(kind) != name}
            case other:
                raise CaseError(f"behavior.kind: unknown: {other!r}")

    def _patch(self) -> dict[str, Any]:
        raw = member(self._behavior, "patchRaw", str, None)
        text = json.dumps(member(self._behavior, "patch", list, [])) if raw is None else raw
        patch_type = member(self._behavior, "patchType", str, "JSONPatch")
        return {"patch": base64.b64encode(text.encode()).decode(), "patchType": patch_type}


# -------------------------------------------------------------------------------------------------- outcomes


_SAID_BY = {
    "calls": ("calls",),
    "warnings": ("warnings",),
    "auditAnnotations": ("annotations", "kubernetes"),
    "object": ("object",),
    "status": ("code", "reason"),
}
"""Which member of a case's ``expected`` says what; without it, that is not compared."""


def _expected(written: Any, policies: Sequence[Policy], came: Any) -> dict[str, Any]:
    status = member(written, "status", dict, {})
    allowed = member(written, "allowed", bool)
    annotations = member(written, "auditAnnotations", dict, {})
    own = {key: value for key, value in annotations.items() if _KUBERNETES not in key}
    names = sorted((policy.name for policy in policies), key=len, reverse=True)
    said = {
        "allowed": allowed,
        "calls": [
            {"index": member(call, "index", int), "labels": call.get("labelsSeen") or None}
            for call in member(written, "calls", list, [])
        ],
        "object": written.get("object") if allowed and came is not None else None,
        "warnings": member(written, "warnings", list, []),
        "annotations": {_own_key(names, key): value for key, value in own.items()},
        "kubernetes": {key: _parsed(value) for key, value in annotations.items() if _KUBERNETES in key},
        "code": None if allowed else status.get("code"),
        "reason": None if allowed else status.get("reason") or "",
    }
    left_out = {name for member_name, names in _SAID_BY.items() if member_name not in written for name in names}
    if not allowed or came is None:
        left_out -= {"object"}
    if allowed:
        left_out -= {"code", "reason"}
    return {name: value for name, value in said.items() if name not in left_out}


def _own_key(names: Sequence[str], key: str) -> str:
    """A webhook's ``NAME/key`` as the gateway writes it."""
    for name in names:
        if key.startswith(f"{name}/"):
            return annotation_key(name, key.removeprefix(f"{name}/"))
    raise CaseError(f"auditAnnotations: no hook wrote {key!r}")


def _got(decision: Decision, world: World) -> dict[str, Any]:
    documents = {policy_call.document.digest: policy_call.document.content for _, policy_call in world.calls}
    response, status = decision.response, decision.response.status
    opened = [call for call in decision.calls if call.failed_open]
    reported = {annotation_key(call.label, word) for call in decision.calls for word in _OWN_WORDS}
    warnings = [
        text for text in response.warnings if not any(text.startswith(f"{c.label}: could not judge") for c in opened)
    ]
    return {
        "allowed": response.allowed,
        "calls": [
            {"index": call.index, "labels": _labels(documents[call.document_key])}
            for call in decision.calls
            if call.source is not Source.NONE
        ],
        "object": decision.object if response.allowed else None,
        "warnings": warnings,
        "annotations": {key: value for key, value in response.audit_annotations.items() if key not in reported},
        "kubernetes": {key: _parsed(value) for key, value in decision.kubernetes_annotations().items()},
        "code": status.code if status else None,
        "reason": status.reason if status else None,
    }


def _labels(document: bytes) -> Any:
    obj = json.loads(document)["object"] or {}
    return (obj.get("metadata") or {}).get("labels") or None


def _parsed(value: Any) -> Any:
    try:
        return json.loads(checked(value, str, "auditAnnotations"))
    except ValueError:
        return value


def _difference(written: Any, expected: Any, got: Any, decision: Decision) -> str:
    """Which deliberate difference the case shows, or "".

    The gateway went another way at one call, because of its patch; what came before, and the call itself, must be the
    same.
    """
    called = [call for call in decision.calls if call.source is not Source.NONE]
    for place, call in enumerate(called):
        answer = call.answer
        if not isinstance(answer, Failure) or answer.reason is not Reason.INVALID_PATCH:
            continue
        if not same(expected.get("calls", [])[: place + 1], got["calls"][: place + 1]):
            return ""
        if answer.message.startswith(("kind: ", "apiVersion: ")):
            return KIND_CHANGE
        message = member(member(written, "status", dict, {}), "message", str, "")
        refused = expected.get("code") == 500 and "failed calling webhook" not in message
        return PATCH_FAILURE if refused and call.failed_open and len(expected["calls"]) == place + 1 else ""
    return ""
