"""The decision log: which decisions it has, and nothing of what is in a Secret."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy, Mode, OnConflict
from gateway.reasons import Reason
from gateway.serving.own_refusals import internal
from gateway.telemetry.background_writer import BackgroundWriter
from gateway.telemetry.decision_document import decision_document
from gateway.telemetry.decisions import DecisionLog
from gateway.telemetry.labels import Drop
from gateway.telemetry.log_level import LogLevel
from gateway.telemetry.traces.settings import trace_settings
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import message, post
from tests.integration.running import configuration, policy, source
from tests.integration.workers import ALLOW, always, answer, deny, patch, scripted
from tests.otlp_receiver import otlp_grpc
from tests.telemetry.test_background_writer import Collected, writing
from tests.traffic import recording
from tests.world import canceled, decide, label
from tests.world import policy as value_policy

SECRETS = [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}]
AWAY = Failure(reason=Reason.WORKER_UNAVAILABLE, message="away")


def stale():
    """A decision by a stale verdict."""
    decision, _ = decide([value_policy("one")], {"one": Allow()})
    return replace(
        decision, calls=tuple(replace(call, source=Source.STALE, instead_of=AWAY) for call in decision.calls)
    )


def decided(*answers, **fields):
    """A decision of policies that answer so."""
    policies = [value_policy(f"p{index}", index=index, **fields) for index, _ in enumerate(answers)]
    return decide(policies, {f"p{index}": each for index, each in enumerate(answers)})[0]


DECISIONS = {
    "allowed": (decided(Allow()), {LogLevel.ALL}),
    "changed": (decided(label("x")), {LogLevel.ALL}),
    "denied": (decided(Deny(message="no")), {LogLevel.ALL, LogLevel.DENIED}),
    "would deny": (decided(Deny(message="no"), mode=Mode.AUDIT), {LogLevel.ALL, LogLevel.DENIED}),
    "would change": (decided(label("x"), mode=Mode.WARN), {LogLevel.ALL, LogLevel.DENIED}),
    "in conflict": (
        decided(label("x", "1"), label("x", "2"), on_conflict=OnConflict.WARN),
        {LogLevel.ALL, LogLevel.DENIED},
    ),
    "failed": (decided(AWAY), set(LogLevel)),
    "failed open": (decided(AWAY, failure_policy=FailurePolicy.IGNORE), set(LogLevel)),
    "stale": (stale(), set(LogLevel)),
    "canceled": (canceled([value_policy("p0")]), {LogLevel.ALL}),
    "failed by the gateway": (internal(decided(Allow())), set(LogLevel)),
    "denied and failed": (decided(Deny(message="no"), AWAY), {LogLevel.ALL, LogLevel.DENIED}),
}


async def lines(*decisions, level=LogLevel.ALL):
    """The lines of these decisions."""
    sink = Collected()
    async with writing(sink) as (writer, drops):
        log = DecisionLog(writer, level)
        for each in decisions:
            log.decided(each)
        await asyncio.sleep(0)  # behind the answers
    assert not drops
    return [json.loads(each) for each in sink.records if each != "closed"]


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("level", LogLevel)
async def test_the_level_selects_by_outcome(name, level):
    """Failures always, denials from ``denied`` on, what was simply allowed only at ``all``."""
    decision, levels = DECISIONS[name]
    assert len(await lines(decision, level=level)) == (level in levels)


async def test_a_line_is_the_decision_document():
    """One line of JSON for each decision, in order; nothing else."""
    decisions = [decision for decision, _ in DECISIONS.values()]
    made = [json.loads(json.dumps(decision_document(each, offset=0.0))) | {"time": ""} for each in decisions]
    assert [each | {"time": ""} for each in await lines(*decisions)] == made


async def test_a_line_is_made_behind_the_answer():
    """Not while the review waits for its observers."""
    sink = Collected()
    async with writing(sink) as (writer, _):
        DecisionLog(writer, LogLevel.ALL).decided(DECISIONS["denied"][0])
        assert not writer._records
        await asyncio.sleep(0)
        assert writer._records or sink.records


async def test_a_line_that_does_not_fit_is_not_made(monkeypatch):
    """A flood of denials costs nothing more when the log is full."""
    made = []
    monkeypatch.setattr("gateway.telemetry.decisions.decision_document", made.append)
    drops = []
    writer = BackgroundWriter(Collected(), lambda *drop: drops.append(drop), records=0)
    for _ in range(3):
        DecisionLog(writer).decided(DECISIONS["denied"][0])
    await asyncio.sleep(0)
    assert (made, drops) == ([], [(Drop.FULL, 1)] * 3)


async def test_an_error_costs_its_line_only(monkeypatch, logs):
    """A defect in the making of a line is logged and counted."""
    monkeypatch.setattr("gateway.telemetry.decisions.decision_document", lambda _: 1 / 0)
    drops = []
    writer = BackgroundWriter(Collected(), lambda *drop: drops.append(drop))
    DecisionLog(writer).decided(DECISIONS["denied"][0])
    await asyncio.sleep(0)
    assert drops == [(Drop.INTERNAL, 1)]
    assert logs()[0]["message"] == "a decision cannot be logged"


# ------------------------------------------------------------------------------------------- the whole gateway

SECRET = recording("secret-create.0m")
VALUES = list(json.loads(SECRET.body)["request"]["object"]["data"].values())
PLANTED = "planted-by-the-policy"

ALLOWED = "a change that is allowed"

CHANGES = {
    ALLOWED: patch('[{"op": "add", "path": "/data/new", "value": "planted-by-the-policy"}]'),
    "a label": patch('[{"op": "add", "path": "/metadata/labels", "value": {"l": "planted-by-the-policy"}}]'),
    "a change that is denied later": patch('[{"op": "add", "path": "/data/new", "value": "planted-by-the-policy"}]'),
    "a test that fails": patch('[{"op": "test", "path": "/data", "value": "planted-by-the-policy"}]'),
    "a patch that is cut": patch('[{"op": "add", "path": "/data/new", "value": "planted-by-the-policy"'),
    "a value of the wrong kind": patch('[{"op": "add", "path": "/data/new/deeper", "value": "planted-by-the-policy"}]'),
    "an object that is none": answer(allow=pb.Allow(object=b'"%s"' % PLANTED.encode())),
    "an answer that is none": b"\xff" + PLANTED.encode(),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_secret_is_never_shown(gateway, logs, tmp_path, name):
    """Neither a Secret's data nor what a policy wrote into it is in a log, an explanation, the dashboard or a span."""

    async def review(request_, context):
        called = pb.ReviewRequest.FromString(request_).call.policy
        return CHANGES[name] if called == "changes" else ALLOW if name == ALLOWED else deny("no")

    uid = json.loads(SECRET.body)["request"]["uid"]
    path = tmp_path / "decisions"
    async with scripted("changes", "denies", review=review) as target:
        policies = [policy("changes", rules=SECRETS), policy("denies", rules=SECRETS)]
        known = configuration(source(workers={"scripted": target}, mutating=policies))
        with otlp_grpc() as (url, receiver):
            shown = {"decision_log": str(path), "decision_log_level": LogLevel.ALL}
            variables = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
            traces = trace_settings(variables, endpoint=url, ratio=1.0)
            async with gateway(known, **shown, traces=traces) as served:
                assert (await served.send(message(SECRET))).response["allowed"] is (name == ALLOWED)
                pages = [f"/explain/{uid}", f"/explain/{uid}?o=text", f"/ui/api/reviews/{uid}"]
                answers = [await served.admin(page) for page in pages]
    assert [code for code, _ in answers] == [200, 200, 200]
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["request"]["name"] == json.loads(SECRET.body)["request"]["name"]
    assert receiver.spans
    spans = [f"{span!r} {span.resource} {span.state} {span.status}" for span in receiver.spans]
    text = json.dumps([logs(), answers, spans]) + line
    assert [found for found in (*VALUES, PLANTED) if found in text] == []


async def test_a_body_that_is_no_review_is_never_logged(gateway, logs):
    """A body that is refused is not quoted: it may be a Secret that was cut."""
    async with scripted("judge", review=always(deny())) as target:
        known = configuration(source(workers={"scripted": target}, mutating=[policy("judge", rules=SECRETS)]))
        async with gateway(known) as served:
            for body in (SECRET.body[:-20], SECRET.body.replace(b'"data":{', b'"data":[{'), SECRET.body[50:]):
                assert (await served.send(post(body))).status == 400
            broken = SECRET.body.replace(b'"userInfo":{', b'"userInfo":[{').replace(b'"object":{', b'"operation":{')
            assert (await served.send(post(broken))).status == 400
    text = json.dumps(logs())
    assert text.count("a request is no AdmissionReview") == 4
    assert [found for found in VALUES if found in text] == []
