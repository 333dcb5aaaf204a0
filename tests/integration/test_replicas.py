"""A worker of several replicas, through a whole gateway: they come, go, hang and die, and no review fails for it."""

import asyncio
import os
import signal
import sys
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc
import pytest

from gateway.reasons import Reason
from gateway.transports.grpc import connection as connection_module
from gateway.transports.grpc import endpoint_set
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import AsyncClient, message
from tests.integration.conversations import Health, Streams, answering
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import always, answer, scripted
from tests.traffic import recording
from tests.transports.reaching import question

VALIDATING = message(recording("pod-create.1v")).replace(b"timeout=10s", b"timeout=30s")
PATIENT = {"timeoutSeconds": 28}
REPORTER = Path(__file__).parent / "reporter.py"
CONNECTIONS = 32


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Looks that are not waited for."""
    monkeypatch.setattr(endpoint_set, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(connection_module, "STREAM_SECONDS", (0.001, 0.002))


def named(name):
    """An allow that says who judged."""
    return answer(allow=pb.Allow(), audit_annotations={"name": name})


def well(name):
    """A stream that is answered by NAME."""
    return Streams(answering(named(name)))


def doing(name, streams=None):
    """A replica that answers with its name, by stream and by call."""
    return {"stream": streams or well(name), "review": always(named(name))}


def judge_of(answered, key="name"):
    """Who judged; a failure is the test's."""
    assert answered.status == 200, answered
    assert answered.response["allowed"], answered
    return answered.response["auditAnnotations"][f"report.test.example.com_{key}"]


@asynccontextmanager
async def replicas(gateway, *served, limits=None, policies=None, **fields):
    """A gateway whose worker has these replicas: for each the arguments of ``scripted``."""
    policies = policies or [policy("report", **(PATIENT | fields))]
    names = [each["name"].removesuffix(".test.example.com") for each in policies]
    async with AsyncExitStack() as stack:
        targets = []
        for number, worker in enumerate(served, 1):
            given = {"address": f"127.0.0.{number}:0"} | worker
            targets.append(await stack.enter_async_context(scripted(*names, **given)))
        known = configuration(source(workers={"scripted": f"ipv4:{','.join(targets)}"}, validating=policies))
        limits = TransportLimits(**({"worker_connections": 1} | (limits or {})))
        running = await stack.enter_async_context(gateway(known, transport_limits=limits))
        running.known = known
        await until(lambda: len(ring(running)) == len(served))
        await until(lambda: running.availability(names[0]) in {"1", "2"})
        yield running


def ring(served):
    """The replicas that may be called."""
    (reached,) = served.gateway.workers._leased.values()
    return reached.connection._ring


class Traffic:
    """Reviews on kept connections, as fast as they are answered. Counts who judged."""

    def __init__(self, port, context, *, key="name"):
        self.judged = Counter()
        self.latest = Counter()
        self._key = key
        self._port, self._context = port, context
        self._ending = False

    async def __aenter__(self):
        self._tasks = [asyncio.create_task(self._run()) for _ in range(CONNECTIONS)]
        return self

    async def __aexit__(self, *exc_info):
        self._ending = True
        await asyncio.gather(*self._tasks)

    async def _run(self):
        client = await AsyncClient.connect(self._port, self._context)
        try:
            while not self._ending:
                name = judge_of(await client.send(VALIDATING), self._key)
                self.judged[name] += 1
                self.latest[name] += 1
        finally:
            await client.close()

    async def more(self, condition):
        """Wait until those who judge from now on are as they should be; a review that failed is the test's."""
        self.latest.clear()
        waiting = asyncio.create_task(until(lambda: condition(self.latest)))
        await asyncio.wait([waiting, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            if task.done():
                task.result()
        await waiting


def everyone(*names):
    return lambda latest: all(latest[name] > CONNECTIONS for name in names)


def nobody_but(*names):
    """Enough reviews in a row were judged by these alone."""

    def condition(latest):
        if set(latest) - set(names):
            latest.clear()
        return sum(latest.values()) > 5 * CONNECTIONS

    return condition


async def test_reviews_are_shared_by_all(gateway):
    """Round robin: each of three replicas judges a third."""
    async with replicas(gateway, *map(doing, "abc")) as served:
        judges = Counter([judge_of(await served.send(VALIDATING)) for _ in range(9)])
        assert judges == {"a": 3, "b": 3, "c": 3}


async def test_a_replica_that_is_killed_under_load_fails_no_review(gateway, trust):
    """One of three breaks off everything that is open, and is gone; the others judge that too."""
    async with AsyncExitStack() as stack:
        dying = [scripted("report", **doing(name), address=f"127.0.0.{n}:0") for n, name in enumerate("abc", 1)]
        targets = [await each.__aenter__() for each in dying]
        for each in dying[1:]:
            stack.push_async_exit(each.__aexit__)
        report = policy("report", **PATIENT)
        known = configuration(source(workers={"scripted": f"ipv4:{','.join(targets)}"}, validating=[report]))
        served = await stack.enter_async_context(gateway(known, transport_limits=TransportLimits()))
        await until(lambda: len(ring(served)) == 3)
        async with Traffic(served.port, trust) as traffic:
            await traffic.more(everyone("a", "b", "c"))
            await dying[0].__aexit__(None, None, None)
            await traffic.more(nobody_but("b", "c"))
            async with scripted("report", **doing("a"), address=targets[0]):
                await traffic.more(everyone("a", "b", "c"))


async def test_a_replica_that_does_not_serve_drains(gateway, trust):
    """What it has is answered, it is called no more, and no review fails; when it serves again it is called again."""
    health, streams = Health(), well("a")
    async with (
        replicas(gateway, doing("a", streams) | {"health": health}, doing("b")) as served,
        Traffic(served.port, trust) as traffic,
    ):
        await traffic.more(everyone("a", "b"))
        health.become(Health.NOT_SERVING)
        await traffic.more(nobody_but("b"))
        await until(lambda: streams.last.has_half_closed)
        health.become(Health.SERVING)
        await traffic.more(everyone("a", "b"))


async def test_old_connections_are_replaced_under_load(gateway, trust):
    """Again and again, and no review fails; their streams are half-closed."""
    streams = well("a")
    limits = {"worker_connection_age_seconds": 0.2, "worker_connections": 2}
    async with (
        replicas(gateway, doing("a", streams), limits=limits) as served,
        Traffic(served.port, trust) as traffic,
    ):
        await until(lambda: len(streams.conversations) >= 8)
        await traffic.more(everyone("a"))
        await until(lambda: sum(conversation.has_half_closed for conversation in streams.conversations) >= 4)


async def test_a_replica_that_hangs_is_left_alone_for_that_policy(gateway):
    """It costs a few reviews their time, then its circuit is open there, and the other replica judges; its other
    policy is called as before. When it is well again it is called again.
    """
    calm = asyncio.Event()

    async def hanging(conversation, item):
        if calm.is_set():
            await conversation.answer(item.id, content=named("a"))
        return True

    streams = Streams(answering(named("a"), report=hanging))
    limits = {"worker_circuit_calls": 2}
    # In a second the one that is well answers on a machine that stands still for a moment, too.
    policies = [policy("other", **PATIENT), policy("report", timeoutSeconds=1, failurePolicy="Ignore")]
    async with replicas(gateway, doing("a", streams), doing("b"), limits=limits, policies=policies) as served:

        async def report():
            annotations = (await served.send(VALIDATING)).response["auditAnnotations"]
            assert "other.test.example.com_name" in annotations
            return annotations.get(
                "report.test.example.com_name", annotations.get("report.test.example.com_failed-open")
            )

        reported = [await report() for _ in range(12)]
        late = reported.count(Reason.WORKER_TIMEOUT)
        assert 2 <= late <= 6, reported
        assert set(reported) == {Reason.WORKER_TIMEOUT, "b"}
        others = [conversation.policies.count("other") for conversation in streams.conversations]
        assert sum(others) > 2
        calm.set()
        async with asyncio.timeout(30):
            while await report() != "a":
                pass


async def test_a_replica_that_fails_everything_costs_no_verdict(gateway):
    """What it could not judge, another one does, within a budget; then its circuit opens, and it gets only copies."""
    failing = Streams(answering(answer(failure=pb.Failure(message="no database"))))
    limits = {"worker_circuit_calls": 4}
    async with replicas(gateway, {"stream": failing}, doing("b"), limits=limits) as served:
        for _ in range(40):
            assert judge_of(await served.send(VALIDATING)) == "b"
    assert 4 <= len(failing.policies) <= 8


async def test_side_effects_are_had_once(gateway):
    """A policy with side effects is put to one replica, once: where its call is lost, it fails."""
    calls = []

    async def lost(request, context):
        calls.append(request)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    about = policy("report", **PATIENT, sideEffects="NoneOnDryRun", failurePolicy="Ignore")
    served_by = [{"stream": well(name), "review": lost} for name in "ab"]
    async with replicas(gateway, *served_by, policies=[about]) as served:
        answered = await served.send(VALIDATING)
        assert answered.response["auditAnnotations"] == {
            "report.test.example.com_failed-open": Reason.WORKER_UNAVAILABLE
        }
    assert len(calls) == 1


def claiming(version, *pointers):
    """A description of a version that claims these inputs."""
    claim = pb.Claim(pointers=pb.Claim.Pointers(pointers=pointers))
    entry = pb.PolicyDescription(name="report", phases=[pb.PHASE_VALIDATING], inputs=claim)
    said = pb.DescribeResponse(version=version, policies=[entry]).SerializeToString()

    async def describe(request, context):
        return said

    return describe


async def test_two_versions_are_called_only_what_they_claim(gateway):
    """While a worker is updated, one replica claims the name and the other one the labels: each is shown no more and no
    less, no review fails, and the version is not settled.
    """
    one, two = well("a"), well("b")
    described = [
        doing("a", one) | {"describe": claiming("1", "/object/metadata/name")},
        doing("b", two) | {"describe": claiming("2", "/object/metadata/labels")},
        doing("a", one) | {"describe": claiming("1", "/object/metadata/name")},
    ]
    async with replicas(gateway, *described) as served:
        await until(lambda: served.availability("report") == "1")
        for _ in range(9):
            assert judge_of(await served.send(VALIDATING)) == "a"
        assert two.policies == []
        assert not served.gateway.workers.settled(question(served.known.validating[0], version="1"))
        for conversation in one.conversations:
            for document in conversation.documents.values():
                assert b'"name"' in document
                assert b'"labels"' not in document


async def test_one_version_with_two_claims_is_called_as_it_claims(gateway):
    """A worker that lies about its version: only a worker that claimed a document gets it."""
    one, two = well("a"), well("b")
    described = [
        doing("a", one) | {"describe": claiming("1", "/object/metadata/name")},
        doing("a", one) | {"describe": claiming("1", "/object/metadata/name")},
        doing("b", two) | {"describe": claiming("1", "/object/metadata/labels")},
    ]
    async with replicas(gateway, *described) as served:
        for _ in range(9):
            judge_of(await served.send(VALIDATING))
        for streams, wanted, unwanted in ((one, b'"name"', b'"labels"'), (two, b'"labels"', b'"name"')):
            for conversation in streams.conversations:
                for document in conversation.documents.values():
                    assert wanted in document
                    assert unwanted not in document


# ------------------------------------------------------------------------------------------------- processes


class Replica:
    """A worker process of its own."""

    def __init__(self, process, address):
        self.process = process
        self.address = address
        self.pid = process.pid

    @classmethod
    async def start(cls, name, port):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(REPORTER),
            name,
            "--listen",
            port,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            while True:
                line = (await process.stderr.readline()).decode()
                assert line, f"{name} ended before it listened"
                if " listens on " in line:
                    address = line.split(" listens on ")[1].split(";")[0]
                    break
        return cls(process, address)

    def send(self, number):
        self.process.send_signal(number)

    async def end(self):
        """Its exit code, waiting for it."""
        return await asyncio.wait_for(self.process.wait(), 60)

    async def stop(self):
        if self.process.returncode is None:
            os.kill(self.pid, signal.SIGKILL)
        await self.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
async def test_a_process_that_ends_under_load_fails_no_review(gateway, trust, number):
    """One of three worker processes is killed, or stopped, among 32 concurrent reviews: each is judged; and when
    it is back, it judges again.
    """
    async with AsyncExitStack() as stack:
        processes = []
        for index, name in enumerate("abc", 1):
            processes.append(await Replica.start(name, f"127.0.0.{index}:0"))
            stack.push_async_callback(processes[-1].stop)
        target = "ipv4:" + ",".join(process.address for process in processes)
        report = policy("report", worker="reporter", **PATIENT)
        known = configuration(source(workers={"reporter": target}, validating=[report]))
        served = await stack.enter_async_context(gateway(known))
        await until(lambda: len(ring(served)) == 3)
        async with Traffic(served.port, trust) as traffic:
            await traffic.more(everyone("a", "b", "c"))
            processes[0].send(number)
            code = await processes[0].end()
            assert code == (0 if number is signal.SIGTERM else -signal.SIGKILL)
            await traffic.more(nobody_but("b", "c"))
            back = await Replica.start("a", processes[0].address)
            stack.push_async_callback(back.stop)
            await traffic.more(everyone("a", "b", "c"))
