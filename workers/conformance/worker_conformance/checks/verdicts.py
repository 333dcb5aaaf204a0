"""``verdicts.*``: verdicts are functions of their document, so the gateway can cache, share and compose them.

The checks use the ordinary calls: those of ``--calls``, of the probe policies, and of the other policies with the
settings ``{}`` and a Pod.
"""

# ruff: noqa: PLR2004 - numbers in an expectation are the expectation

import asyncio
import re
from collections.abc import Iterator
from typing import Any

from worker_conformance.check import Section, proto
from worker_conformance.checks.review import same
from worker_conformance.claims import differences, places, projected
from worker_conformance.findings import BrokenRuleError, NotCheckableError, expect, listed, shown
from worker_conformance.patches import PatchError, changed
from worker_conformance.pointers import covers, tokens
from worker_conformance.policy_calls import MUTATING, VALIDATING, OrdinaryCall
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.review_stream import calls
from worker_conformance.subject import Subject

section = Section("verdicts")

FUNCTION = proto("A verdict is a function of (policy, its version, settings, document).")

ANNOTATION_KEY = re.compile(r"[A-Za-z0-9._-]{1,63}")

MOST = 100
"""Ordinary calls that are checked. The rest of a longer file is skipped, so that a run takes seconds."""


@section.check(
    "well-formed",
    "Codes, annotation keys, times to live and changes in outcomes are valid.",
    proto("Exactly one of these must be set; none is a failure"),
)
async def well_formed(worker: Subject) -> None:
    """Each field that the contract restricts."""
    for ordinary in worker.some_calls(MOST):
        outcome = await worker.client.review(ordinary.call())
        wrong = list(_malformed(ordinary, outcome))
        expect(not wrong, f"a well-formed outcome of {ordinary.label}", f"{'; '.join(wrong)}: {shown(outcome)}")


def _malformed(ordinary: OrdinaryCall, outcome: worker_pb2.Outcome) -> Iterator[str]:
    if outcome.WhichOneof("verdict") is None:
        yield "no verdict"
    if outcome.deny.HasField("code") and not 400 <= outcome.deny.code <= 599:
        yield f"the code {outcome.deny.code} is not 400 to 599"
    for key in outcome.audit_annotations:
        if not ANNOTATION_KEY.fullmatch(key):
            yield f"{key!r} is not a valid key of an audit annotation"
    if outcome.cache.ttl.seconds < 0 or outcome.cache.ttl.nanos < 0:
        yield "the time to live is negative"
    if outcome.HasField("cache") and outcome.cache.WhichOneof("hint") is None:
        yield "the cache hint is empty"
    if ordinary.phase == VALIDATING and outcome.allow.WhichOneof("change"):
        yield "a change in the validating phase"


@section.check(
    "settings-are-accepted",
    "The policies accept the settings of the calls in --calls.",
    proto("as they passed ``ValidateSettings``"),
)
async def settings_are_accepted(worker: Subject) -> None:
    """Otherwise the other checks of this section see only failures."""
    chosen = [ordinary for ordinary in worker.some_calls(MOST) if ordinary.chosen]
    if not chosen:
        raise NotCheckableError("no --calls were given")
    for ordinary in chosen:
        outcome = await worker.client.review(ordinary.call())
        refused = outcome.failure.reason == worker_pb2.FAILURE_REASON_INVALID_SETTINGS
        expect(not refused, f"settings of {ordinary.label} that the worker accepts", shown(outcome))


@section.check("deterministic", "20 equal calls get equal outcomes.", FUNCTION)
async def deterministic(worker: Subject) -> None:
    """Concurrently, over two connections."""
    async with worker.connected() as other:
        for ordinary in worker.some_calls(MOST):
            clients = [worker.client, other] * 10
            found = await asyncio.gather(*(client.review(ordinary.call()) for client in clients))
            unlike = [one for one in found if not same(one, found[0])]
            expect(
                not unlike, f"20 equal outcomes of {ordinary.label}: {shown(found[0])}", shown(next(iter(unlike), ""))
            )


@section.check(
    "deterministic-on-the-stream",
    "On a stream, among other calls, 5 equal calls get equal outcomes.",
    FUNCTION,
    needs="stream",
)
async def deterministic_on_the_stream(worker: Subject) -> None:
    """Each call five times, in turn."""
    ordinary = worker.some_calls(MOST)
    stream = worker.client.stream()
    await stream.send(calls([one.call() for one in ordinary] * 5))
    outcomes = await stream.rest()
    for place, one in enumerate(ordinary):
        found = [outcomes.get(place + 1 + turn * len(ordinary)) for turn in range(5)]
        unlike = [other for other in found if other is None or found[0] is None or not same(other, found[0])]
        expect(not unlike, f"5 equal outcomes of {one.label}: {shown(found[0])}", shown(next(iter(unlike), "")))


@section.check(
    "changes-apply",
    "Each change applies to the object that was sent.",
    proto("an answer without an outcome, and a patch that does not apply."),
)
async def changes_apply(worker: Subject) -> None:
    """A JSON Patch, a merge patch, or an object."""
    for ordinary, outcome in await _changing(worker):
        result = _applied(ordinary, ordinary.document, outcome)
        expect(isinstance(result, dict), f"an object after the change of {ordinary.label}", shown(result))


@section.check(
    "idempotent",
    "A policy that is called with its own result makes no further change.",
    proto("In the mutating phase ``object`` is as"),
)
async def idempotent(worker: Subject) -> None:
    """Kubernetes may call it again ("reinvocation"), and the next UPDATE has the object that the policy changed."""
    for ordinary, outcome in await _changing(worker):
        once = dict(ordinary.document) | {"object": _applied(ordinary, ordinary.document, outcome)}
        again = await worker.client.review(ordinary.call(once))
        expect(again.WhichOneof("verdict") == "allow", f"an allow of {ordinary.label} for its own result", shown(again))
        twice = _applied(ordinary, once, again)
        more = dict(differences(once["object"], twice))
        expect(not more, f"no further change of {ordinary.label}", f"it changes {listed(more)}: {shown(again)}")


@section.check(
    "writes-within-claim",
    "A policy changes only the parts that it claims in writes.",
    proto("Which parts of the object the policy may change, as JSON Pointers over the object"),
)
async def writes_within_claim(worker: Subject) -> None:
    """The differences between the object before and after, by JSON Pointer."""
    looked = False
    for ordinary, outcome in await _changing(worker):
        policy = _described(worker, ordinary)
        claimed = places(policy.writes) if policy.HasField("writes") else None
        if claimed is None:
            continue
        looked = True
        after = _applied(ordinary, ordinary.document, outcome)
        found = [place for place, _ in differences(ordinary.document["object"], after)]
        outside = [place for place in found if not any(covers(claim, tokens(place)) for claim in claimed)]
        writes = listed(policy.writes.pointers.pointers)
        expect(not outside, f"changes of {ordinary.label} within {writes}", f"changes at {listed(outside)}")
    if not looked:
        raise NotCheckableError("no policy that claims writes changes an object: give --calls that it changes")


@section.check(
    "inputs-within-claim",
    "A verdict is the same for the whole request and for only the parts that the policy claims in inputs.",
    proto("Which parts of the AdmissionRequest the policy reads, as JSON Pointers (RFC 6901)"),
)
async def inputs_within_claim(worker: Subject) -> None:
    """Called with the whole document, and with what the gateway sends."""
    looked = False
    for ordinary in worker.some_calls(MOST):
        policy = _described(worker, ordinary)
        claimed = places(policy.inputs) if policy.HasField("inputs") else None
        if claimed is None:
            continue
        looked = True
        part = projected(ordinary.document, claimed)
        whole, some = await asyncio.gather(
            worker.client.review(ordinary.call()), worker.client.review(ordinary.call(part))
        )
        alike = _effect(ordinary, ordinary.document, whole) == _effect(ordinary, part, some)
        inputs = listed(policy.inputs.pointers.pointers)
        expect(
            alike,
            f"the same verdict of {ordinary.label} without what lies outside {inputs}: {shown(whole)}",
            shown(some),
        )
    if not looked:
        raise NotCheckableError("no called policy claims inputs")


async def _changing(worker: Subject) -> list[tuple[OrdinaryCall, worker_pb2.Outcome]]:
    """The ordinary calls whose outcome has a change.

    Raises:
        NotCheckableError: there are none.
    """
    found = []
    for ordinary in worker.some_calls(MOST):
        if ordinary.phase == MUTATING and isinstance(ordinary.document.get("object"), dict):
            outcome = await worker.client.review(ordinary.call())
            if outcome.allow.WhichOneof("change"):
                found.append((ordinary, outcome))
    if not found:
        raise NotCheckableError("no outcome has a change: give --calls that a policy changes")
    return found


def _described(worker: Subject, ordinary: OrdinaryCall) -> worker_pb2.PolicyDescription:
    return next(policy for policy in worker.description.policies if policy.name == ordinary.policy)


def _applied(ordinary: OrdinaryCall, document: Any, outcome: worker_pb2.Outcome) -> Any:
    try:
        return changed(document.get("object"), outcome.allow)
    except PatchError as error:
        raise BrokenRuleError(f"a change of {ordinary.label} that applies", f"{error}: {shown(outcome)}") from None


def _effect(ordinary: OrdinaryCall, document: Any, outcome: worker_pb2.Outcome) -> Any:
    """The outcome with its change as differences: patches of a part and of the whole may differ and have one effect."""
    plain = worker_pb2.Outcome.FromString(outcome.SerializeToString())
    change = None
    if plain.allow.WhichOneof("change"):
        change = sorted(map(repr, differences(document.get("object"), _applied(ordinary, document, outcome))))
        plain.allow.Clear()
    return plain.SerializeToString(deterministic=True), change
