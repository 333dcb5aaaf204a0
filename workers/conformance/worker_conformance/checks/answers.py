"""``answers.*``: each kind of answer reaches the gateway with all fields that the policy set."""

import json
from typing import Any

from worker_conformance.check import Section, proto, readme
from worker_conformance.findings import expect, shown
from worker_conformance.policy_calls import POD, probe
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.subject import Subject

section = Section("answers")

PROBES = readme("answers with one arm")

EXTRAS = {"warnings": ["first", "zweite: \u00e4\u4e16\U0001f600"], "auditAnnotations": {"a": "1", "b.c_d-e": "\u00e4"}}
"""Warnings and audit annotations that every arm but ``fail`` can carry."""


async def answered(worker: Subject, arm: str, document: Any = POD, **settings: Any) -> worker_pb2.Outcome:
    """The outcome of probe-answer with this arm; it must have the worker's version."""
    outcome = await worker.client.review(probe("answer", {"arm": arm, **settings}, document))
    expected = worker.description.version
    expect(outcome.version == expected, f"version {expected!r} in the outcome", shown(outcome))
    return outcome


def _is_plain_allow(outcome: worker_pb2.Outcome) -> bool:
    return (
        outcome.WhichOneof("verdict") == "allow"
        and outcome.allow.WhichOneof("change") is None
        and not outcome.warnings
        and not outcome.audit_annotations
        and not outcome.HasField("cache")
    )


@section.check("allow", "allow becomes an allow without a change or any other field.", PROBES, probes="answer")
async def allow(worker: Subject) -> None:
    """The simplest answer."""
    outcome = await answered(worker, "allow")
    expect(_is_plain_allow(outcome), "an allow without change, warnings, annotations and cache hint", shown(outcome))


@section.check(
    "nothing",
    "A function that returns nothing allows.",
    readme("the language's value for nothing"),
    probes="answer",
)
async def nothing(worker: Subject) -> None:
    """The language's value for nothing: None, nil, undefined."""
    outcome = await answered(worker, "nothing")
    expect(_is_plain_allow(outcome), "an allow without change, warnings, annotations and cache hint", shown(outcome))


@section.check(
    "deny",
    "deny keeps its code, message, reason, causes and details.",
    proto("metav1.StatusDetails, field by field."),
    probes="answer",
)
async def deny(worker: Subject) -> None:
    """Every field of a denial."""
    cause = worker_pb2.StatusCause(reason="FieldValueInvalid", message="a cause", field="spec.probe")
    details = worker_pb2.StatusDetails(
        name="probe", group="probes.example.com", kind="Probe", uid="probe-uid", causes=[cause], retry_after_seconds=7
    )
    expected = worker_pb2.Deny(code=409, message="denied by the probe", reason="Conflict", details=details)
    outcome = await answered(worker, "deny")
    expect(outcome.deny == expected, shown(expected), shown(outcome))


@section.check(
    "deny-plainly",
    "deny without a code becomes 403 Forbidden without details.",
    proto('Empty: "Forbidden" if ``code`` is unset, otherwise none.'),
    probes="answer",
)
async def deny_plainly(worker: Subject) -> None:
    """The worker may set the code and the reason, or leave them to the gateway."""
    outcome = await answered(worker, "deny-plainly")
    denied = outcome.deny
    expect(outcome.WhichOneof("verdict") == "deny", "a denial", shown(outcome))
    code = denied.code if denied.HasField("code") else 403
    reason = denied.reason or ("" if denied.HasField("code") else "Forbidden")
    right = (code, reason, denied.message) == (403, "Forbidden", "denied")
    expect(
        right and not denied.HasField("details"),
        "code 403, reason Forbidden, message 'denied', no details",
        shown(outcome),
    )


@section.check(
    "patch",
    "patch becomes the policy's JSON Patch.",
    proto("A JSON Patch (RFC 6902): a JSON array of operations, paths over the object."),
    probes="answer",
)
async def patch(worker: Subject) -> None:
    """The operations."""
    expected = [{"op": "add", "path": "/metadata/annotations", "value": {"probe": "patched"}}]
    _is_change(await answered(worker, "patch"), "json_patch", expected)


@section.check(
    "merge",
    "merge becomes the policy's JSON Merge Patch.",
    proto("A JSON Merge Patch (RFC 7386): a JSON object."),
    probes="answer",
)
async def merge(worker: Subject) -> None:
    """The merge patch."""
    _is_change(await answered(worker, "merge"), "merge_patch", {"metadata": {"annotations": {"probe": "merged"}}})


@section.check(
    "mutated",
    "mutated becomes the whole object, with no other part altered.",
    proto("The whole object as it should be. The gateway compares it with the object that it sent."),
    probes="answer",
)
async def mutated(worker: Subject) -> None:
    """The object with one annotation more."""
    expected = POD["object"] | {"metadata": POD["object"]["metadata"] | {"annotations": {"probe": "mutated"}}}
    _is_change(await answered(worker, "mutated"), "object", expected)


NUMBERS = (
    "9007199254740993",
    "-0",
    "1.0",
    "1e400",
    "0.1000000000000000055511151231257827",
    "123456789012345678901234567890",
    "1E+2",
    "5e-324",
    "1.10",
)
"""Numbers that a double cannot hold, or that JSON can write in more than one way."""


@section.check(
    "mutated-keeps-numbers",
    "In a mutated object, each number that the policy did not change keeps its digits.",
    proto("The whole object as it should be. The gateway compares it with the object that it sent."),
    probes="answer",
)
async def mutated_keeps_numbers(worker: Subject) -> None:
    """Compared as text, because another text may be another number."""
    members = ",".join(f'"n{place}":{number}' for place, number in enumerate(NUMBERS))
    text = f'{{"operation":"CREATE","object":{{"metadata":{{"name":"a"}},"spec":{{{members}}}}}}}'.encode()
    outcome = await answered(worker, "mutated", text)
    expect(outcome.allow.WhichOneof("change") == "object", "an allow with an object", shown(outcome))
    found = json.loads(outcome.allow.object, parse_int=str, parse_float=str)["spec"]
    wrong = [
        f"{number} became {found.get(f'n{place}')}"
        for place, number in enumerate(NUMBERS)
        if found.get(f"n{place}") != number
    ]
    expect(not wrong, "each number as it was sent", "; ".join(wrong))


@section.check(
    "fail",
    "fail becomes a failure with the policy's message.",
    proto("See the message. Shown as ``WORKER_FAILURE``."),
    probes="answer",
)
async def fail(worker: Subject) -> None:
    """The policy itself cannot decide."""
    outcome = await answered(worker, "fail")
    expected = worker_pb2.Failure(message="failed by the probe")
    right = outcome.WhichOneof("verdict") == "failure" and outcome.failure == expected
    expect(right, shown(expected), shown(outcome))


@section.check(
    "warnings-and-annotations",
    "Allow, each change and deny keep their warnings and audit annotations.",
    proto("kubectl shows them to the user, with allow and deny alike."),
    probes="answer",
)
async def warnings_and_annotations(worker: Subject) -> None:
    """Unaltered, and warnings in order."""
    for arm in ("allow", "deny", "deny-plainly", "patch", "merge", "mutated"):
        outcome = await answered(worker, arm, **EXTRAS)
        warned = list(outcome.warnings) == EXTRAS["warnings"]
        expect(warned, f"the warnings {EXTRAS['warnings']} with {arm}", shown(outcome))
        annotated = dict(outcome.audit_annotations) == EXTRAS["auditAnnotations"]
        expect(annotated, f"the audit annotations {EXTRAS['auditAnnotations']} with {arm}", shown(outcome))


@section.check(
    "cache",
    "A cache hint becomes no-store or a time to live; without a hint the field is unset.",
    proto("Reuse it for at most this long"),
    probes="answer",
)
async def cache(worker: Subject) -> None:
    """Both hints, with allow, deny and a change."""
    for arm in ("allow", "deny", "patch"):
        outcome = await answered(worker, arm, cache="no-store")
        expect(outcome.cache.WhichOneof("hint") == "no_store", f"the hint no_store with {arm}", shown(outcome))
        for seconds, whole, nanos in ((90, 90, 0), (0.25, 0, 250_000_000)):
            outcome = await answered(worker, arm, cache=seconds)
            ttl = outcome.cache.ttl
            right = outcome.cache.WhichOneof("hint") == "ttl" and (ttl.seconds, ttl.nanos) == (whole, nanos)
            expect(right, f"a time to live of {seconds} s with {arm}", shown(outcome))
        outcome = await answered(worker, arm)
        expect(not outcome.HasField("cache"), f"no cache hint with {arm}", shown(outcome))


@section.check(
    "misuse",
    "A change in the validating phase becomes a failure that names the policy.",
    proto("Only in the mutating phase; in the validating phase it makes the answer a failure"),
    probes="misuse",
)
async def misuse(worker: Subject) -> None:
    """The phase allows no change."""
    outcome = await worker.client.review(probe("misuse"))
    named = "probe-misuse" in outcome.failure.message
    expect(outcome.WhichOneof("verdict") == "failure" and named, "a failure that names probe-misuse", shown(outcome))


@section.check(
    "panic",
    "A panic becomes a failure that names the policy without the panic's text; the worker goes on serving.",
    readme("its text and trace are in the worker's log only, because they may have secrets"),
    probes="panic",
)
async def panic(worker: Subject) -> None:
    """Several, because each may end one thread of many."""
    for _ in range(20):
        outcome = await worker.client.review(probe("panic"))
        named = outcome.WhichOneof("verdict") == "failure" and "probe-panic" in outcome.failure.message
        expect(named, "a failure that names probe-panic", shown(outcome))
        expect(b"secret" not in outcome.SerializeToString(), "a failure without the panic's text", shown(outcome))
    await worker.still_answers("20 panics")


def _is_change(outcome: worker_pb2.Outcome, kind: str, expected: Any) -> None:
    found = outcome.allow.WhichOneof("change")
    expect(outcome.WhichOneof("verdict") == "allow" and found == kind, f"an allow with {kind}", shown(outcome))
    value = json.loads(getattr(outcome.allow, kind))
    expect(value == expected, f"{kind} {json.dumps(expected)}", json.dumps(value))
