"""The probe policies of the conformance kit: served when they are asked for, and then as every SDK serves them."""

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


async def test_they_are_served_only_when_they_are_called_for():
    """In production a worker holds its own policies and nothing else."""
    worker = Worker("test", version="1")
    async with connected(worker) as client:
        assert (await client.describe()).policies == []
    async with connected(worker, conformance=True) as client:
        assert {policy.name for policy in (await client.describe()).policies} == NAMES


async def test_a_policy_of_the_same_name_is_an_error():
    """Said at the start, in the author's words."""
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
    """With the change that it is named for."""
    document = {"object": {"metadata": {"annotations": {"a": "b"}}, "n": 1}}
    outcome = await _answer(client, document, arm=arm)
    assert outcome.WhichOneof("verdict") == "allow"
    assert {field.name: json.loads(content) for field, content in outcome.allow.ListFields()} == change


async def test_an_arm_that_denies(client):
    """With everything that a denial can hold, and with nothing."""
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
    """Is a failure in these words."""
    assert (await _answer(client, arm="fail")).failure.message == "failed by the probe"


@pytest.mark.parametrize(("cache", "hint"), [("no-store", "no_store"), (1.5, "ttl"), (0, "ttl")])
async def test_what_goes_with_an_answer(client, cache, hint):
    """Warnings, audit annotations and the cache hint, as they were asked for."""
    settings = {"arm": "deny", "warnings": ["w", "x"], "auditAnnotations": {"k": "v"}, "cache": cache}
    outcome = await _answer(client, **settings)
    assert list(outcome.warnings) == ["w", "x"]
    assert dict(outcome.audit_annotations) == {"k": "v"}
    assert outcome.cache.WhichOneof("hint") == hint
    if hint == "ttl":
        assert outcome.cache.ttl.ToNanoseconds() == cache * 1e9


async def test_echo_gives_the_document_byte_for_byte(client):
    """Whatever stands between the members."""
    document = '{ "object" : {"a": 1.0, "é": "\\u00e9"},"x":1 }'.encode()
    outcome = await client.review(policy_call("probe-echo", document=document, uid="u-1"))
    assert (outcome.deny.code, outcome.deny.message) == (422, document.decode())
    assert dict(outcome.audit_annotations) == {"uid": "u-1", "traceparent": ""}


async def test_a_change_while_validating_is_a_failure(client):
    """A panic too, whose text stays here."""
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
    """On the stream by a cancel or by its time, on Review by its deadline; one that wakes up is not."""
    calls = client.stream()
    await calls.send(batch(_sleep("a"), _sleep("b", timeout=3600), _sleep("c", seconds=0.001)))
    assert (await calls.receive())[3].WhichOneof("verdict") == "allow"
    pass_time(3600)
    assert (await calls.receive())[2].WhichOneof("verdict") == "failure"
    await calls.send(batch(cancel=[1]))
    async with asyncio.timeout(PATIENCE):
        for token in ("a", "b"):
            while not await _is_cancelled(client, token):  # noqa: ASYNC110 - the worker tells when it is called
                await asyncio.sleep(0.01)
        seconds = 0.2
        while not await _is_cancelled(client, "d"):  # on a busy machine it may not even begin in its time
            with pytest.raises(grpc.aio.AioRpcError, match="DEADLINE_EXCEEDED"):
                await client.review(_sleep("d"), seconds=seconds)
            seconds *= 2
    assert not await _is_cancelled(client, "c")
    assert await calls.rest() == {}


async def test_a_flood_has_the_size_that_was_called_for(client):
    """Up to what fits a message; beyond that it is a failure that says how much."""
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
async def test_settings_are_judged(client, settings, errors, warnings):
    """Every mistake at its place, all at once."""
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
    """And nowhere else: it is idempotent."""
    outcome = await client.review(policy_call("probe-label", phase=MUTATING, document=document))
    assert (json.loads(outcome.allow.json_patch) if outcome.allow.json_patch else None) == operations


async def test_what_they_claim_and_their_versions(client):
    """As the kit expects it; the other policies have the worker's version."""
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
