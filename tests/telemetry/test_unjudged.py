"""What failurePolicy Ignore let pass is named in the log, whatever the level of the log."""

import json

import pytest

from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy, Phase
from gateway.reasons import Reason
from gateway.telemetry.background_writer import BackgroundWriter
from gateway.telemetry.log_level import LogLevel
from gateway.telemetry.unjudged import MESSAGE, METADATA_BYTES, unjudged_document
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import post
from tests.integration.running import configuration, policy, source, until
from tests.integration.test_reload import VALIDATING, Client
from tests.integration.workers import always, answer, scripted
from tests.world import decide, request
from tests.world import policy as world_policy

FAILED = Failure(reason=Reason.WORKER_UNAVAILABLE, message="no connection")


def ignored(name="a", **fields):
    return world_policy(name, phase=Phase.VALIDATING, failure_policy=FailurePolicy.IGNORE, **fields)


def document(decision):
    return unjudged_document(decision, [call for call in decision.calls if call.failed_open], offset=0.0)


def test_a_line_has_what_it_takes_to_judge_again():
    """The object, the user, the operation, and the policies that did not judge: not those that did."""
    about = {"metadata": {"name": "p", "uid": "u-1", "generateName": "p-"}, "data": {"password": "hunter2"}}
    user = {
        "username": "jane",
        "uid": "7",
        "groups": ["a", "b"],
        "extra": {"token": ["hunter2"], "authentication.kubernetes.io/pod-name": ["p-1"]},
    }
    policies = [ignored(), ignored("b", index=1), ignored("c", index=2)]
    sent = request(about, name="p", userInfo=user)
    decision, _ = decide(policies, {"a": FAILED, "b": Allow(), "c": FAILED}, on=sent)
    found = document(decision)
    assert {name: found[name] for name in ("operation", "version", "resource", "objectKind", "namespace", "name")} == {
        "operation": "CREATE",
        "version": "v1",
        "resource": "pods",
        "objectKind": "Pod",
        "namespace": "t",
        "name": "p",
    }
    assert (found["objectUid"], found["generateName"]) == ("u-1", "p-")
    pod = {"authentication.kubernetes.io/pod-name": ["p-1"]}
    assert found["user"] == {
        "username": "jane",
        "uid": "7",
        "groups": ["a", "b"],
        "extra": pod,
        "omitted": ["extra"],
    }
    assert [each["name"].rpartition("/")[2] for each in found["policies"]] == [
        "a.test.example.com",
        "c.test.example.com",
    ]
    assert {each["reason"] for each in found["policies"]} == {"WORKER_UNAVAILABLE"}
    assert found["allowed"]
    assert "hunter2" not in json.dumps(found)
    assert "no connection" not in json.dumps(found)


def test_a_refused_request_says_so():
    """It was not admitted: nothing is to be judged again."""
    decision, _ = decide([ignored(), ignored("b", index=1)], {"a": FAILED, "b": Deny(message="no")})
    assert not document(decision)["allowed"]


@pytest.mark.parametrize("about", [{"metadata": 7}, {"spec": "x" * METADATA_BYTES, "metadata": {"uid": "u"}}])
def test_an_object_that_is_large_or_odd_has_no_metadata(about):
    """The line is made all the same."""
    decision, _ = decide([ignored()], {"a": FAILED}, on=request(about, name="p"))
    assert (document(decision)["objectUid"], document(decision)["name"]) == ("", "p")


async def test_no_level_turns_it_off(gateway, tmp_path):
    """One line for each review, beside the decision's; the user is warned once, and the metric counts each."""
    path = tmp_path / "log"
    failing = always(answer(failure=pb.Failure(message="no database")))
    async with scripted("judge", review=failing) as target:
        known = configuration(
            source(workers={"scripted": target}, validating=[policy("judge", failurePolicy="Ignore")])
        )
        async with gateway(known, decision_log=str(path), decision_log_level=LogLevel.FAILED) as served:
            client = await served.client()
            responses = [(await client.send(post(VALIDATING, "/validate?timeout=30s"))).response for _ in range(3)]
            labels = {"phase": "validating", "policy": "test/judge.test.example.com"}
            assert served.metric("failed_open_total", **labels) == 3
            await until(lambda: path.exists() and path.read_text().count("UnjudgedAdmission") == 3)
    assert [len(each.get("warnings") or ()) for each in responses] == [1, 0, 0]
    assert all(
        each["auditAnnotations"] == {"judge.test.example.com_failed-open": "WORKER_FAILURE"} for each in responses
    )
    assert path.read_text().count('"kind":"Decision"') == 3


@pytest.mark.integration
def test_without_a_decision_log_it_is_on_standard_error(serve, tmp_path, trust):
    """A line of its own, among those of the process: each can be parsed."""
    path = tmp_path / "policies.yaml"
    about = policy("judge", worker="away", failurePolicy="Ignore")
    path.write_text(source(workers={"away": "unix:/nonexistent/worker.sock"}, validating=[about]))
    process = serve("--policies", path, "--worker-startup-timeout", 0, "--decision-log", "none", "--log-level", "error")
    with Client(process.ready().port, trust) as client:
        for _ in range(2):
            assert client.send(post(VALIDATING, "/validate?timeout=30s")).response["allowed"]
    logged = process.logged(MESSAGE, kind="UnjudgedAdmission", allowed=True)
    assert logged["policies"][0]["reason"] == "CONFIGURATION"
    process.terminate()
    assert process.exit_code() == 0
    assert [each["message"] for each in process.log()].count(MESSAGE) == 2


class Unused:
    """Never used: the writer is not started."""

    name = "none"


def test_the_reserve_is_for_what_must_not_be_lost():
    """A queue that is full of decisions takes unjudged admissions, up to a bound of its own."""
    drops = []
    writer = BackgroundWriter(Unused(), lambda reason, count: drops.append(count), records=8, size=1000)
    for _ in range(9):
        writer.put(b"decision")
    assert drops == [1]
    for _ in range(3):
        writer.put(b"unjudged", reserved=True)
    assert drops == [1, 1]
