"""A whole gateway, a real redis-server, and bridges that are processes of their own, in front of real workers."""

import asyncio
import base64
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager

import pytest

from gateway.reasons import Reason
from gateway.redis.addresses import redis_address
from gateway.telemetry.traces.settings import trace_settings
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue import abandoned_streams, request_exchange
from gateway.transports.transport_config import TransportConfig
from tests.caching import servers
from tests.integration.bridging import STREAM, Bridging, Contents
from tests.integration.client import post
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import Gate, answer, scripted
from tests.otlp_receiver import otlp_grpc
from tests.traffic import recording

pytestmark = pytest.mark.faults

POD = recording("pod-create.1v").body
REVIEW = post(POD, "/validate?timeout=30s")
SLOW = {"timeoutSeconds": 25}
EFFECTS = {"sideEffects": "NoneOnDryRun"}
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SEEN = answer(allow=pb.Allow(), audit_annotations={"seen": "yes"})


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    """A Redis that keeps what it is reported through a restart."""
    with servers.server(tmp_path_factory.mktemp("redis"), "--appendonly", "yes", "--appendfsync", "always") as made:
        yield made


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A gateway waits for bridges that come back, however slow this machine starts them."""
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 60.0)


@pytest.fixture
def contents(redis):
    """What stands in the queue."""
    made = Contents(redis)
    yield made
    made.close()


@pytest.fixture
def key_file(tmp_path):
    """The queue's keys."""
    file = tmp_path / "queue-keys"
    file.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    return file


@pytest.fixture
def bridge(redis, key_file):
    """Start a bridge to a worker; it takes work when this returns."""
    started = []

    def start(target, *arguments):
        made = Bridging("--queue", STREAM, "--key-file", key_file, "--redis", redis.url, "--worker", target, *arguments)
        started.append(made)
        return made.ready()

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def judged(gateway, redis, key_file):
    """A gateway whose worker is the queue: ``async with judged(policy("judge")) as served``."""

    @asynccontextmanager
    async def serve(*policies, **settings):
        worker = {
            "apiVersion": "admission-gateway.dev/v1alpha1",
            "kind": "Worker",
            "metadata": {"name": "queued"},
            "spec": {"queue": {"stream": STREAM, "keyFile": str(key_file)}},
        }
        known = configuration(f"{json.dumps(worker)}\n---\n{source(workers={}, validating=policies)}")
        assert not known.errors, known.errors
        # A gateway that has stood still itself is not to find that Redis has.
        limits = TransportLimits(queue_redis_seconds=20.0)
        transport_config = TransportConfig(redis=redis_address(redis.url))
        async with gateway(known, transport_config=transport_config, transport_limits=limits, **settings) as served:
            await until(lambda: isinstance(served.availability("judge"), str))
            yield served

    return serve


def judge(**fields):
    """A policy of the queue's worker."""
    return policy("judge", worker="queued", **(SLOW | fields))


async def reviews(served, number=1):
    """Send so many reviews; the tasks that wait for their answers."""
    return [asyncio.create_task(served.send(REVIEW, wait_time=60)) for _ in range(number)]


def audit(answered):
    """What is in the audit log, without the policy's name."""
    return {key.partition("_")[2]: text for key, text in answered.response.get("auditAnnotations", {}).items()}


async def started(start, *arguments):
    """A bridge, while this loop goes on: its worker may be in it."""
    return await asyncio.to_thread(start, *arguments)


# --------------------------------------------------------------------------------------------- a real worker


@contextmanager
def samples(socket):
    """The Python SDK's sample worker, as a process."""
    command = [sys.executable, "-m", "admission_worker.samples", "--listen", f"unix:{socket}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def no_privileged(**fields):
    """The sample policy, under the name that the fixture looks for."""
    return judge(policy="no-privileged", **fields)


async def test_reviews_go_through_two_bridges(judged, bridge, contents, tmp_path):
    """To one worker in another language's SDK and back: verdicts as ever, both bridges work, nothing is left."""
    privileged = json.loads(POD)
    privileged["request"]["object"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    denied = post(json.dumps(privileged).encode(), "/validate?timeout=30s")
    with samples(tmp_path / "s.sock"):
        target = f"unix:{tmp_path / 's.sock'}"
        bridges = [await started(bridge, target, "--in-flight", 1) for _ in range(2)]
        async with judged(no_privileged()) as served:

            async def both_have_answered():
                answers = [*await reviews(served, 8), asyncio.create_task(served.send(denied, wait_time=60))]
                *allowed, refused = await asyncio.gather(*answers)
                assert all(each.response["allowed"] for each in allowed)
                assert refused.response["status"]["code"] == 403
                assert "privileged" in refused.response["status"]["message"]
                return all(each.event("answered") > 2 for each in bridges)

            await eventually(both_have_answered)
            await until(contents.is_done)
    assert [each.internal_errors() for each in bridges] == [[], []]


async def test_a_worker_that_is_killed(judged, bridge, contents, tmp_path):
    """Its policies fail by name, as they would without a queue; when it is back, so are they."""
    target = f"unix:{tmp_path / 's.sock'}"
    with samples(tmp_path / "s.sock") as process:
        await started(bridge, target)
        async with judged(no_privileged(failurePolicy="Ignore", timeoutSeconds=5)) as served:
            (first,) = await asyncio.gather(*await reviews(served))
            assert audit(first) == {}
            process.kill()
            await until(lambda: not contents.present())

            async def failed():
                (answered,) = await asyncio.gather(*await reviews(served))
                return audit(answered).get("failed-open") == Reason.WORKER_UNAVAILABLE

            assert await eventually(failed)
            (tmp_path / "s.sock").unlink(missing_ok=True)
            with samples(tmp_path / "s.sock"):

                async def judged_again():
                    (answered,) = await asyncio.gather(*await reviews(served))
                    return answered.response["allowed"] and audit(answered) == {}

                assert await eventually(judged_again)
            await until(contents.is_done)


async def eventually(condition):
    """Wait until a coroutine function says so."""
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - what is awaited is a review
            await asyncio.sleep(0.02)
    return True


# ------------------------------------------------------------------------------------ bridges that come and go


async def test_a_bridge_that_is_killed_in_mid_work(judged, bridge, contents):
    """Another one takes over what it had: no review fails."""
    gate = Gate(SEEN)
    async with scripted("judge", review=gate) as target:
        first = await started(bridge, target)
        async with judged(judge()) as served:
            waiting = await reviews(served, 5)
            await until(lambda: len(gate.calls) == 5)
            second = await started(bridge, target)
            first.kill()
            gate.open.set()
            for answered in await asyncio.gather(*waiting):
                assert audit(answered) == {"seen": "yes"}, answered.response
            assert len(gate.calls) == 10
            assert second.event("claimed") == 5
            await until(contents.is_done)


async def test_side_effects_when_a_bridge_is_killed(judged, bridge, contents):
    """What may have had its effect is not called again: it fails, and says why."""
    gate = Gate(SEEN)
    async with scripted("judge", review=gate) as target:
        first = await started(bridge, target)
        async with judged(judge(**EFFECTS)) as served:
            waiting = await reviews(served, 3)
            await until(lambda: len(gate.calls) == 3)
            second = await started(bridge, target)
            first.kill()
            gate.open.set()
            for answered in await asyncio.gather(*waiting):
                assert not answered.response["allowed"]
                assert "may have had its effect" in answered.response["status"]["message"]
                assert Reason.WORKER_UNAVAILABLE in answered.response["status"]["message"]
            assert len(gate.calls) == 3
            assert second.event("once") == 3
            await until(contents.is_done)


async def test_side_effects_that_no_bridge_had_taken(judged, bridge, contents, monkeypatch):
    """What still waits in the queue when a bridge is killed has had no effect: another bridge has it done."""
    # However long the other one takes to come.
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 3600.0)
    gate = Gate(SEEN)
    async with scripted("judge", review=gate) as target:
        first = await started(bridge, target, "--in-flight", 1)
        async with judged(judge(**EFFECTS)) as served:
            waiting = await reviews(served, 4)
            await until(lambda: len(gate.calls) == 1 and contents.waiting() == 4)
            first.kill()
            gate.open.set()
            await started(bridge, target)
            answers = [audit(answered) for answered in await asyncio.gather(*waiting)]
            assert answers.count({"seen": "yes"}) == 3
            assert {"failed": Reason.WORKER_UNAVAILABLE} in answers
            assert len(gate.calls) == 4


async def test_a_bridge_that_stops(judged, bridge, contents):
    """It answers what it has taken, says that it is gone, and ends with 0."""
    gate = Gate(SEEN)
    async with scripted("judge", review=gate) as target:
        made = await started(bridge, target)
        async with judged(judge(**EFFECTS)) as served:
            waiting = await reviews(served, 5)
            await until(lambda: len(gate.calls) == 5)
            made.terminate()
            await until(lambda: not contents.present())
            assert made.process.poll() is None
            gate.open.set()
            for answered in await asyncio.gather(*waiting):
                assert audit(answered) == {"seen": "yes"}
            assert await asyncio.to_thread(made.exit_code) == 0
            assert contents.is_done()
            assert [group["consumers"] for group in contents.groups()] == [0]
    assert made.internal_errors() == []


async def test_a_bridge_that_is_reported_to_stop_twice(judged, bridge, contents):
    """It ends at once, and another one takes over what it had."""
    gate = Gate(SEEN)
    async with scripted("judge", review=gate) as target:
        made = await started(bridge, target)
        async with judged(judge()) as served:
            waiting = await reviews(served, 3)
            await until(lambda: len(gate.calls) == 3)
            made.terminate()
            await until(lambda: not contents.present())
            # One right behind the first would be the same word again.
            await asyncio.to_thread(
                made.logged, "stopping: calls in hand are answered first; a second signal stops at once"
            )
            made.terminate()
            assert await asyncio.to_thread(made.exit_code) == 0
            gate.open.set()
            await started(bridge, target)
            for answered in await asyncio.gather(*waiting):
                assert audit(answered) == {"seen": "yes"}
            await until(contents.is_done)
    assert made.internal_errors() == []


async def test_expired_work(judged, bridge, contents, monkeypatch):
    """The bridge drops an entry for which no gateway waits; its worker is not called."""
    # The gateway takes it out, too, if it comes first.
    monkeypatch.setattr(request_exchange, "SWEEP_SECONDS", 3600.0)
    gate = Gate(SEEN)
    gate.open.set()
    async with scripted("judge", review=gate) as target:
        made = await started(bridge, target)
        # Long enough for all three to be in the queue on a machine that stands still for a moment.
        async with judged(judge(failurePolicy="Ignore", timeoutSeconds=4, **EFFECTS)) as served:
            made.pause()
            for answered in await asyncio.gather(*await reviews(served, 3)):
                assert audit(answered) == {"failed-open": Reason.WORKER_TIMEOUT}
            await until(contents.is_late)
            made.go_on()
            await until(contents.is_done)
            assert (await asyncio.to_thread(made.event, "expired")) == 3
            assert gate.calls == []


async def test_entries_that_are_no_messages(judged, bridge, contents):
    """The bridge drops and counts them; reviews go on."""
    gate = Gate(SEEN)
    gate.open.set()
    async with scripted("judge", review=gate) as target:
        made = await started(bridge, target)
        async with judged(judge()) as served:
            for fields in ({"x": "y"}, {"d": "1", "g": "g", "i": "i", "m": "m"}, {"m": b"\xff" * 100_000}):
                contents.write(**fields)
                (answered,) = await asyncio.gather(*await reviews(served))
                assert audit(answered) == {"seen": "yes"}
            await until(contents.is_done)
            assert await asyncio.to_thread(made.event, "unreadable") == 3


# ----------------------------------------------------------------------------------------------------- Redis


async def test_a_redis_that_restarts_with_its_data(judged, bridge, contents, redis):
    """Reviews that are under way are answered: nothing is lost, nothing is called twice."""
    gate = Gate(SEEN)
    async with scripted("judge", review=gate) as target:
        made = await started(bridge, target)
        async with judged(judge(**EFFECTS)) as served:
            waiting = await reviews(served, 5)
            await until(lambda: len(gate.calls) == 5)
            await asyncio.to_thread(redis.kill)
            await until(lambda: made.event("redis_lost") > 0)
            gate.open.set()
            await asyncio.to_thread(redis.start)
            for answered in await asyncio.gather(*waiting):
                assert audit(answered) == {"seen": "yes"}
            assert len(gate.calls) == 5
            await until(contents.is_done)


async def test_a_redis_that_restarts_empty(judged, bridge, contents, redis):
    """Reviews without side effects are put again, and answered; the worker is called no more often for it."""
    gate = Gate(SEEN)
    async with scripted("judge", review=gate) as target:
        made = await started(bridge, target)
        async with judged(judge()) as served:
            waiting = await reviews(served, 5)
            await until(lambda: len(gate.calls) == 5)
            await asyncio.to_thread(redis.kill)
            redis.forget()
            await asyncio.to_thread(redis.start)
            await until(lambda: made.event("repeated") >= 5)
            gate.open.set()
            for answered in await asyncio.gather(*waiting):
                assert audit(answered) == {"seen": "yes"}
            assert len(gate.calls) == 5
            await until(contents.is_done)


async def test_side_effects_when_redis_restarts_empty(judged, bridge, redis):
    """What only Redis knew of is never put twice: it is done once or not at all, and the review ends either way."""
    gate = Gate(SEEN)
    gate.open.set()
    async with scripted("judge", review=gate) as target:
        made = await started(bridge, target)
        async with judged(judge(timeoutSeconds=6, failurePolicy="Ignore", **EFFECTS)) as served:
            made.pause()
            waiting = await reviews(served, 3)
            await until(lambda: Contents(redis).waiting() == 3)
            await asyncio.to_thread(redis.kill)
            redis.forget()
            await asyncio.to_thread(redis.start)
            made.go_on()
            for answered in await asyncio.gather(*waiting):
                assert audit(answered) in ({"failed-open": Reason.WORKER_TIMEOUT}, {"seen": "yes"})
            assert len(gate.calls) <= 3


async def test_a_redis_that_hangs_for_a_while(judged, bridge, contents, redis):
    """Reviews wait for it as long as they may, and are answered when it goes on."""
    gate = Gate(SEEN)
    async with scripted("judge", review=gate) as target:
        await started(bridge, target)
        async with judged(judge()) as served:
            waiting = await reviews(served, 3)
            await until(lambda: len(gate.calls) == 3)
            redis.pause()
            gate.open.set()
            await asyncio.sleep(0)
            redis.resume()
            for answered in await asyncio.gather(*waiting):
                assert audit(answered) == {"seen": "yes"}
            await until(contents.is_done)


# ------------------------------------------------------------------------------------------------------- traces


async def test_a_trace_goes_through_the_queue(judged, bridge, monkeypatch):
    """The worker's context is a child of the bridge's span, and that of the gateway's."""
    sent = []

    async def review(request, context):
        sent.append(dict(context.invocation_metadata()))
        return SEEN

    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    with otlp_grpc() as (url, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        traces = trace_settings(os.environ, endpoint=url, ratio=1.0)
        async with scripted("judge", review=review) as target:
            await started(bridge, target, "--traces-endpoint", url)
            async with judged(judge(), traces=traces) as served:
                headers = (("traceparent", TRACEPARENT), ("tracestate", "a=1"))
                answered = await served.send(post(POD, "/validate?timeout=30s", *headers), wait_time=60)
                assert audit(answered) == {"seen": "yes"}
                await until(lambda: received.named(f"process {STREAM}") and received.named("POST /validate"))
    (call,), (bridged,) = received.named(f"send {STREAM}"), received.named(f"process {STREAM}")
    assert (bridged.service, bridged.trace_id, bridged.parent_id) == (
        "admission-gateway-bridge",
        TRACEPARENT[3:35],
        call.span_id,
    )
    assert [(each["traceparent"], each["tracestate"]) for each in sent] == [
        (f"00-{bridged.trace_id}-{bridged.span_id}-01", "a=1")
    ]
