"""``verdicts.*``: whether verdicts are what a gateway may keep, share and compose: functions of their document.

Made with the ordinary calls: those of ``--calls``, of the probe policies, and of the rest with ``{}`` and a Pod.
"""

# ruff: noqa: PLR2004 - numbers in an expectation are the expectation

import asyncio
import re
from collections.abc import Iterator
from typing import Any

from worker_conformance.check import Section, proto
from worker_conformance.checks.review import same
from worker_conformance.claims import differences, places, projected
from worker_conformance.conversation import calls
from worker_conformance.findings import BrokenRuleError, NotCheckableError, expect, listed, shown
from worker_conformance.patching import PatchError, changed
from worker_conformance.pointers import covers, tokens
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.questions import MUTATING, VALIDATING, OrdinaryCall
from worker_conformance.subject import Subject

section = Section("verdicts")

FUNCTION = proto("A verdict is a function of (policy, its version, settings, document).")

ANNOTATION_KEY = re.compile(r"[A-Za-z0-9._-]{1,63}")

MOST = 100
"""Ordinary calls that are looked at; of a longer file the rest is left out, since a report is wanted in seconds."""


@section.check(
    "well-formed",
    "Outcomes keep the contract's forms: codes, keys of annotations, times to live, changes.",
    proto("Exactly one of these must be set; none is a failure"),
)
async def well_formed(worker: Subject) -> None:
    """Each field that has a form."""
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
            yield f"{key!r} is no key of an audit annotation"
    if outcome.cache.ttl.seconds < 0 or outcome.cache.ttl.nanos < 0:
        yield "the time to live is negative"
    if outcome.HasField("cache") and outcome.cache.WhichOneof("hint") is None:
        yield "the cache hint says nothing"
    if ordinary.phase == VALIDATING and outcome.allow.WhichOneof("change"):
        yield "a change in the validating phase"


@section.check(
    "settings-are-accepted",
    "The policies accept the settings of the calls in --calls.",
    proto("as they passed ``ValidateSettings``"),
)
async def settings_are_accepted(worker: Subject) -> None:
    """Otherwise the other checks of this section look at nothing but failures."""
    chosen = [ordinary for ordinary in worker.some_calls(MOST) if ordinary.chosen]
    if not chosen:
        raise NotCheckableError("there is no --calls")
    for ordinary in chosen:
        outcome = await worker.client.review(ordinary.call())
        refused = outcome.failure.reason == worker_pb2.FAILURE_REASON_INVALID_SETTINGS
        expect(not refused, f"settings of {ordinary.label} that the worker accepts", shown(outcome))


@section.check("deterministic", "The same call, put 20 times, gets equal outcomes.", FUNCTION)
async def deterministic(worker: Subject) -> None:
    """At the same time, and over two connections."""
    async with worker.connected() as other:
        for ordinary in worker.some_calls(MOST):
            clients = [worker.client, other] * 10
            found = await asyncio.gather(*(client.review(ordinary.call()) for client in clients))
            unlike = [one for one in found if not same(one, found[0])]
            expect(
                not unlike, f"20 equal outcomes of {ordinary.label}: {shown(found[0])}", shown(next(iter(unlike), ""))
            )


@section.check("deterministic-on-the-stream", "On a stream too, among all other calls.", FUNCTION, needs="stream")
async def deterministic_on_the_stream(worker: Subject) -> None:
    """Every call five times, in turn."""
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
    "A policy that is called again about its own result changes nothing.",
    proto("In the mutating phase ``object`` is as"),
)
async def idempotent(worker: Subject) -> None:
    """Kubernetes may call again ("reinvocation"), and the same rule sees each object at its next UPDATE."""
    for ordinary, outcome in await _changing(worker):
        once = dict(ordinary.document) | {"object": _applied(ordinary, ordinary.document, outcome)}
        again = await worker.client.review(ordinary.call(once))
        expect(again.WhichOneof("verdict") == "allow", f"an allow of {ordinary.label} for its own result", shown(again))
        twice = _applied(ordinary, once, again)
        more = dict(differences(once["object"], twice))
        expect(not more, f"no further change of {ordinary.label}", f"it changes {listed(more)}: {shown(again)}")


@section.check(
    "writes-within-claim",
    "A policy changes nothing outside of the writes that it claims.",
    proto("Which parts of the object the policy may change, as JSON Pointers over the object"),
)
async def writes_within_claim(worker: Subject) -> None:
    """The difference between before and after, place by place."""
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
        raise NotCheckableError("no call changes anything by a policy that claims writes: --calls with some")


@section.check(
    "inputs-within-claim",
    "A verdict is the same for the whole request as for the claimed parts alone.",
    proto("Which parts of the AdmissionRequest the policy reads, as JSON Pointers (RFC 6901)"),
)
async def inputs_within_claim(worker: Subject) -> None:
    """Called with everything, and with what the gateway would send."""
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
        raise NotCheckableError("no policy that is called claims inputs")


async def _changing(worker: Subject) -> list[tuple[OrdinaryCall, worker_pb2.Outcome]]:
    """The ordinary calls that are answered with a change.

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
        raise NotCheckableError("no call is answered with a change: --calls with some")
    return found


def _described(worker: Subject, ordinary: OrdinaryCall) -> worker_pb2.PolicyDescription:
    return next(policy for policy in worker.description.policies if policy.name == ordinary.policy)


def _applied(ordinary: OrdinaryCall, document: Any, outcome: worker_pb2.Outcome) -> Any:
    try:
        return changed(document.get("object"), outcome.allow)
    except PatchError as error:
        raise BrokenRuleError(f"a change of {ordinary.label} that applies", f"{error}: {shown(outcome)}") from None


def _effect(ordinary: OrdinaryCall, document: Any, outcome: worker_pb2.Outcome) -> Any:
    """The outcome with its change as what it does: a patch of a part and one of the whole may be spelt differently."""
    plain = worker_pb2.Outcome.FromString(outcome.SerializeToString())
    change = None
    if plain.allow.WhichOneof("change"):
        change = sorted(map(repr, differences(document.get("object"), _applied(ordinary, document, outcome))))
        plain.allow.Clear()
    return plain.SerializeToString(deterministic=True), change
