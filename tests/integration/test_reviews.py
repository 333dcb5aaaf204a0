"""What holds of every review in a running gateway, with real workers behind it."""

import asyncio
import json
import random
from contextlib import AsyncExitStack

import pytest

from tests.integration.client import message, post
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import ALLOW, Hanging, always, answer, deny, patch, pb, scripted
from tests.traffic import recording

MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")


def renamed(recorded, uid):
    """A recorded request under another uid."""
    review = json.loads(recorded.body)
    review["request"]["uid"] = uid
    return message(recorded, body=json.dumps(review).encode())


def annotated(response):
    """The audit annotations by the policy's first name."""
    return {key.partition(".")[0]: value for key, value in response["auditAnnotations"].items()}


async def test_answers_are_not_mixed_up(gateway):
    """Reviews that are open together, and answered in any order, each get their own worker's verdict and their uid."""
    open_calls = {}

    async def review(request, context):
        policy_call = pb.ReviewRequest.FromString(request).call
        open_calls[policy_call.uid] = released = asyncio.get_running_loop().create_future()
        return await released

    uids = [f"uid-{number}" for number in range(40)]
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge", timeoutSeconds=30)]))
        async with gateway(known) as served:
            clients = [await served.client() for _ in uids]
            for client, uid in zip(clients, uids, strict=True):
                client.sendall(renamed(VALIDATING, uid))
            await until(lambda: len(open_calls) == len(uids))
            order = uids[:]
            random.Random(3).shuffle(order)
            for uid in order:
                open_calls[uid].set_result(deny(f"verdict on {uid}"))
            answers = [await client.answer() for client in clients]
            assert [each.response["uid"] for each in answers] == uids
            assert [each.response["status"]["message"] for each in answers] == [f"verdict on {uid}" for uid in uids]


async def test_a_chain_that_hangs_ends_with_the_budget(gateway):
    """Each policy of a mutating chain has its own timeout, and all together have the budget, which ends in time."""
    times = {"a": 0.2, "b": 0.2, "c": 20, "d": 20}
    async with scripted(*times, review=Hanging()) as target:
        policies = [policy(name, failurePolicy="Ignore", timeoutSeconds=each) for name, each in times.items()]
        async with gateway(configuration(source(workers={"scripted": target}, mutating=policies))) as served:
            sent = message(MUTATING).replace(b"timeout=10s", b"timeout=5s")
            response = (await served.send(sent)).response
            assert response["allowed"]
            (decision,) = served.decisions.values()
            assert decision.ends - decision.started == pytest.approx(3.95)
            late = {"a": "WORKER_TIMEOUT", "b": "WORKER_TIMEOUT", "c": "BUDGET_EXHAUSTED", "d": "BUDGET_EXHAUSTED"}
            assert annotated(response) == late


async def test_a_lost_worker_costs_only_its_own_policies(gateway):
    """While one worker is away, the policies of another one judge as before."""
    async with scripted("stays", review=always(deny("I am here"))) as stays, AsyncExitStack() as stack:
        gone = await stack.enter_async_context(scripted("goes"))
        workers = {"one": gone, "two": stays}
        policies = [
            policy("goes", worker="one", failurePolicy="Ignore"),
            policy("stays", worker="two"),
        ]
        async with gateway(configuration(source(workers=workers, validating=policies))) as served:
            await stack.aclose()
            response = (await served.send(message(VALIDATING))).response
            assert response["status"]["message"] == "stays.test.example.com: I am here"
            assert annotated(response) == {"goes": "WORKER_UNAVAILABLE"}


async def test_an_unknown_namespace_is_not_skipped(gateway):
    """A namespaceSelector over an unknown namespace is a failure NAMESPACE_UNKNOWN, not "not matched"."""
    selector = {"matchLabels": {"environment": "production"}}
    async with scripted("judge") as target:
        about = policy("judge", namespaceSelector=selector)
        async with gateway(configuration(source(workers={"scripted": target}, validating=[about]))) as served:
            status = (await served.send(message(VALIDATING))).response["status"]
            assert (status["code"], status["message"]) == (404, 'namespaces "t" not found')
            assert status["details"]["causes"][0]["reason"] == "NAMESPACE_UNKNOWN"


@pytest.mark.parametrize(("environment", "called"), [("production", True), ("test", False)])
async def test_a_namespace_is_selected_by_its_document(gateway, environment, called):
    """The labels of a Namespace document decide whether a policy is called."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "t", "labels": {"environment": environment}},
    }
    async with scripted("judge", review=always(deny("asked"))) as target:
        about = policy("judge", namespaceSelector={"matchLabels": {"environment": "production"}})
        text = source(workers={"scripted": target}, validating=[about]) + "---\n" + json.dumps(namespace)
        async with gateway(configuration(text)) as served:
            assert (await served.send(message(VALIDATING))).response["allowed"] is not called


async def test_a_denial_outranks_a_failure(gateway):
    """Of a failure and a denial, the denial gives the code; both are reported, and both are among the causes."""

    async def review(request, context):
        return b"" if pb.ReviewRequest.FromString(request).call.policy == "fails" else deny("because")

    async with scripted("fails", "denies", review=review) as target:
        policies = [policy("fails"), policy("denies")]
        async with gateway(configuration(source(workers={"scripted": target}, validating=policies))) as served:
            status = (await served.send(message(VALIDATING))).response["status"]
            assert (status["code"], status["reason"]) == (403, "Forbidden")
            first, second = status["message"].splitlines()
            assert first == "denies.test.example.com: because"
            assert second.startswith("fails.test.example.com: INVALID_RESPONSE: ")
            assert [cause["reason"] for cause in status["details"]["causes"]] == ["DENIED", "INVALID_RESPONSE"]


async def test_a_lone_denial_has_its_own_words(gateway):
    """The message and code of a policy that is alone are its own; the policy's cause stands behind its own causes."""
    cause = pb.StatusCause(reason="FieldValueInvalid", message="m", field="spec.x")
    denial = pb.Deny(code=422, reason="Invalid", message="my words", details=pb.StatusDetails(name="p", causes=[cause]))
    async with (
        scripted("judge", review=always(answer(deny=denial))) as target,
        gateway(configuration(source(workers={"scripted": target}, validating=[policy("judge")]))) as served,
    ):
        assert (await served.send(message(VALIDATING))).response["status"] == {
            "status": "Failure",
            "message": "my words",
            "reason": "Invalid",
            "details": {
                "name": "p",
                "causes": [
                    {"reason": "FieldValueInvalid", "message": "m", "field": "spec.x"},
                    {"reason": "DENIED", "message": "my words"},
                ],
            },
            "code": 422,
        }


ODD = {
    "code 0": (pb.Deny(code=0, message="m"), 400),
    "code 200": (pb.Deny(code=200, message="m"), 400),
    "code 302": (pb.Deny(code=302, message="m"), 400),
    "code 399": (pb.Deny(code=399, message="m"), 400),
    "code 418": (pb.Deny(code=418, message="m"), 418),
    "code 600": (pb.Deny(code=600, message="m"), 400),
    "code 1000": (pb.Deny(code=1000, message="m"), 400),
    "code -1": (pb.Deny(code=-1, message="m"), 400),
    "no code": (pb.Deny(message="m"), 403),
}


@pytest.mark.parametrize("name", ODD)
async def test_a_code_that_would_hurt_the_api_server_is_never_sent(gateway, name):
    """A denial's code goes out between 400 and 599: above, it would panic kube-apiserver's request handler."""
    denial, code = ODD[name]
    async with (
        scripted("judge", review=always(answer(deny=denial))) as target,
        gateway(configuration(source(workers={"scripted": target}, validating=[policy("judge")]))) as served,
    ):
        assert (await served.send(message(VALIDATING))).response["status"]["code"] == code


async def test_warnings_and_annotations_are_made_legal(gateway):
    """What kube-apiserver would drop silently goes out in a form that it keeps."""
    said = answer(
        allow=pb.Allow(),
        warnings=["two\nlines\tand \x1b[31m", "", " ", "two lines and  [31m", "x" * 5000],
        audit_annotations={"with/slash": "1", "plain": "2", "long" * 40: "3", "": "4", "ü": "5"},
    )
    async with (
        scripted("judge", review=always(said)) as target,
        gateway(configuration(source(workers={"scripted": target}, validating=[policy("judge")]))) as served,
    ):
        response = (await served.send(message(VALIDATING))).response
        warnings = response["warnings"]
        assert warnings[0] == "two lines and  [31m"
        assert [text for text in warnings if not text.strip() or not text.isprintable()] == []
        assert sum(map(len, warnings)) <= 4096
        assert len(warnings) == len(set(warnings))
        keys = response["auditAnnotations"]
        assert sorted(keys.values()) == ["1", "2", "3", "4", "5"]
        assert [
            key for key in keys if len(key) > 63 or not key.replace("-", "").replace("_", "").replace(".", "").isascii()
        ] == []


async def test_a_change_that_changes_nothing_is_no_patch(gateway):
    """A worker that writes what is there already leaves no patch: it would count as a change."""
    same = patch(
        '[{"op": "replace", "path": "/metadata/name", "value": "p1"}, {"op": "test", "path": "/kind", "value": "Pod"}]'
    )
    async with (
        scripted("judge", review=always(same)) as target,
        gateway(configuration(source(workers={"scripted": target}, mutating=[policy("judge")]))) as served,
    ):
        response = (await served.send(message(MUTATING))).response
        assert response == {"uid": json.loads(MUTATING.body)["request"]["uid"], "allowed": True}


async def test_changes_that_undo_each_other_are_no_patch(gateway):
    """Where one policy takes back what another did, nothing goes out."""

    async def review(request, context):
        name = pb.ReviewRequest.FromString(request).call.policy
        undone = '[{"op": "remove", "path": "/metadata/labels/a"}]'
        return patch('[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]' if name == "does" else undone)

    async with scripted("does", "undoes", review=review) as target:
        policies = [policy("does"), policy("undoes")]
        async with gateway(configuration(source(workers={"scripted": target}, mutating=policies))) as served:
            response = (await served.send(message(MUTATING))).response
            assert response["allowed"]
            assert "patch" not in response
            (decision,) = served.decisions.values()
            assert [len(call.changes) for call in decision.calls] == [1, 1]


async def test_one_connection_serves_both_phases(gateway):
    """A kept connection may call either phase, in any order, after any answer."""
    async with scripted("judge", review=always(ALLOW)) as target:
        policies = [policy("judge")]
        text = source(workers={"scripted": target}, mutating=policies, validating=policies)
        async with gateway(configuration(text)) as served:
            client = await served.client()
            for _ in range(3):
                for recorded in (MUTATING, VALIDATING):
                    assert (await client.send(message(recorded))).response["allowed"]
                assert (await client.send(post(b"{}"))).status == 400
                assert (await client.send(post(b"{}", "/x"))).status == 404
            assert served.gateway.front.connections == 1
