"""``settings.*``: ``ValidateSettings`` reports every error, and ``Review`` agrees with it."""

import asyncio

import grpc

from worker_conformance.check import Section, proto, readme
from worker_conformance.findings import NotCheckableError, expect, listed, shown
from worker_conformance.pointers import is_pointer
from worker_conformance.policy_calls import first_phase, policy_call, probe
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.subject import Subject

section = Section("settings")

Found = worker_pb2.ValidateSettingsResponse

BROKEN = (b"", b" ", b"{", b'{"a":1', b'{"a":}', b"nul", b"{'a':1}", b'{"a":1}}', b'{"a":"\xff"}', b'{"a":1} x')
NO_OBJECTS = (b"[]", b'"text"', b"1", b"true", b"null", b'[{"odd":1}]')

INVALID_SETTINGS = worker_pb2.FAILURE_REASON_INVALID_SETTINGS


async def validated(worker: Subject, policy: str, settings: bytes) -> Found:
    """The response of ValidateSettings.

    Raises:
        NotCheckableError: the worker does not implement it; it is optional.
    """
    try:
        return await worker.client.validate(policy, settings)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise NotCheckableError("the worker has no ValidateSettings (UNIMPLEMENTED), which is optional") from None
        raise


def _names(worker: Subject) -> list[str]:
    if not worker.description.policies:
        raise NotCheckableError("the worker describes no policy")
    return [policy.name for policy in worker.description.policies]


@section.check(
    "empty",
    "ValidateSettings answers for the settings {} of each policy; each error has a message and a pointer.",
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
    "Settings that are not JSON are an error.",
    proto("The settings as one JSON object, never empty: no settings are ``{}``."),
)
async def not_json(worker: Subject) -> None:
    """Empty, truncated, and not UTF-8."""
    for name in _names(worker):
        for text in BROKEN:
            found = await validated(worker, name, text)
            expect(found.errors, f"an error of {name} for settings {text!r}", shown(found) + " without errors")


@section.check(
    "not-an-object", "Settings that are JSON but not an object are an error.", proto("The settings as one JSON object")
)
async def not_an_object(worker: Subject) -> None:
    """Arrays, strings, numbers, null."""
    for name in _names(worker):
        for text in NO_OBJECTS:
            found = await validated(worker, name, text)
            expect(found.errors, f"an error of {name} for settings {text.decode()}", shown(found) + " without errors")


@section.check(
    "unknown-policy",
    "Settings of an unknown policy are an error.",
    proto("The policy's name, one of those that ``Describe`` named."),
)
async def unknown_policy(worker: Subject) -> None:
    """A gRPC status is as clear as an error."""
    for name in ("no-such-policy", ""):
        try:
            found = await validated(worker, name, b"{}")
        except grpc.aio.AioRpcError:
            continue
        expect(found.errors, f"an error for policy {name!r}", shown(found) + " without errors")


@section.check(
    "errors-have-pointers",
    "One response reports all errors, each with its JSON Pointer.",
    readme("reports every error with its JSON Pointer."),
    probes="settings",
)
async def errors_have_pointers(worker: Subject) -> None:
    """An error from the author's own check, and type errors of two members."""
    found = await validated(worker, "probe-settings", b'{"odd": 2}')
    errors = [(error.pointer, error.message) for error in found.errors]
    expect(errors == [("/odd", "must be odd, is 2")], "the error ('/odd', 'must be odd, is 2')", listed(errors))
    found = await validated(worker, "probe-settings", b'{"odd": "three", "name": 4}')
    pointers = {error.pointer for error in found.errors}
    expect(pointers == {"/odd", "/name"}, "one error at /odd and one at /name in one response", shown(found))


@section.check(
    "required-and-unknown-members",
    "A missing required member and an unknown member are errors if the settings' type says so.",
    readme("Unknown members are errors if the author's type says so"),
    probes="settings",
)
async def required_and_unknown_members(worker: Subject) -> None:
    """``odd`` is required, and the other members are not known."""
    for text in (b"{}", b'{"odd": 1, "oddd": 1}', b'{"odd": 1.5}', b'{"odd": null}', b'{"odd": true}'):
        found = await validated(worker, "probe-settings", text)
        expect(found.errors, f"an error for {text.decode()}", shown(found) + " without errors")
        expect(all(error.message for error in found.errors), "a message in each error", shown(found))


@section.check(
    "valid-settings",
    "Valid settings get no errors, and a warning only for a deprecated member.",
    proto("What the operator should know about settings that are accepted, such as a deprecated field."),
    probes="settings",
)
async def valid_settings(worker: Subject) -> None:
    """With and without the deprecated member."""
    found = await validated(worker, "probe-settings", b'{"odd": 3, "name": "n"}')
    expect(not found.errors and not found.warnings, "no errors and no warnings", shown(found))
    found = await validated(worker, "probe-settings", b' {"deprecated": true, "odd": -1}\n')
    right = not found.errors and list(found.warnings) == ["deprecated goes away"]
    expect(right, "no errors and the warning 'deprecated goes away'", shown(found))


@section.check(
    "no-policy-runs",
    "ValidateSettings runs no policy.",
    proto("Must not judge anything and must have no side effects."),
    probes="sleep panic cancelled",
)
async def no_policy_runs(worker: Subject) -> None:
    """probe-sleep does not wait, and probe-panic does not panic."""
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
    "is-repeatable",
    "20 concurrent validations of the same settings get equal responses.",
    proto("Must not judge anything and must have no side effects."),
)
async def is_repeatable(worker: Subject) -> None:
    """Two settings for each policy."""
    for name in _names(worker)[:20]:
        for text in (b"{}", b'{"odd": 2, "unknown": []}'):
            found = await asyncio.gather(*(validated(worker, name, text) for _ in range(20)))
            expect(
                all(one == found[0] for one in found),
                f"20 equal responses of {name} for {text.decode()}",
                shown(found[-1]),
            )


@section.check(
    "review-agrees",
    "Review fails with INVALID_SETTINGS exactly for the settings that ValidateSettings rejects.",
    proto("The policy cannot use the settings after all."),
)
async def review_agrees(worker: Subject) -> None:
    """The two calls, for each policy and a few settings."""
    for policy in worker.description.policies:
        if policy.name == "probe-sleep":
            continue  # it would wait
        for text in (b"{}", b"[]", b'{"a":', b'{"odd": 2}', b'{"odd": 1}', b'{"no such member": 1}'):
            found = await validated(worker, policy.name, text)
            outcome = await worker.client.review(policy_call(policy.name, phase=first_phase(policy), settings=text))
            refused = outcome.failure.reason == INVALID_SETTINGS
            what = f"{'a failure INVALID_SETTINGS' if found.errors else 'no failure INVALID_SETTINGS'} of {policy.name}"
            expect(
                refused == bool(found.errors), f"{what} for {text.decode()}, as from ValidateSettings", shown(outcome)
            )


@section.check(
    "cached-settings-are-distinct",
    "Among calls with 600 different settings, the worker judges each call with its own settings.",
    readme("are converted once for each distinct text, kept (256, and 16 MiB of text), shared between calls"),
    probes="answer",
)
async def cached_settings_are_distinct(worker: Subject) -> None:
    """More settings than an SDK caches, each used twice."""
    for _ in range(2):
        called = [probe("answer", {"arm": "allow", "warnings": [f"number {number}"]}, {}) for number in range(600)]
        for start in range(0, len(called), 100):
            outcomes = await asyncio.gather(*(worker.client.review(call) for call in called[start : start + 100]))
            for number, outcome in enumerate(outcomes, start):
                right = list(outcome.warnings) == [f"number {number}"]
                expect(right, f"the warning 'number {number}' from the call's settings", shown(outcome))
