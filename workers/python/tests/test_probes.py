"""The probe policies of the conformance kit, which are the same in every SDK."""

import asyncio
import json

import grpc
import pytest

from admission_worker import Worker, deny
from workers.python.tests.client import MUTATING, PATIENCE, VALIDATING, batch, connected, pass_time, policy_call

NAMES = {
    *("probe-answer", "probe-misuse", "probe-echo", "probe-sleep", "probe-cancelled", "probe-panic", "probe-flood"),
    *("probe-settings", "probe-label", "probe-version"),
}


@pytest.fixture
async def client():
    worker = Worker("test", version="1")
    worker.validating("own")(lambda request: deny("own"))
    async with connected(worker, conformance=True) as client:
        yield client


async def _answer(client, document=None, **settings):
    return await client.review(policy_call("probe-answer", phase=MUTATING, settings=settings, document=document or {}))


async def test_they_are_served_only_with_conformance():
    """Without --conformance a worker serves only its own policies."""
    worker = Worker("test", version="1")
    async with connected(worker) as client:
        assert (await client.describe()).policies == []
    async with connected(worker, conformance=True) as client:
        assert {policy.name for policy in (await client.describe()).policies} == NAMES


async def test_a_policy_of_the_same_name_is_an_error():
    """A policy with a probe policy's name is an error at the start."""
    worker = Worker("test", version="1")
    worker.validating("probe-echo")(lambda request: None)
    with pytest.raises(ValueError, match="probe-echo"):
        worker.serve(conformance=True)


@pytest.mark.parametrize(
    ("arm", "change"),
    [
        ("patch", {"json_patch": [{"op": "add", "path": "/metadata/annotations", "value": {"probe": "patched"}}]}),
        ("merge", {"merge_patch": {"metadata": {"annotations": {"probe": "merged"}}}}),
        ("mutated", {"object": {"metadata": {"annotations": {"a": "b", "probe": "mutated"}}, "n": 1}}),
        ("allow", {}),
        ("nothing", {}),
    ],
)
async def test_an_arm_that_allows(client, arm, change):
    """Each arm answers with its change."""
    document = {"object": {"metadata": {"annotations": {"a": "b"}}, "n": 1}}
    outcome = await _answer(client, document, arm=arm)
    assert outcome.WhichOneof("verdict") == "allow"
    assert {field.name: json.loads(content) for field, content in outcome.allow.ListFields()} == change


async def test_an_arm_that_denies(client):
    """A denial has all fields, or none."""
    denied = (await _answer(client, arm="deny")).deny
    assert (denied.code, denied.message, denied.reason) == (409, "denied by the probe", "Conflict")
    details = denied.details
    assert (details.name, details.group, details.kind) == ("probe", "probes.example.com", "Probe")
    assert (details.uid, details.retry_after_seconds) == ("probe-uid", 7)
    (cause,) = details.causes
    assert (cause.reason, cause.message, cause.field) == ("FieldValueInvalid", "a cause", "spec.probe")
    plain = (await _answer(client, arm="deny-plainly")).deny
    assert (plain.message, plain.HasField("details")) == ("denied", False)


async def test_an_arm_that_fails(client):
    """The arm fail is a failure with its message."""
    assert (await _answer(client, arm="fail")).failure.message == "failed by the probe"


@pytest.mark.parametrize(("cache", "hint"), [("no-store", "no_store"), (1.5, "ttl"), (0, "ttl")])
async def test_what_goes_with_an_answer(client, cache, hint):
    """An answer has the warnings, audit annotations and cache hint of its settings."""
    settings = {"arm": "deny", "warnings": ["w", "x"], "auditAnnotations": {"k": "v"}, "cache": cache}
    outcome = await _answer(client, **settings)
    assert list(outcome.warnings) == ["w", "x"]
    assert dict(outcome.audit_annotations) == {"k": "v"}
    assert outcome.cache.WhichOneof("hint") == hint
    if hint == "ttl":
        assert outcome.cache.ttl.ToNanoseconds() == cache * 1e9


async def test_echo_gives_the_document_byte_for_byte(client):
    """probe-echo returns the document's bytes."""
    document = '{ "object" : {"a": 1.0, "é": "\\u00e9"},"x":1 }'.encode()
    outcome = await client.review(policy_call("probe-echo", document=document, uid="u-1"))
    assert (outcome.deny.code, outcome.deny.message) == (422, document.decode())
    assert dict(outcome.audit_annotations) == {"uid": "u-1", "traceparent": ""}


async def test_a_change_while_validating_is_a_failure(client):
    """A change in the validating phase and a panic are failures, without the panic's text."""
    assert "only a mutating policy" in (await client.review(policy_call("probe-misuse"))).failure.message
    outcome = await client.review(policy_call("probe-panic"))
    assert "RuntimeError" in outcome.failure.message
    assert "secret" not in outcome.failure.message


def _sleep(token, seconds=86400, **fields):
    return policy_call("probe-sleep", settings={"seconds": seconds, "token": token}, **fields)


async def _is_cancelled(client, token):
    outcome = await client.review(policy_call("probe-cancelled", settings={"token": token}))
    return dict(outcome.audit_annotations) == {"cancelled": "true"}


async def test_a_sleep_that_is_cancelled_is_remembered(client):
    """A sleep is cancelled by a cancel, its timeout or its deadline, and only then remembered."""
    calls = client.stream()
    await calls.send(batch(_sleep("a"), _sleep("b", timeout=3600), _sleep("c", seconds=0.001)))
    assert (await calls.receive())[3].WhichOneof("verdict") == "allow"
    pass_time(3600)
    assert (await calls.receive())[2].WhichOneof("verdict") == "failure"
    await calls.send(batch(cancel=[1]))
    async with asyncio.timeout(PATIENCE):
        for token in ("a", "b"):
            while not await _is_cancelled(client, token):  # noqa: ASYNC110 - the worker sends no event
                await asyncio.sleep(0.01)
        seconds = 0.2
        while not await _is_cancelled(client, "d"):  # on a busy machine it may not even begin in its time
            with pytest.raises(grpc.aio.AioRpcError, match="DEADLINE_EXCEEDED"):
                await client.review(_sleep("d"), seconds=seconds)
            seconds *= 2
    assert not await _is_cancelled(client, "c")
    assert await calls.rest() == {}


async def test_a_flood_has_the_requested_size(client):
    """An answer beyond a message's size is a failure with the size."""
    outcome = await client.review(policy_call("probe-flood", settings={"bytes": 100_000}))
    assert outcome.deny.message == "x" * 100_000
    outcome = await client.review(policy_call("probe-flood", settings={"bytes": 50_000_000}))
    assert "the answer has 500000" in outcome.failure.message


@pytest.mark.parametrize(
    ("settings", "errors", "warnings"),
    [
        ({"odd": 1}, [], []),
        ({"odd": 2}, [("/odd", "must be odd, is 2")], []),
        ({"odd": 3, "deprecated": False}, [], ["deprecated goes away"]),
        ({}, [("/odd", "Required value")], []),
        ({"odd": 1, "other": 1}, [("/other", "Unknown member; known are: deprecated, name, odd")], []),
        ({"odd": "1", "name": 2}, [("/odd", "Expected `int`, got `str`"), ("/name", "Expected `str`, got `int`")], []),
    ],
)
async def test_settings_are_checked(client, settings, errors, warnings):
    """All errors are reported at once, each at its place."""
    found = await client.validate("probe-settings", settings)
    assert [(one.pointer, one.message) for one in found.errors] == errors
    assert list(found.warnings) == warnings


@pytest.mark.parametrize(
    ("document", "operations"),
    [
        ({}, None),
        ({"object": {"metadata": {}}}, [{"op": "add", "path": "/metadata/labels", "value": {"probe": "yes"}}]),
        (
            {"object": {"metadata": {"labels": {"a": "b"}}}},
            [{"op": "add", "path": "/metadata/labels/probe", "value": "yes"}],
        ),
        ({"object": {"metadata": {"labels": {"probe": "no"}}}}, None),
    ],
)
async def test_a_label_is_added_where_it_is_missing(client, document, operations):
    """probe-label adds the label only if it is missing."""
    outcome = await client.review(policy_call("probe-label", phase=MUTATING, document=document))
    assert (json.loads(outcome.allow.json_patch) if outcome.allow.json_patch else None) == operations


async def test_what_they_claim_and_their_versions(client):
    """probe-version has its own version, the others the worker's."""
    described = {policy.name: policy for policy in (await client.describe()).policies}
    assert described["probe-version"].version == "probe-7"
    assert described["probe-echo"].inputs.HasField("everything")
    assert not described["probe-answer"].HasField("inputs")
    assert not described["probe-answer"].HasField("writes")
    assert list(described["probe-label"].writes.pointers.pointers) == ["/metadata/labels"]
    for name in ("probe-sleep", "probe-panic", "probe-settings"):
        assert described[name].inputs.WhichOneof("claim") == "pointers"
        assert list(described[name].inputs.pointers.pointers) == []
    assert (await client.review(policy_call("probe-version"))).version == "probe-7"
    assert (await client.review(policy_call("own", phase=VALIDATING))).version == "1"
