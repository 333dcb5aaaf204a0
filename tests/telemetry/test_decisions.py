"""The decision log: enough to answer who was denied, and nothing of what was in the object."""

import io
import json

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import EVERYTHING, FailurePolicy, Mode, OnConflict, Phase
from gateway.reasons import Reason
from gateway.telemetry.decisions import DecisionLog
from gateway.telemetry.logs import configure_logs
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import message, post
from tests.integration.running import configuration, policy, source
from tests.integration.workers import always, answer, deny, patch, scripted
from tests.traffic import recording
from tests.world import decide, label, request
from tests.world import patch as patch_of
from tests.world import policy as value_policy

SECRETS = [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}]


def logged(policies, behaviours, **options):
    """The log lines of one decision."""
    decision, _ = decide(policies, behaviours, **options)
    with capture_logs() as entries:
        DecisionLog().decided(decision)
    return entries


def test_a_line_is_bounded():
    """Whatever a worker says and a request is called, a line stays short, and says what it leaves out."""
    on = request(uid="u" * 100_000, name="n" * 100_000)
    many = patch_of(
        *({"op": "add", "path": f"/metadata/labels/{'k' * 5000}{number}", "value": "1"} for number in range(99))
    )
    policies = [value_policy("many"), value_policy("one", index=1)]
    (entry,) = logged(policies, {"many": many, "one": Deny(message="m" * 1_000_000)}, on=on)
    assert len(json.dumps(entry, default=str)) < 100_000
    assert [reported.get("more_changed") for reported in entry["policies"]] == [49, None]


def test_who_changed_what_is_reported():
    """The fields that came out changed, each with its last writer; places only."""
    chain = [value_policy("one"), value_policy("two", index=1), value_policy("three", index=2, mode=Mode.WARN)]
    answers = {"one": label("x", "hunter2"), "two": label("x", "hunter3"), "three": Deny(message="would")}
    (entry,) = logged(chain, answers)
    assert entry["changed"] == ["add /metadata/labels/x by test/two.test.example.com"]
    assert "hunter" not in str(entry)


@pytest.mark.parametrize(
    ("rule", "level"), [(OnConflict.ALLOW, "info"), (OnConflict.WARN, "info"), (OnConflict.DENY, "warning")]
)
def test_a_conflict_is_reported(rule, level):
    """Who wrote what another policy had written."""
    chain = [value_policy("one"), value_policy("two", index=1, on_conflict=rule)]
    (entry,) = logged(chain, {"one": label("x", "1"), "two": label("x", "2")})
    assert entry["log_level"] == level
    assert entry["policies"][-1]["conflicts"] == ["/metadata/labels/x of one.test.example.com"]


def test_a_stale_answer_is_reported():
    """As loud as a failure: how old it is, and what it stands for."""
    away = Failure(reason=Reason.WORKER_UNAVAILABLE, message="away")
    decision, _ = decide([value_policy("one")], {"one": Allow()})
    stale = tuple(replace(call, source=Source.STALE, age=61.0, instead_of=away) for call in decision.calls)
    with capture_logs() as entries:
        DecisionLog().decided(replace(decision, calls=stale))
    (entry,) = entries
    assert entry["log_level"] == "warning"
    (reported,) = entry["policies"]
    assert (reported["stale_seconds"], reported["instead_of"], reported["because"]) == (
        61.0,
        "WORKER_UNAVAILABLE",
        "away",
    )


def test_a_denial_is_reported(logs):
    """A denial's line says which review, about what, and which policy said what."""
    on = request(uid="u7", name="p", operation="UPDATE", subResource="status", dryRun=True)
    decision, _ = decide([value_policy("one", rules=(EVERYTHING,))], {"one": Deny(message="not like this")}, on=on)
    DecisionLog().decided(decision)
    (entry,) = logs()
    expected = {
        "level": "info",
        "message": "review decided",
        "uid": "u7",
        "phase": "mutating",
        "outcome": "denied",
        "operation": "UPDATE",
        "group": "",
        "version": "v1",
        "resource": "pods",
        "subresource": "status",
        "namespace": "t",
        "name": "p",
        "dry_run": True,
    }
    assert expected.items() <= entry.items()
    (reported,) = entry["policies"]
    assert reported == {
        "policy": "test/one.test.example.com",
        "worker": "worker-one",
        "reason": "DENIED",
        "message": "not like this",
    }


@pytest.mark.parametrize("failure_policy", FailurePolicy)
def test_a_failure_is_a_warning(failure_policy):
    """A policy that could not judge is a warning with its reason code, whether it failed open or closed."""
    failure = Failure(reason=Reason.WORKER_TIMEOUT, message="late")
    (entry,) = logged([value_policy("one", failure_policy=failure_policy)], {"one": failure})
    assert entry["log_level"] == "warning"
    (reported,) = entry["policies"]
    assert (reported["reason"], reported["failed_open"]) == ("WORKER_TIMEOUT", failure_policy is FailurePolicy.IGNORE)


@pytest.mark.parametrize(("level", "lines"), [("debug", 1), ("info", 0)])
def test_what_was_simply_allowed_is_no_news(logging_kept, level, lines):
    """A review that all policies allowed is logged at level debug."""
    stream = io.StringIO()
    stop = configure_logs(level=level, form="json", stream=stream)
    decision, _ = decide([value_policy("one")], {"one": Allow()})
    DecisionLog().decided(decision)
    stop()
    assert len(stream.getvalue().splitlines()) == lines


def test_a_change_is_reported_by_its_path(logs):
    """Of a change, the line says which policy changed what, never to what."""
    decision, _ = decide([value_policy("one")], {"one": label("team", "hunter2")})
    DecisionLog().decided(decision)
    (entry,) = logs()
    assert entry["policies"][0]["changed"] == ["add /metadata/labels/team"]
    assert "hunter2" not in json.dumps(entry)


def test_only_who_matters_is_reported():
    """Policies that did not match, and those that allowed without a change, are not in the line."""
    policies = [value_policy(name, phase=Phase.VALIDATING) for name in ("one", "two")]
    (entry,) = logged(policies, {"one": Allow(), "two": Deny(message="no")})
    assert [reported["policy"] for reported in entry["policies"]] == ["test/two.test.example.com"]


# ------------------------------------------------------------------------------------------- the whole gateway

SECRET = recording("secret-create.0m")
VALUES = list(json.loads(SECRET.body)["request"]["object"]["data"].values())
PLANTED = "planted-by-the-policy"

CHANGES = {
    "a change that is denied later": patch('[{"op": "add", "path": "/data/new", "value": "planted-by-the-policy"}]'),
    "a test that fails": patch('[{"op": "test", "path": "/data", "value": "planted-by-the-policy"}]'),
    "a patch that is cut": patch('[{"op": "add", "path": "/data/new", "value": "planted-by-the-policy"'),
    "a value of the wrong kind": patch('[{"op": "add", "path": "/data/new/deeper", "value": "planted-by-the-policy"}]'),
    "an object that is none": answer(allow=pb.Allow(object=b'"%s"' % PLANTED.encode())),
    "an answer that is none": b"\xff" + PLANTED.encode(),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_secret_is_never_logged(gateway, logs, name):
    """Neither a Secret's data nor what a policy wrote into it is in any log line, at debug, denied or failed."""

    async def review(request_, context):
        called = pb.ReviewRequest.FromString(request_).call.policy
        return CHANGES[name] if called == "changes" else deny("no")

    async with scripted("changes", "denies", review=review) as target:
        policies = [policy("changes", rules=SECRETS), policy("denies", rules=SECRETS)]
        async with gateway(configuration(source(workers={"scripted": target}, mutating=policies))) as served:
            assert not (await served.send(message(SECRET))).response["allowed"]
    text = json.dumps(logs())
    assert "review decided" in text
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


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.AUDIT])
def test_what_is_not_enforced_is_reported_with_its_mode(mode):
    """What a policy would deny or change is logged like other verdicts, and marked as not enforced."""
    chain = [value_policy("a", mode=mode), value_policy("b", index=1, mode=mode)]
    (entry,) = logged(chain, {"a": Deny(message="no"), "b": label("x")})
    denied, changed = entry["policies"]
    assert (denied["mode"], denied["reason"], denied["message"]) == (mode.value, "DENIED", "no")
    assert (changed["mode"], changed["would_change"]) == (mode.value, ["add /metadata/labels/x"])
    assert "changed" not in changed


def test_a_hint_is_logged_with_the_failure():
    """Who reads the log is who can follow it."""
    failure = Failure(reason=Reason.NAMESPACE_UNKNOWN, message="not found", hint="add it")
    (entry,) = logged([value_policy("one")], {"one": failure})
    assert entry["policies"][0]["message"] == "not found; add it"
