"""``kill -9`` of the worker in mid-traffic: failure-policy answers in time, and nothing else, until it is back."""

import asyncio
import base64
import json
import os
import signal
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.integration.client import AsyncClient, message
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import PODS, policy, source, until
from tests.integration.workers import Hanging, scripted
from tests.traffic import recording

WITNESS = Path(__file__).parent / "witness.py"
CONNECTIONS = 32

MUTATE = message(recording("pod-create.0m")).replace(b"timeout=10s", b"timeout=30s")
VALIDATE = message(recording("pod-create.1v")).replace(b"timeout=10s", b"timeout=30s")
API_SERVER_WAITS = 30.0

UNAVAILABLE = "WORKER_UNAVAILABLE: worker 'witness' at unix:"


@pytest.fixture
def process(serving, tmp_path):
    """A gateway whose worker signs what it judged: under Fail while mutating, under Ignore while validating. It is not
    started again while there is a file ``away``.
    """
    every = {"worker": "witness", "rules": [PODS], "timeoutSeconds": 28}
    script = f"while [ -e {tmp_path}/away ]; do sleep 0.05; done; exec python {WITNESS}"
    text = source(
        workers={"witness": {"target": "unix:witness.sock", "command": ["sh", "-c", script]}},
        mutating=[policy("sign", **every)],
        validating=[policy("attest", **every, failurePolicy="Ignore")],
    )
    (tmp_path / "policies.yaml").write_text(text)
    return serving("--policies", tmp_path / "policies.yaml", "--worker-startup-timeout", 30).ready()


def judged_by(answer):
    """The process id of the worker that judged; None if the answer is the one of the failure policy, exactly."""
    assert answer.status == 200, answer
    response = answer.response
    if "status" in response:
        assert response["allowed"] is False
        assert (response["status"]["code"], response["status"]["reason"]) == (500, "InternalError")
        assert response["status"]["message"].startswith(UNAVAILABLE)
        assert "patch" not in response
        return None
    assert response["allowed"] is True
    if "patch" in response:
        (operation,) = json.loads(base64.b64decode(response["patch"]))
        return int(operation["value"])
    annotations = response["auditAnnotations"]
    if "attest.test.example.com_failed-open" in annotations:
        assert annotations == {"attest.test.example.com_failed-open": "WORKER_UNAVAILABLE"}
        for warning in response.get("warnings", ()):  # at most one a minute
            lead = "attest.test.example.com: could not judge this request: "
            assert warning.startswith(lead + "WORKER_UNAVAILABLE")
        return None
    return int(annotations["attest.test.example.com_judged-by"])


class Traffic:
    """Requests on kept connections, as fast as they are answered. Counts who judged: a process id, or None."""

    def __init__(self):
        self.judged = Counter()
        self.last = [0] * CONNECTIONS
        self.ending = False

    async def run(self, number, port, context):
        client = await AsyncClient.connect(port, context)
        try:
            while not self.ending:
                for request in (MUTATE, VALIDATE):
                    judge = judged_by(await client.send(request, wait_time=API_SERVER_WAITS))
                    self.judged[judge] += 1
                    self.last[number] = judge
        finally:
            await client.close()


async def test_a_killed_worker_costs_nothing_but_its_verdicts(process, trust, tmp_path):
    """Each answer comes in time and is a verdict or the failure policy's, on the same connections throughout."""
    (first,) = process.children()
    traffic = Traffic()
    async with asyncio.TaskGroup() as group:
        for number in range(CONNECTIONS):
            group.create_task(traffic.run(number, process.port, trust))
        await until(lambda: traffic.judged[first] > 5 * CONNECTIONS)
        (tmp_path / "away").touch()
        os.kill(first, signal.SIGKILL)
        await until(lambda: traffic.judged[None] > 5 * CONNECTIONS)
        (tmp_path / "away").unlink()
        await until(lambda: all(judge not in {first, None} for judge in traffic.last))
        traffic.ending = True
    (second,) = process.children()
    assert set(traffic.judged) == {first, second, None}
    failures = [
        process.metric("policy_failures_total", phase=phase, policy=f"test/{name}", reason="WORKER_UNAVAILABLE")
        for phase, name in (("mutating", "sign.test.example.com"), ("validating", "attest.test.example.com"))
    ]
    assert sum(failures) == traffic.judged[None]
    assert min(failures) > 0
    await until(lambda: process.metric("connections") == 0)
    assert process.internal_errors() == []
    assert process.logged("a worker has ended and is started again", code=-signal.SIGKILL)["worker"] == "witness"


async def test_reviews_wait_for_a_worker_that_is_started_again(process, trust):
    """A worker that is killed and starts again at once costs no verdict: its open calls and new ones wait for it."""
    (first,) = process.children()
    traffic = Traffic()
    async with asyncio.TaskGroup() as group:
        for number in range(CONNECTIONS):
            group.create_task(traffic.run(number, process.port, trust))
        await until(lambda: traffic.judged[first] > 5 * CONNECTIONS)
        os.kill(first, signal.SIGKILL)
        await until(lambda: all(judge not in {first, None} for judge in traffic.last))
        traffic.ending = True
    assert traffic.judged[None] == 0
    assert process.internal_errors() == []


async def test_readiness_does_not_depend_on_workers(process, tmp_path):
    """While a worker is dead, and cannot come back, the gateway is ready."""
    (first,) = process.children()
    (tmp_path / "away").touch()
    os.kill(first, signal.SIGKILL)
    process.logged("a worker has ended and is started again")
    assert await asyncio.to_thread(process.admin, "/readyz") == "ok\n"


async def test_only_log_lines_are_logged(serve, tmp_path, trust):
    """Whatever a worker's end makes gRPC say, standard error holds our log lines and nothing else."""
    review = Hanging()
    async with AsyncExitStack() as stack:
        target = await stack.enter_async_context(scripted("judge", review=review))
        path = tmp_path / "policies.yaml"
        path.write_text(source(workers={"scripted": target}, validating=[policy("judge")]))
        process = await asyncio.to_thread(lambda: serve("--policies", path, "--worker-startup-timeout", 30).ready())
        client = await AsyncClient.connect(process.port, trust)
        client.sendall(VALIDATE)
        async with asyncio.timeout(WAIT_SECONDS):
            await review.called.wait()
        await stack.aclose()
        answered = await client.answer()
        assert not answered.response["allowed"]
        await client.close()
    await asyncio.to_thread(process.stop)
    assert process.internal_errors() == []
