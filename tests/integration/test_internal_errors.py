"""Planted defects of the gateway: INTERNAL for each policy without a verdict; an answer with the uid, always."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from gateway.engine.engine import Engine
from gateway.policies.model import Phase
from gateway.serving import driver
from gateway.serving import review_handler as judge
from tests.integration.client import message
from tests.integration.running import configuration, policy, source
from tests.integration.workers import always, answer, deny, patch, pb, scripted
from tests.traffic import recording

MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")
LABEL = patch('[{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]')


class PlantedError(Exception):
    """A defect of the gateway."""


def broken(*arguments, **named):
    raise PlantedError("a word that must not leave the log")


@pytest.fixture
def judged(gateway):
    """``judged(recorded, review, *names)``: a gateway with policies of these names; and what it logs."""

    @asynccontextmanager
    async def serve(recorded=VALIDATING, review=None, *names, **fields):
        about = [policy(name, **fields) for name in names or ("one",)]
        async with (
            scripted(*(names or ("one",)), review=review) as target,
            gateway(configuration(source(workers={"scripted": target}, **{recorded.phase: about}))) as served,
        ):
            with capture_logs() as log:
                yield served, log

    return serve


def reported(log):
    """The messages that were logged with an exception."""
    return [entry["event"] for entry in log if entry.get("exc_info")]


def is_refused(answered, recorded):
    """An answer to this request that refuses it, as an internal error, without the exception's text."""
    assert answered.status == 200
    called = json.loads(recorded.body)
    review = answered.review
    assert (review["apiVersion"], review["kind"]) == (called["apiVersion"], "AdmissionReview")
    assert (review["response"]["uid"], review["response"]["allowed"]) == (called["request"]["uid"], False)
    assert review["response"]["status"]["code"] == 500
    assert "INTERNAL: " in review["response"]["status"]["message"]
    assert b"must not leave" not in answered.body
    assert b"Traceback" not in answered.body
    return True


async def test_a_transport_that_breaks(judged, monkeypatch):
    """A transport that raises where it should call is a failure INTERNAL of that policy."""
    async with judged() as (served, log):
        monkeypatch.setattr(type(served.gateway.workers), "call", broken)
        assert is_refused(await served.send(message(VALIDATING)), VALIDATING)
    assert reported(log) == ["calling a worker failed inside the gateway"]


async def test_an_answer_that_cannot_be_read(judged, monkeypatch):
    """An exception while a worker's answer is read is a failure INTERNAL of that policy."""
    monkeypatch.setattr("gateway.transports.grpc.connection.outcome_answer", broken)
    async with judged() as (served, log):
        assert is_refused(await served.send(message(VALIDATING)), VALIDATING)
    assert reported(log) == ["calling a worker failed inside the gateway"]


@pytest.mark.parametrize("event", ["start", "answered"])
@pytest.mark.parametrize("recorded", [MUTATING, VALIDATING], ids=["mutating", "validating"])
async def test_a_heart_that_breaks(judged, monkeypatch, recorded, event):
    """An exception while deciding is a failure INTERNAL of each policy not judged yet, and the review is decided."""
    monkeypatch.setattr(Engine, event, broken)
    async with judged(recorded) as (served, log):
        assert is_refused(await served.send(message(recorded)), recorded)
        (decision,) = served.decisions.values()
        assert [call.answer.reason for call in decision.calls] == ["INTERNAL"]
    assert reported(log) == ["deciding a review failed inside the gateway"]


async def test_what_was_judged_stays_judged(judged, monkeypatch):
    """A denial before the internal error counts; an INTERNAL under Ignore lets pass what is left, loudly."""
    real = Engine.answered
    first = []

    def once(self, *arguments):
        if first:
            broken()
        first.append(arguments)
        return real(self, *arguments)

    monkeypatch.setattr(Engine, "answered", once)
    async with judged(VALIDATING, always(deny("judged in time")), "one", "two", failurePolicy="Ignore") as (served, _):
        response = (await served.send(message(VALIDATING))).response
        assert not response["allowed"]
        assert "judged in time" in response["status"]["message"]
        assert "INTERNAL" in response["warnings"][0]


async def test_a_change_that_breaks_us_changes_nothing(judged, monkeypatch):
    """An exception while a patch is applied, under Ignore: allowed without a patch, with a warning."""
    monkeypatch.setattr("gateway.engine.object_state.apply_change", broken)
    async with judged(MUTATING, always(LABEL), failurePolicy="Ignore") as (served, log):
        response = (await served.send(message(MUTATING))).response
        assert response["allowed"]
        assert "patch" not in response
        assert "INTERNAL" in response["warnings"][0]
    assert reported(log) == ["deciding a review failed inside the gateway"]


@pytest.mark.parametrize(
    ("owner", "name"),
    [(judge, "encode"), (driver.Driver, "decide"), (judge, "Engine")],
    ids=["encode", "decide", "build"],
)
async def test_whatever_breaks_there_is_an_answer(judged, monkeypatch, owner, name):
    """Where no decision can be made or written, even failurePolicy Ignore is not called: the request is refused."""
    real = getattr(owner, name)
    once = []

    def fails_once(*arguments, **named):
        if once:
            return real(*arguments, **named)
        once.append(True)
        return broken()

    monkeypatch.setattr(owner, name, fails_once)
    async with judged(failurePolicy="Ignore") as (served, log):
        assert is_refused(await served.send(message(VALIDATING)), VALIDATING)
        # It is a bad event of the objective, and can be explained.
        assert served.metric("reviews_total", phase="validating", outcome="failed") == 1
        (decision,) = served.decisions.values()
        assert (decision.outcome, decision.reason, decision.response.allowed) == ("failed", "INTERNAL", False)
        status, text = await served.admin(f"/explain/{decision.request.uid}?o=text")
        assert (status, "The gateway refused it: INTERNAL: " in text) == (200, True)
        assert (await served.send(message(VALIDATING))).response["allowed"]
    assert reported(log) == ["a review could not be decided; it is refused"]


async def test_a_review_that_is_cancelled_inside_the_gateway_is_a_failure(judged, monkeypatch):
    """Not one that the client canceled: it is answered, with HTTP 500, and counts as failed."""

    def cancels(_driver):
        raise asyncio.CancelledError

    monkeypatch.setattr(driver.Driver, "decide", cancels)
    async with judged() as (served, _):
        assert (await served.send(message(VALIDATING))).status == 500
        (decision,) = served.decisions.values()
        assert (decision.outcome, decision.reason) == ("failed", "INTERNAL")
        assert served.metric("reviews_canceled_total", phase="validating") == 0


async def test_who_looks_on_changes_nothing(judged):
    """A consumer of decisions that raises is logged, and the answer is what it was."""
    async with judged(VALIDATING, always(answer(allow=pb.Allow(), warnings=["w"]))) as (served, log):
        served.decided = broken
        response = (await served.send(message(VALIDATING))).response
        assert response == {"uid": json.loads(VALIDATING.body)["request"]["uid"], "allowed": True, "warnings": ["w"]}
    assert reported(log) == ["an observer of decisions failed"]


@pytest.mark.parametrize("phase", Phase)
async def test_without_a_policy_everything_passes(gateway, phase):
    """A chain that is known to be empty allows: that is knowing, not ignorance."""
    recorded = {Phase.MUTATING: MUTATING, Phase.VALIDATING: VALIDATING}[phase]
    async with scripted("one") as target, gateway(configuration(source(workers={"scripted": target}))) as served:
        response = (await served.send(message(recorded))).response
        assert response == {"uid": json.loads(recorded.body)["request"]["uid"], "allowed": True}
