"""``describe.*``: the worker's description is well-formed, stable and accurate."""

import asyncio
import re

from worker_conformance.check import Section, proto, readme
from worker_conformance.client import WORKER
from worker_conformance.findings import BrokenRuleError, NotCheckableError, expect, listed, shown
from worker_conformance.pointers import is_pointer
from worker_conformance.policy_calls import MUTATING, VALIDATING, policy_call, probe, sleep
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.schemas import errors
from worker_conformance.subject import Subject
from worker_conformance.unknown_fields import UNKNOWN_FIELDS

section = Section("describe")

LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""A DNS-1123 label: at most 63 characters."""

MOST_POINTERS = 256
"""In one claim; the gateway takes no more."""

UNKNOWN_POLICY = worker_pb2.FAILURE_REASON_UNKNOWN_POLICY


@section.check(
    "is-complete",
    "The worker has a version, and each policy has a name.",
    proto("It must change whenever a verdict may change: it is part of the cache key of verdicts. Required."),
)
async def is_complete(worker: Subject) -> None:
    """The required fields."""
    described = worker.description
    expect(described.version, "a version", shown(described))
    expect(all(policy.name for policy in described.policies), "a name of each policy", shown(described))


@section.check(
    "names-are-labels",
    "Policy names are unique DNS-1123 labels.",
    proto(
        "The policy's name, as the configuration's ``policy`` names it: a DNS-1123 label such as \"required-labels\"."
    ),
)
async def names_are_labels(worker: Subject) -> None:
    """Names."""
    names = [policy.name for policy in worker.description.policies]
    wrong = [name for name in names if not LABEL.fullmatch(name)]
    expect(not wrong, "DNS-1123 labels", listed(map(repr, wrong)))
    twice = sorted({name for name in names if names.count(name) > 1})
    expect(not twice, "each name once", f"more than once: {listed(twice)}")


@section.check(
    "phases-are-valid",
    "Each policy has one or both of the known phases, without duplicates.",
    proto("The phases in which the policy can be used; at least one."),
)
async def phases_are_valid(worker: Subject) -> None:
    """Phases."""
    for policy in worker.description.policies:
        phases = list(policy.phases)
        good = phases and len(set(phases)) == len(phases) and set(phases) <= {MUTATING, VALIDATING}
        expect(good, f"phases of {policy.name}: mutating, validating or both", shown(policy))


@section.check(
    "claims-are-pointers",
    "Each claim is everything or a list of JSON Pointers, none of them empty.",
    proto('JSON Pointers (RFC 6901). "" is rejected: use ``everything``.'),
)
async def claims_are_pointers(worker: Subject) -> None:
    """Claims."""
    for policy in worker.description.policies:
        for what in ("inputs", "writes"):
            if not policy.HasField(what):
                continue
            claim = getattr(policy, what)
            arm = claim.WhichOneof("claim")
            expect(arm, f"{what} of {policy.name} to be everything, pointers, or unset", "an empty claim")
            found = list(claim.pointers.pointers)
            wrong = [text for text in found if not text or not is_pointer(text)]
            expect(not wrong, f"JSON Pointers in {what} of {policy.name}", listed(map(repr, wrong)))
            few = len(found) <= MOST_POINTERS
            expect(few, f"at most {MOST_POINTERS} pointers in {what} of {policy.name}", f"{len(found)}")


@section.check(
    "writes-belong-to-mutating",
    "Only policies of the mutating phase claim writes.",
    readme("writes of a validating policy"),
)
async def writes_belong_to_mutating(worker: Subject) -> None:
    """Writes."""
    for policy in worker.description.policies:
        claimed = policy.HasField("writes") and (
            policy.writes.WhichOneof("claim") == "everything" or policy.writes.pointers.pointers
        )
        expect(
            not claimed or MUTATING in policy.phases,
            f"no writes of {policy.name}, which is not a mutating policy",
            shown(policy),
        )


@section.check(
    "schemas-parse",
    "Each settings schema is a JSON Schema (2020-12).",
    proto("A JSON Schema (2020-12) of the settings, as JSON text, for documentation and editors."),
)
async def schemas_parse(worker: Subject) -> None:
    """Schemas."""
    with_schema = [policy for policy in worker.description.policies if policy.settings_schema]
    if not with_schema:
        raise NotCheckableError("no policy has a schema")
    for policy in with_schema:
        found = list(errors(policy.settings_schema))
        expect(not found, f"a JSON Schema of the settings of {policy.name}", "; ".join(found))


@section.check(
    "is-stable",
    "Describe returns the same description on another connection and for another gateway version.",
    proto("A worker must not behave differently by it."),
)
async def is_stable(worker: Subject) -> None:
    """``gateway_version`` is for logs."""
    first = worker.description.SerializeToString(deterministic=True)
    async with worker.connected() as client:
        for version in ("", "0.0.1", "999.0.0-\u00e4"):
            again = await client.describe(version)
            same = again.SerializeToString(deterministic=True) == first
            expect(same, f"the same description for gateway version {version!r}", shown(again))


@section.check(
    "is-cheap",
    "The worker answers 300 calls of Describe, 30 at a time, while 100 policy calls are open.",
    proto("Must be cheap, and must not fail while the worker can judge."),
)
async def is_cheap(worker: Subject) -> None:
    """Describe under load."""
    busy = [worker.client.reviewing(sleep(60)) for _ in range(100)] if worker.has_policy("probe-sleep") else []
    try:
        for _ in range(10):
            found = await asyncio.gather(*(worker.client.describe() for _ in range(30)))
            expect(all(one == worker.description for one in found), "the same description each time", "another one")
    finally:
        for call in busy:
            call.cancel()


@section.check(
    "is-accurate",
    "Each policy can be called in each of its described phases, and in no other.",
    proto("The worker holds no such policy, or not for this phase."),
)
async def is_accurate(worker: Subject) -> None:
    """The description agrees with Review."""
    for policy in worker.description.policies:
        settings = {"probe-answer": {"arm": "allow"}, "probe-sleep": {"seconds": 0}}.get(policy.name, {})
        for phase in (MUTATING, VALIDATING):
            outcome = await worker.client.review(policy_call(policy.name, phase=phase, settings=settings))
            unknown = outcome.failure.reason == UNKNOWN_POLICY
            where = f"{policy.name} in {worker_pb2.Phase.Name(phase)}"
            if phase in policy.phases:
                answered = outcome.WhichOneof("verdict") and not unknown
                expect(answered, f"an outcome of {where}, which is described", shown(outcome))
            else:
                expect(unknown, f"FAILURE_REASON_UNKNOWN_POLICY of {where}, which is not described", shown(outcome))


@section.check(
    "outcome-versions",
    "An outcome's version is the policy's, else the worker's, or it is empty.",
    proto("The version of the policy that judged, equal to the one in its description"),
)
async def outcome_versions(worker: Subject) -> None:
    """Versions of outcomes."""
    described = {policy.name: policy.version or worker.description.version for policy in worker.description.policies}
    for ordinary in worker.some_calls(100):
        outcome = await worker.client.review(ordinary.call())
        right = outcome.version in {"", described[ordinary.policy]}
        expect(right, f"version {described[ordinary.policy]!r} in the outcome of {ordinary.label}", shown(outcome))


@section.check(
    "own-versions",
    "A policy's own version is in its description and in its outcomes.",
    readme("always the policy's: its own, else the worker's"),
    probes="version settings",
)
async def own_versions(worker: Subject) -> None:
    """A probe policy with its own version, and one without."""
    own, others = await asyncio.gather(
        worker.client.review(probe("version")), worker.client.review(probe("settings", {"odd": 1}))
    )
    expect(own.version == "probe-7", "version 'probe-7' in an outcome of probe-version", shown(own))
    expected = worker.description.version
    expect(others.version == expected, f"version {expected!r} in an outcome of probe-settings", shown(others))
    version = {policy.name: policy.version for policy in worker.description.policies}["probe-version"]
    expect(version == "probe-7", "version 'probe-7' in the description of probe-version", repr(version))


@section.check(
    "ignores-unknown-fields",
    "Describe ignores unknown fields, which a newer gateway may send.",
    proto("Fields unknown to the receiver are ignored."),
)
async def ignores_unknown_fields(worker: Subject) -> None:
    """A DescribeRequest with unknown fields."""
    request = worker_pb2.DescribeRequest(gateway_version="9").SerializeToString() + UNKNOWN_FIELDS
    answer = await worker.client.call(WORKER + "Describe", request, worker_pb2.DescribeResponse.FromString)
    if answer != worker.description:
        raise BrokenRuleError("the same description", shown(answer))
