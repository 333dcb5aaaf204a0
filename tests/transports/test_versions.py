"""Whether a worker's version is settled: while it is not, verdicts are neither taken from the cache nor put there."""

import asyncio

import grpc
import pytest

from gateway.transports.grpc import connection as module
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until
from tests.integration.workers import answer, description, scripted
from tests.transports.reaching import availability, called, configured, judge, question, working

VERDICT = {"allow": pb.Allow()}
TWO = "a worker answers in two versions"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pauses too short to wait for."""
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.001, 0.004))
    monkeypatch.setattr(module, "DESCRIBE_INTERVAL_SECONDS", 0.001)


class Rolling:
    """A worker of several replicas: ``described`` is the version of the one that describes, ``answering`` of the one
    that judges.
    """

    def __init__(self, described="1", answering="1"):
        self.described = described
        self.answering = answering
        self.descriptions = 0
        self.fails = False

    async def describe(self, request, context):
        self.descriptions += 1
        if self.fails:
            await context.abort(grpc.StatusCode.INTERNAL, "not now")
        return description("judge", "other", version=self.described)

    async def review(self, request, context):
        return answer(version=self.answering, **VERDICT)

    def served(self, **fields):
        return scripted(describe=self.describe, review=self.review, **fields)


async def test_a_described_version_is_settled():
    """Once described, the version that was described is settled, and no other."""
    async with Rolling().served() as target, working(configured(judge(), labels=target)) as workers:
        assert workers.settled(question(judge()))
        assert not workers.settled(question(judge(), version="2"))
        assert not workers.settled(question(judge("unknown")))


async def test_equal_versions_do_not_disagree():
    """An answer of the described version, or of none, unsettles nothing."""
    replicas = Rolling()
    async with replicas.served() as target, working(configured(judge(), labels=target)) as workers:
        for version in ("1", ""):
            replicas.answering = version
            await called(workers, judge())
            assert workers.settled(question(judge()))
    assert replicas.descriptions == 1


async def test_another_version_unsettles_and_describes_again(log):
    """An answer of another version describes the worker again at once; neither version is settled, and the log says
    so, once.
    """
    replicas = Rolling()
    async with replicas.served() as target, working(configured(judge(), labels=target)) as workers:
        replicas.described = replicas.answering = "2"
        assert (await called(workers, judge())).version == "2"
        await until(lambda: availability(workers) == "2")
        assert not workers.settled(question(judge()))
        assert not workers.settled(question(judge(), version="2"))
        await called(workers, judge(), version="2")
        replicas.answering = "1"
        await called(workers, judge(), version="2")
        await until(lambda: replicas.descriptions == 3)
    (entry,) = [entry for entry in log if entry["event"].startswith(TWO)]
    assert (entry["worker"], entry["described"], entry["answered"]) == ("labels", "1", "2")


async def test_another_version_unsettles_all_policies_of_its_worker():
    """Who is behind the address is the worker's affair, not the policy's."""
    replicas = Rolling()
    async with replicas.served() as target:
        both = configured(judge(), judge("other", index=1), labels=target)
        async with working(both) as workers:
            replicas.answering = "2"
            await called(workers, judge())
            assert not workers.settled(question(judge("other", index=1)))


async def test_it_settles_after_a_while():
    """When there has been no disagreement for worker_settle_seconds, the version last described is settled."""
    replicas = Rolling()
    async with replicas.served() as target, working(configured(judge(), labels=target)) as workers:
        now = [0.0]
        workers._leased["labels"].connection.version_skew._clock = lambda: now[0]
        replicas.described = replicas.answering = "2"
        await called(workers, judge())
        await until(lambda: availability(workers) == "2")
        now[0] = TransportLimits().worker_settle_seconds - 0.001
        assert not workers.settled(question(judge(), version="2"))
        now[0] += 0.001
        assert workers.settled(question(judge(), version="2"))
        assert not workers.settled(question(judge()))


async def test_a_late_answer_of_the_described_version_does_not_disagree():
    """An answer to a call under the previous version, and is of the one now described, is no disagreement."""
    replicas = Rolling(described="2")
    async with replicas.served() as target, working(configured(judge(), labels=target)) as workers:
        workers.disagreed(question(judge(), version="1"), "2")
        assert workers.settled(question(judge(), version="2"))
        workers.disagreed(question(judge(), version="1"), "")
        assert workers.settled(question(judge(), version="2"))


async def test_a_worker_that_is_away_stays_as_described(tmp_path):
    """Without a connection the description stays: its cached verdicts may stand in for it."""
    address = f"unix:{tmp_path}/w.sock"
    async with Rolling().served(address=address):
        reached = working(configured(judge(), labels=address))
        workers = await reached.__aenter__()
    try:
        await until(lambda: not workers._leased["labels"].connection.is_connected)
        assert workers.settled(question(judge()))
    finally:
        await reached.__aexit__(None, None, None)


async def test_a_worker_that_is_back_is_as_described_until_it_is_described_anew(tmp_path):
    """The new connection is not used before it is described, so until then it is as if it were away; then the version
    that it has now is settled, and no other.
    """
    address = f"unix:{tmp_path}/w.sock"
    async with Rolling().served(address=address):
        reached = working(configured(judge(), labels=address))
        workers = await reached.__aenter__()
    try:
        called_to, told_to = asyncio.Event(), asyncio.Event()

        async def describe(request, context):
            called_to.set()
            await told_to.wait()
            return description("judge", version="2")

        async with scripted(describe=describe, address=address):
            await asyncio.wait_for(called_to.wait(), WAIT_SECONDS)
            assert workers.settled(question(judge()))
            told_to.set()
            await until(lambda: availability(workers) == "2")
            await until(lambda: workers.settled(question(judge(), version="2")))
            assert not workers.settled(question(judge()))
    finally:
        await reached.__aexit__(None, None, None)


async def test_a_worker_that_is_back_is_away_until_it_has_judged_the_settings(tmp_path):
    """So too while it is described, and has not said yet whether it takes the policies' settings."""
    address = f"unix:{tmp_path}/w.sock"
    policy = judge(settings=b'{"a":1}')
    async with Rolling().served(address=address):
        reached = working(configured(policy, labels=address))
        workers = await reached.__aenter__()
    try:
        called_to, told_to = asyncio.Event(), asyncio.Event()

        async def validate(request, context):
            called_to.set()
            await told_to.wait()
            return pb.ValidateSettingsResponse().SerializeToString()

        async with Rolling("2", "2").served(address=address, validate=validate):
            await asyncio.wait_for(called_to.wait(), WAIT_SECONDS)
            assert workers.settled(question(policy))
            told_to.set()
            await until(lambda: availability(workers) == "2")
            assert workers.settled(question(policy, version="2"))
            assert not workers.settled(question(policy))
    finally:
        await reached.__aexit__(None, None, None)


async def test_the_next_configuration_knows_of_the_disagreement():
    """A version skew is the worker's: every holder of the same worker sees it, and describes the worker again."""
    replicas = Rolling()
    async with replicas.served() as target:
        # One connection: a second one that is described late would know the new version before it is answered.
        known, limits = configured(judge(), labels=target), TransportLimits(worker_connections=1)
        pool = WorkerPool(limits)
        first = Workers(known, limits, pool=pool)
        second = Workers(known, limits, pool=pool, before=(first,))
        try:
            await first.start(wait_seconds=10)
            await second.start(wait_seconds=10)
            await until(lambda: second.settled(question(judge())))
            replicas.described = replicas.answering = "2"
            await called(first, judge())
            assert not second.settled(question(judge()))
            await until(lambda: (availability(first), availability(second)) == ("2", "2"))
        finally:
            await second.close()
            await first.close()
            await pool.close()


async def test_a_worker_that_cannot_be_described_again_is_not_settled(log):
    """Where the description fails after a disagreement, the policies keep their standing and nothing is settled."""
    replicas = Rolling()
    async with replicas.served() as target, working(configured(judge(), labels=target)) as workers:
        workers._leased["labels"].connection.version_skew._seconds = 0.0
        replicas.answering, replicas.fails = "2", True
        await called(workers, judge())
        await until(lambda: [entry for entry in log if entry["event"] == "a worker cannot be described"])
        assert availability(workers) == "1"
        assert not workers.settled(question(judge()))
        replicas.fails = False
        await until(lambda: workers.settled(question(judge())))


async def test_nothing_is_settled_after_the_end():
    """Closed workers answer no call, and settle nothing."""
    async with Rolling().served() as target:
        async with working(configured(judge(), labels=target)) as workers:
            assert workers.settled(question(judge()))
        assert not workers.settled(question(judge()))
        workers.disagreed(question(judge()), "2")


async def test_descriptions_on_one_connection_are_bounded(monkeypatch):
    """However many answers disagree, the worker is described again no sooner than its pause is over."""
    monkeypatch.setattr(module, "DESCRIBE_INTERVAL_SECONDS", 1e6)
    replicas = Rolling(answering="2")
    async with replicas.served() as target, working(configured(judge(), labels=target)) as workers:
        for _ in range(20):
            await called(workers, judge())
        assert replicas.descriptions == 1
