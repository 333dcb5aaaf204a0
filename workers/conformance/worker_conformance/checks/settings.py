"""``settings.*``: what ``ValidateSettings`` says, and that ``Review`` agrees."""

import asyncio

import grpc

from worker_conformance.check import Section, proto, readme
from worker_conformance.findings import NotCheckableError, expect, listed, shown
from worker_conformance.pointers import is_pointer
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.questions import first_phase, probe, question
from worker_conformance.subject import Subject

section = Section("settings")

Found = worker_pb2.ValidateSettingsResponse

BROKEN = (b"", b" ", b"{", b'{"a":1', b'{"a":}', b"nul", b"{'a':1}", b'{"a":1}}', b'{"a":"\xff"}', b'{"a":1} x')
NO_OBJECTS = (b"[]", b'"text"', b"1", b"true", b"null", b'[{"odd":1}]')

INVALID_SETTINGS = worker_pb2.FAILURE_REASON_INVALID_SETTINGS


async def validated(worker: Subject, policy: str, settings: bytes) -> Found:
    """What ValidateSettings says.

    Raises:
        NotCheckableError: the worker does not implement it, which it may.
    """
    try:
        return await worker.client.validate(policy, settings)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise NotCheckableError("the worker has no ValidateSettings (UNIMPLEMENTED), as it may") from None
        raise


def _names(worker: Subject) -> list[str]:
    if not worker.description.policies:
        raise NotCheckableError("the worker describes no policy")
    return [policy.name for policy in worker.description.policies]


@section.check(
    "empty",
    "``{}`` is judged for each policy; each error has a message and a pointer.",
    proto("What is expected and what was found, in one sentence. Required."),
)
async def empty(worker: Subject) -> None:
    """No settings."""
    for name in _names(worker):
        found = await validated(worker, name, b"{}")
        for error in found.errors:
            expect(error.message, f"a message in each error of {name}", shown(found))
            expect(is_pointer(error.pointer), f"JSON Pointers in the errors of {name}", shown(found))


@section.check(
    "not-json",
    "Settings that are no JSON are errors.",
    proto("The settings as one JSON object, never empty: no settings are ``{}``."),
)
async def not_json(worker: Subject) -> None:
    """Texts that are none."""
    for name in _names(worker):
        for text in BROKEN:
            found = await validated(worker, name, text)
            expect(found.errors, f"an error of {name} for settings {text!r}", shown(found) + " without errors")


@section.check(
    "not-an-object", "Settings that are JSON but no object are errors.", proto("The settings as one JSON object")
)
async def not_an_object(worker: Subject) -> None:
    """Arrays, texts, numbers, null."""
    for name in _names(worker):
        for text in NO_OBJECTS:
            found = await validated(worker, name, text)
            expect(found.errors, f"an error of {name} for settings {text.decode()}", shown(found) + " without errors")


@section.check(
    "unknown-policy",
    "Settings of a policy that the worker does not hold are errors.",
    proto("The policy's name, one of those that ``Describe`` named."),
)
async def unknown_policy(worker: Subject) -> None:
    """A policy that is nowhere; a status is as clear as an error."""
    for name in ("no-such-policy", ""):
        try:
            found = await validated(worker, name, b"{}")
        except grpc.aio.AioRpcError:
            continue
        expect(found.errors, f"an error for policy {name!r}", shown(found) + " without errors")


@section.check(
    "mistakes-have-places",
    "All mistakes are named at once, each at its JSON Pointer.",
    readme("reports every error with its JSON Pointer."),
    probes="settings",
)
async def mistakes_have_places(worker: Subject) -> None:
    """A check of the author's, and mistakes of type at two places."""
    found = await validated(worker, "probe-settings", b'{"odd": 2}')
    told = [(error.pointer, error.message) for error in found.errors]
    expect(told == [("/odd", "must be odd, is 2")], "the error ('/odd', 'must be odd, is 2')", listed(told))
    found = await validated(worker, "probe-settings", b'{"odd": "three", "name": 4}')
    pointers = {error.pointer for error in found.errors}
    expect(pointers == {"/odd", "/name"}, "one error at /odd and one at /name, together", shown(found))


@section.check(
    "required-and-unknown-members",
    "A missing member and an unknown one are errors where the type says so.",
    readme("Unknown members are errors if the author's type says so"),
    probes="settings",
)
async def required_and_unknown_members(worker: Subject) -> None:
    """``odd`` is required, and nothing else is known."""
    for text in (b"{}", b'{"odd": 1, "oddd": 1}', b'{"odd": 1.5}', b'{"odd": null}', b'{"odd": true}'):
        found = await validated(worker, "probe-settings", text)
        expect(found.errors, f"an error for {text.decode()}", shown(found) + " without errors")
        expect(all(error.message for error in found.errors), "a message in each error", shown(found))


@section.check(
    "good-settings",
    "Good settings have no errors, and warnings only where there is something to say.",
    proto("What the operator should know about settings that are accepted, such as a deprecated field."),
    probes="settings",
)
async def good_settings(worker: Subject) -> None:
    """With and without what is deprecated."""
    found = await validated(worker, "probe-settings", b'{"odd": 3, "name": "n"}')
    expect(not found.errors and not found.warnings, "no errors and no warnings", shown(found))
    found = await validated(worker, "probe-settings", b' {"deprecated": true, "odd": -1}\n')
    right = not found.errors and list(found.warnings) == ["deprecated goes away"]
    expect(right, "no errors and the warning 'deprecated goes away'", shown(found))


@section.check(
    "nothing-is-judged",
    "ValidateSettings runs no policy.",
    proto("Must not judge anything and must have no side effects."),
    probes="sleep panic cancelled",
)
async def nothing_is_judged(worker: Subject) -> None:
    """A sleep is not slept, and a panic does not happen."""
    found = await asyncio.gather(
        validated(worker, "probe-sleep", b'{"seconds": 3600, "token": "validated"}'),
        validated(worker, "probe-panic", b"{}"),
    )
    expect(
        not any(one.errors for one in found),
        "accepted settings of probe-sleep and probe-panic",
        listed(map(shown, found)),
    )


@section.check(
    "are-pure",
    "The same settings, validated 20 times at once, get the same answer.",
    proto("Must not judge anything and must have no side effects."),
)
async def are_pure(worker: Subject) -> None:
    """Twice the same."""
    for name in _names(worker)[:20]:
        for text in (b"{}", b'{"odd": 2, "unknown": []}'):
            found = await asyncio.gather(*(validated(worker, name, text) for _ in range(20)))
            expect(
                all(one == found[0] for one in found),
                f"20 equal answers of {name} for {text.decode()}",
                shown(found[-1]),
            )


@section.check(
    "review-agrees",
    "What ValidateSettings refuses, Review refuses as INVALID_SETTINGS; what it accepts, not.",
    proto("The policy cannot use the settings after all."),
)
async def review_agrees(worker: Subject) -> None:
    """The two calls, for each policy and a few settings."""
    for policy in worker.description.policies:
        if policy.name == "probe-sleep":
            continue  # which would sleep
        for text in (b"{}", b"[]", b'{"a":', b'{"odd": 2}', b'{"odd": 1}', b'{"no such member": 1}'):
            found = await validated(worker, policy.name, text)
            outcome = await worker.client.review(question(policy.name, phase=first_phase(policy), settings=text))
            refused = outcome.failure.reason == INVALID_SETTINGS
            what = f"{'a failure INVALID_SETTINGS' if found.errors else 'no failure INVALID_SETTINGS'} of {policy.name}"
            expect(
                refused == bool(found.errors), f"{what} for {text.decode()}, as ValidateSettings said", shown(outcome)
            )


@section.check(
    "kept-settings-are-told-apart",
    "Of 600 settings, each call is judged by its own.",
    readme("are converted once for each distinct text, kept (256, and 16 MiB of text), shared between calls"),
    probes="answer",
)
async def kept_settings_are_told_apart(worker: Subject) -> None:
    """More settings than are kept, twice around."""
    for _ in range(2):
        called = [probe("answer", {"arm": "allow", "warnings": [f"number {number}"]}, {}) for number in range(600)]
        for start in range(0, len(called), 100):
            outcomes = await asyncio.gather(*(worker.client.review(call) for call in called[start : start + 100]))
            for number, outcome in enumerate(outcomes, start):
                right = list(outcome.warnings) == [f"number {number}"]
                expect(right, f"the warning 'number {number}' that its settings ask for", shown(outcome))
