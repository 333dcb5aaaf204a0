"""Without a verdict the failurePolicy decides: in the gateway for a policy, in kube-apiserver for the gateway."""

import asyncio
from pathlib import Path

import pytest

from tests.e2e.objects import pod
from tests.e2e.policies import ENTRY, denies, hang, judge
from tests.e2e.worker_process import WorkerProcess
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import policy
from tests.integration.workers import Hanging, scripted

CONFIGURED = Path(__file__).parent / "configured.py"


@pytest.fixture
def departing(tmp_path):
    """A worker that a test may stop."""
    worker = WorkerProcess(f"unix:{tmp_path}/departing.sock", CONFIGURED).ready()
    yield worker
    worker.stop()


def of_departing(failure_policy):
    return policy("judge", worker="departing", failurePolicy=failure_policy)


async def test_a_worker_that_is_away_refuses_under_fail(cluster, departing):
    """The message has the reason code, and kubectl shows an internal error."""
    await cluster.enforce(workers={"departing": departing.target}, validating=[of_departing("Fail")])
    assert (await cluster.create(pod("before"))).code == 201
    departing.stop()
    reply = await cluster.create(pod())
    assert (reply.code, reply.body["reason"]) == (500, "InternalError")
    assert reply.message.startswith(f'admission webhook "{ENTRY}" denied the request: WORKER_UNAVAILABLE: ')


async def test_a_worker_that_is_away_is_passed_over_under_ignore(cluster, departing):
    """The user is warned, and the audit log has the reason code."""
    await cluster.enforce(workers={"departing": departing.target}, validating=[of_departing("Ignore")])
    assert (await cluster.create(pod("before"))).warnings == []
    departing.stop()
    reply = await cluster.create(pod())
    warning = "could not judge this request: WORKER_UNAVAILABLE (failurePolicy Ignore: let pass)"
    assert (reply.code, reply.warnings) == (201, [f"judge.test.example.com: {warning}"])
    assert cluster.audited(reply) == {f"{ENTRY}/judge.test.example.com_failed-open": "WORKER_UNAVAILABLE"}


@pytest.mark.parametrize(("failure_policy", "code"), [("Fail", 500), ("Ignore", 201)])
async def test_a_worker_that_does_not_answer_costs_its_policy_the_timeout(cluster, failure_policy, code):
    """A policy's own timeout ends its call, long before that of the entry, in which another policy may take longer."""
    slow = hang(failurePolicy=failure_policy, timeoutSeconds=0.2)
    await cluster.enforce(validating=[slow, judge(failurePolicy=failure_policy)])
    reply = await cluster.create(pod())
    assert reply.code == code
    text = reply.message if failure_policy == "Fail" else "".join(reply.warnings)
    assert "WORKER_TIMEOUT" in text


async def test_a_client_that_goes_away_cancels_the_policy_call(cluster):
    """kube-apiserver then closes the connection of its call, and the gateway cancels the policy call."""
    hanging = Hanging()
    async with scripted("judge", review=hanging) as target:
        await cluster.enforce(workers={"scripted": target}, validating=[policy("judge")])
        creating = asyncio.create_task(cluster.create(pod()))
        async with asyncio.timeout(WAIT_SECONDS):
            await hanging.called.wait()
            creating.cancel()
            await hanging.cancelled.wait()
        await asyncio.gather(creating, return_exceptions=True)


@pytest.mark.parametrize(("failure_policy", "code"), [("Fail", 500), ("Ignore", 201)])
async def test_a_gateway_that_is_away_is_a_case_for_the_registration(cluster, failure_policy, code):
    """It has the failurePolicy of the entry's policies, so that what must be judged is not let pass."""
    gateway = await cluster.enforce(validating=[judge(failurePolicy=failure_policy)])
    assert (await cluster.create(pod("before"))).code == 201
    gateway.stop()
    reply = await cluster.create(pod())
    assert reply.code == code
    if code == 500:
        assert f'failed calling webhook "{ENTRY}"' in reply.message
    else:
        opened = "failed-open.validating.webhook.admission.k8s.io/round_0_index_0"
        assert cluster.audited(reply) == {opened: ENTRY}


async def test_a_policy_that_cannot_be_called_fails_alone(cluster):
    """The others of its entry are called as configured."""
    unknown = policy("unknown", worker="configured", failurePolicy="Ignore")
    await cluster.enforce(validating=[denies("no", failurePolicy="Ignore"), unknown])
    reply = await cluster.create(pod())
    assert (reply.code, reply.message.rpartition(": ")[2]) == (403, "no")
    (warning,) = reply.warnings
    assert warning.startswith("unknown.test.example.com: could not judge this request: CONFIGURATION ")
