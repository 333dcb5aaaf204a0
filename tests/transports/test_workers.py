"""Workers over time: connected, described, called; away and back; and whose policies may be called meanwhile."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import grpc
import pytest
from msgspec.structs import replace

from gateway.engine.plan import UnavailableReason
from gateway.engine.verdicts import Deny
from gateway.policies.model import Configuration, Phase
from gateway.policies.workers.targets import GrpcTarget, HookTarget, QueueTarget, Worker
from gateway.reasons import Reason
from gateway.transports.grpc import connection as module
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until
from tests.integration.workers import Gate, Hanging, always, deny, description, scripted, status
from tests.transports.reaching import Reply, availability, called, configured, judge, question, working
from tests.world import policy


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pauses too short to wait for."""
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.001, 0.004))


async def test_a_described_policy_stands_with_its_version():
    """After the start each policy stands with the version that judges it: its own, or the worker's."""
    own = pb.PolicyDescription(name="own", version="7", phases=[pb.PHASE_VALIDATING])
    said = pb.DescribeResponse.FromString(description("judge", version="1.4.2"))
    said.policies.append(own)
    async with (
        scripted(describe=always(said.SerializeToString())) as target,
        working(configured(judge(), judge("own", index=1), labels=target)) as workers,
    ):
        assert (availability(workers), availability(workers, "own")) == ("1.4.2", "7")


async def test_a_worker_gets_the_gateways_version():
    """Describe gets the gateway's version, and ValidateSettings each policy's name and settings."""
    reported = []

    async def describe(request, context):
        reported.append(pb.DescribeRequest.FromString(request).gateway_version)
        return description("judge", "other")

    async def validate(request, context):
        called_ = pb.ValidateSettingsRequest.FromString(request)
        reported.append((called_.policy, called_.settings))
        return b""

    policies = (judge(settings=b'{"a":1}'), judge("other", index=1))
    async with (
        scripted(describe=describe, validate=validate) as target,
        working(configured(*policies, labels=target)),
    ):
        pass
    assert reported == ["0.1.0", ("judge", b'{"a":1}'), ("other", b"{}")]


async def test_equal_settings_of_a_policy_are_put_to_its_worker_once():
    """However many configured policies share them."""
    reported = []

    async def validate(request, context):
        reported.append(pb.ValidateSettingsRequest.FromString(request).settings)
        return b""

    twins = [
        policy(name, phase=Phase.VALIDATING, index=index, worker="labels", policy="judge", settings=settings)
        for index, (name, settings) in enumerate([("a", b"{}"), ("b", b"{}"), ("c", b'{"a":1}')])
    ]
    async with (
        scripted("judge", validate=validate) as target,
        working(configured(*twins, labels=target)) as workers,
    ):
        assert [availability(workers, name) for name in "abc"] == ["1", "1", "1"]
    assert reported == [b"{}", b'{"a":1}']


async def test_a_policy_that_is_described_twice_cannot_be_called():
    """It is unknown which of them would answer; the worker's other policies can be."""
    async with (
        scripted("judge", "judge", "other") as target,
        working(configured(judge(), judge("other", index=1), labels=target)) as workers,
    ):
        assert availability(workers).failure.reason is Reason.CONFIGURATION
        assert "more than once" in availability(workers).message
        assert availability(workers, "other") == "1"


async def test_a_policy_with_a_fault_is_not_put_to_its_worker():
    """A policy that is wrong by itself has no standing: its fault says why it fails."""
    wrong = judge("wrong", index=1, fault="policies[1].timeoutSeconds: Invalid value")
    async with scripted("judge", "wrong") as target, working(configured(judge(), wrong, labels=target)) as workers:
        assert (availability(workers), availability(workers, "wrong")) == ("1", None)


async def test_a_warning_about_settings_is_logged(log):
    """What a worker warns of is logged with the policy's place, and the policy may be called."""
    accepted = pb.ValidateSettingsResponse(warnings=["that field is old"]).SerializeToString()
    async with (
        scripted("judge", validate=always(accepted)) as target,
        working(configured(judge(), labels=target)) as workers,
    ):
        assert availability(workers) == "1"
    (entry,) = [entry for entry in log if entry["event"] == "a worker warns of settings"]
    assert (entry["policy"], entry["warning"]) == ("test/judge.test.example.com", "that field is old")


async def test_all_errors_of_settings_are_reported():
    """The failure of refused settings names each place, on one line, and is cut."""
    errors = [pb.SettingsError(pointer=f"/a/{number}", message="not\nthis") for number in range(1000)]
    refused = pb.ValidateSettingsResponse(errors=errors).SerializeToString()
    async with (
        scripted("judge", validate=always(refused)) as target,
        working(configured(judge(), labels=target)) as workers,
    ):
        failure = availability(workers)
    assert failure.failure.reason is Reason.CONFIGURATION
    assert "refuses the settings: settings/a/0: not this; settings/a/1: not this" in failure.message
    assert failure.message.isprintable()
    assert len(failure.message) < 1000


async def test_who_is_away_does_not_stop_the_start(log, tmp_path):
    """A worker that is not there costs the start its wait and no more; its policies fail, and the log says so."""
    target = f"unix:{tmp_path}/away.sock"
    why = f"worker 'labels' at {target} cannot be reached; check that it runs: "
    async with working(configured(judge(), labels=target), wait=0.01) as workers:
        await until(lambda: getattr(availability(workers), "message", "").startswith(why))
        assert availability(workers).failure.reason is Reason.CONFIGURATION
    (entry,) = [entry for entry in log if entry["event"].startswith("a worker is not described yet")]
    assert (entry["worker"], entry["target"], entry["log_level"]) == ("labels", target, "warning")


async def test_a_worker_that_never_answers_is_called_again(log):
    """A Describe that hangs ends with its own limit, and is tried again with growing pauses."""
    describe = Hanging()
    async with (
        scripted(describe=describe) as target,
        working(configured(judge(), labels=target), wait=0.0, describe_seconds=0.02) as workers,
    ):
        await until(lambda: len([e for e in log if e["event"] == "a worker cannot be described"]) >= 4)
        # Its server keeps the same time: now and then it is the first to say so, in other words.
        await until(lambda: "DEADLINE_EXCEEDED" in availability(workers).message)
    pauses = [entry["again_in"] for entry in log if entry["event"] == "a worker cannot be described"]
    assert pauses[:4] == [0.001, 0.002, 0.004, 0.004]


async def test_every_change_of_availability_is_reported(tmp_path):
    """Availability is reported when it changes: at first contact, and when a new worker differs."""
    address = f"unix:{tmp_path}/w.sock"
    seen = []
    workers = Workers(
        configured(judge(), labels=address),
        changed=lambda: seen.append(getattr(availability(workers), "why", availability(workers))),
    )
    try:
        await workers.start()
        await until(lambda: set(seen) == {UnavailableReason.UNDESCRIBED})
        async with scripted("judge", address=address):
            await until(lambda: seen[-1] == "1")
        async with scripted("other", address=address):
            await until(lambda: seen[-2:] == ["1", UnavailableReason.UNKNOWN_POLICY])
        async with scripted("judge", describe=always(description("judge", version="2")), address=address):
            await until(lambda: seen[-2:] == [UnavailableReason.UNKNOWN_POLICY, "2"])
    finally:
        await workers.close()


async def test_a_new_worker_that_cannot_be_described_is_not_called(log, tmp_path):
    """Where a worker comes back and cannot be described, its policies keep their last good standing, and fail."""
    address = f"unix:{tmp_path}/w.sock"
    async with scripted("judge", address=address):
        started = working(configured(judge(), labels=address))
        workers = await started.__aenter__()
    try:
        async with scripted(describe=status(grpc.StatusCode.INTERNAL, "x"), review=always(deny()), address=address):
            await until(lambda: [e for e in log if e["event"] == "a worker cannot be described"])
            assert availability(workers) == "1"
            answer = await called(workers, judge())
            assert answer.reason is Reason.WORKER_UNAVAILABLE
            assert "answered Describe with status INTERNAL: x" in answer.message
    finally:
        await started.__aexit__(None, None, None)


async def test_a_socket_is_beside_its_file(tmp_path):
    """A relative Unix socket is in the directory of the file that names it."""
    async with (
        scripted("judge", address=f"unix:{tmp_path}/beside.sock"),
        working(configured(judge(), labels="unix:beside.sock", directory=tmp_path)) as workers,
    ):
        assert availability(workers) == "1"


async def test_an_answer_comes_after_the_question():
    """``answered`` is called once, and never inside the call that calls."""
    async with (
        scripted("judge", review=always(deny("no"))) as target,
        working(configured(judge(), labels=target)) as workers,
    ):
        reply = Reply()
        workers.call(question(judge()), reply)
        assert reply.answers == []
        await until(lambda: reply.answers)
        assert [answer.message for answer in reply.answers] == ["no"]


async def test_a_cancelled_question_has_no_answer():
    """After a cancel the worker's call is cancelled, and ``answered`` is not called."""
    review, reply = Hanging(), Reply()
    async with scripted("judge", review=review) as target, working(configured(judge(), labels=target)) as workers:
        cancel = workers.call(question(judge()), reply)
        await asyncio.wait_for(review.called.wait(), WAIT_SECONDS)
        cancel()
        await asyncio.wait_for(review.cancelled.wait(), WAIT_SECONDS)
    assert reply.answers == []


async def test_a_deadline_that_passes_is_a_timeout():
    """A question whose time ends, or is over already, is a WORKER_TIMEOUT, and the worker's call is cancelled."""
    for left in (0.02, -5.0):
        review = Hanging()
        async with (
            scripted("judge", review=review) as target,
            working(configured(judge(), labels=target)) as workers,
        ):
            answer = await called(workers, judge(), deadline=monotonic() + left)
            assert answer.reason is Reason.WORKER_TIMEOUT
            assert not review.called.is_set() or await asyncio.wait_for(review.cancelled.wait(), WAIT_SECONDS)


async def test_closing_breaks_off_what_is_open():
    """Closing cancels the open calls, and the worker sees its connection end."""
    review, reply = Gate(), Reply()
    async with scripted("judge", review=review) as target:
        async with working(configured(judge(), labels=target)) as workers:
            workers.call(question(judge()), reply)
            await asyncio.wait_for(review.called.wait(), WAIT_SECONDS)
        review.open.set()
    assert reply.answers == []


@pytest.mark.integration
async def test_a_command_without_a_target_has_a_socket_of_its_own():
    """A worker that the gateway starts, and that names no target, gets a socket in a directory that goes with it; the
    length of its name does not matter.
    """
    script = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(os.environ['ADMISSION_WORKER_LISTEN'][5:]);"
        "s.listen(); sys.stdin.read()"
    )
    name = ".".join(["n" * 63] * 3)
    worker = Worker(name=name, grpc=GrpcTarget(target="", command=("python", "-c", script)))
    async with working(Configuration(workers={name: worker}), wait=0.0) as workers:
        path = Path(workers._leased[name].connection.target.removeprefix("unix:"))
        await until(path.exists)
    assert not path.parent.exists()


# --------------------------------------------------------------------------------- one configuration after another


@asynccontextmanager
async def following(*configurations, **limits):
    """Workers of several configurations with one pool, each the follower of the one before; not started."""
    made, limits = [], TransportLimits(**limits)
    pool = WorkerPool(limits)
    for configuration in configurations:
        made.append(Workers(configuration, limits, pool=pool, before=made[-1:]))
    try:
        yield made
    finally:
        for workers in made:
            await workers.close()
        await pool.close()


async def test_an_unchanged_worker_keeps_its_connection():
    """A Worker that says the same in the next configuration is the same connection, and called through both."""
    async with scripted("judge", review=always(deny("no"))) as target:
        known = configured(judge(), labels=target)
        async with following(known, known) as (first, second):
            await first.start(wait_seconds=10)
            await second.start()
            assert second._leased["labels"] is first._leased["labels"]
            await first.close()
            assert (await called(second, judge())).message == "no"


async def test_an_unchanged_question_keeps_its_standing(tmp_path):
    """While its worker is away, a policy that says the same can be called in the next configuration too, and the start
    does not wait; one with other settings cannot.
    """
    address = f"unix:{tmp_path}/w.sock"
    before = configured(judge(), judge("other", index=1), labels=address)
    after = configured(judge(), judge("other", index=1, settings=b'{"a":1}'), labels=address)
    async with following(before, before, after) as (first, second, third):
        async with scripted("judge", "other", address=address):
            await first.start(wait_seconds=10)
        await second.start(wait_seconds=10)
        assert (availability(second), availability(second, "other")) == ("1", "1")
        await third.start()
        await until(lambda: availability(third, "other") is not None)
        assert (availability(third), availability(third, "other").failure.reason) == ("1", Reason.CONFIGURATION)


async def test_new_settings_are_validated_anew():
    """Of an unchanged worker, the settings that have changed are put to it, and count."""

    async def validate(request, context):
        refused = pb.ValidateSettingsRequest.FromString(request).settings != b"{}"
        errors = [pb.SettingsError(message="no")] if refused else []
        return pb.ValidateSettingsResponse(errors=errors).SerializeToString()

    async with scripted("judge", validate=validate) as target:
        before, after = configured(judge(), labels=target), configured(judge(settings=b'{"a":1}'), labels=target)
        async with following(before, after) as (first, second):
            await first.start(wait_seconds=10)
            await second.start(wait_seconds=10)
            assert (availability(first), availability(second).failure.reason) == ("1", Reason.CONFIGURATION)


async def test_new_settings_that_cannot_be_validated_yet_are_tried_again():
    """Where the worker cannot say anything about them, what is unchanged can be called, and they once it can."""
    able = False

    async def validate(request, context):
        if not able and pb.ValidateSettingsRequest.FromString(request).settings != b"{}":
            await context.abort(grpc.StatusCode.INTERNAL, "not now")
        return b""

    async with scripted("judge", "other", validate=validate) as target:
        before = configured(judge(), judge("other", index=1), labels=target)
        after = configured(judge(), judge("other", index=1, settings=b'{"a":1}'), labels=target)
        async with following(before, after) as (first, second):
            await first.start(wait_seconds=10)
            await second.start()
            await until(lambda: "not now" in getattr(availability(second, "other"), "message", ""))
            assert availability(second) == "1"
            able = True
            await until(lambda: availability(second, "other") == "1")


async def test_a_worker_is_given_up_when_its_last_call_has_ended():
    """Calls in flight end before the connection does, also those that outlive every configuration that names it."""
    review, reply = Gate(deny("late")), Reply()
    async with scripted("judge", review=review) as target:
        known = configured(judge(), labels=target)
        async with following(known, Configuration()) as (first, second):
            await first.start(wait_seconds=10)
            connection = first._leased["labels"].connection
            first.call(question(judge()), reply)
            await asyncio.wait_for(review.called.wait(), WAIT_SECONDS)
            await second.start()
            await first.close()
            review.open.set()
            await until(lambda: reply.answers)
            assert [answer.message for answer in reply.answers] == ["late"]
            await until(lambda: not second._pool._active)
            assert not connection._open


async def test_a_worker_that_is_named_again_is_not_given_up():
    """Who is named again while the last calls end stays as it is."""
    review, reply = Gate(deny("late")), Reply()
    async with scripted("judge", review=review) as target:
        known = configured(judge(), labels=target)
        async with following(known, known) as (first, second):
            await first.start(wait_seconds=10)
            connection = first._leased["labels"].connection
            first.call(question(judge()), reply)
            await asyncio.wait_for(review.called.wait(), WAIT_SECONDS)
            await first.close()
            await second.start()
            review.open.set()
            await until(lambda: reply.answers)
            await asyncio.sleep(0)
            assert second._leased["labels"].connection is connection
            assert isinstance(await called(second, judge()), Deny)


@pytest.mark.integration
async def test_two_processes_of_ours_are_never_at_one_target(tmp_path):
    """The second is started when the first has gone, and its policies say so until then."""
    script = (
        "import os, socket, sys; p = os.environ['ADMISSION_WORKER_LISTEN'][5:]; s = socket.socket(socket.AF_UNIX);"
        "s.bind(p); s.listen(); sys.stdin.read()"
    )

    def known(*more):
        target = GrpcTarget(target=f"unix:{tmp_path}/w.sock", command=("python", "-c", script, *more))
        return Configuration(workers={"labels": Worker(name="labels", grpc=target)}, validating=(judge(),))

    async with following(known("1"), known("2"), worker_stop_seconds=0.1) as (first, second):
        await first.start()
        supervisor = first._leased["labels"].supervisor
        await until(lambda: supervisor.pid)
        await second.start()
        await until(lambda: availability(second) is not None)
        assert "another process that the gateway started still listens at" in availability(second).message
        assert "labels" not in second._leased
        (tmp_path / "w.sock").unlink(missing_ok=True)
        await first.close()
        await until(lambda: "labels" in second._leased)
        assert supervisor.pid is None
        await until(lambda: second._leased["labels"].supervisor.pid)


@pytest.mark.parametrize(
    ("worker", "why"),
    [
        ({"queue": QueueTarget(stream="labels", key_file="none.key")}, "spec.queue needs Redis"),
        ({"hook": HookTarget(path="none.sh")}, "there is no such file"),
        ({"grpc": GrpcTarget(target="unix:none.sock")}, "none.sock"),
    ],
    ids=["queue", "hook", "grpc"],
)
async def test_a_start_without_a_worker_says_why(tmp_path, log, worker, why):
    """In the line that says whose policies cannot be called: no other may be there yet."""
    ((transport, target),) = worker.items()
    found = Worker(name="labels", **{transport: replace(target, directory=str(tmp_path))})
    reported = {}
    for wait in (0.2, 2, 20):  # a slow machine finds out later
        async with working(Configuration(workers={"labels": found}, validating=(judge(),)), wait=wait):
            reported = [entry for entry in log if entry["event"].startswith("a worker is not described yet")][-1]
        if why in reported["why"]:
            break
    assert reported["worker"] == "labels"
    assert why in reported["why"]


async def test_a_worker_that_can_never_be_called_is_not_waited_for():
    """A queue without a Redis: the start goes on at once, and its policies fail with the reason."""
    worker = Worker(name="labels", queue=QueueTarget(stream="q", key_file="k", directory="/nonexistent"))
    configuration = Configuration(workers={"labels": worker}, validating=(judge(),))
    async with working(configuration, wait=86_400.0) as workers:
        assert availability(workers).failure.reason is Reason.CONFIGURATION
        assert "--queue-redis" in availability(workers).message
