"""A hook as a worker: its description, its calls, their limits and cancellation."""

import asyncio
import json

import pytest

from gateway.documents.identity import verdict_identity
from gateway.engine.plan import Described
from gateway.engine.verdicts import Allow, Failure
from gateway.hooks.protocol.outcomes import HOOK_FAILED
from gateway.hooks.transport import description_watch
from gateway.policies.model import Configuration, Phase
from gateway.policies.workers.targets import HookTarget, Worker
from gateway.reasons import Reason
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.deadlines import longer_and_longer
from tests.hooks.scripts import (
    CONFIG,
    MUTATING,
    RULES,
    VALIDATING,
    answering,
    bash_hook,
    executable,
    gone,
    pid_in,
    python_hook,
    until,
)
from tests.hooks.transport.workers import answer_of, hooked, policy_call
from tests.reports import Reports
from tests.transports.reaching import Reply, working
from tests.world import policy

pytestmark = pytest.mark.integration

ALLOW = answering({"allowed": True})
DENY = answering({"allowed": False, "message": "no"})
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The directory of temporary files. None is left, whatever happens."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    yield directory
    assert list(directory.iterdir()) == []


@pytest.fixture
def hasty(monkeypatch):
    """Files are polled all the time."""
    monkeypatch.setattr(description_watch, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(description_watch, "RETRY_SECONDS", (0.05, 0.1))


# ---------------------------------------------------------------------------------------------- its description


async def test_a_hook_describes_its_bindings(tmp_path):
    """By name and by id, each with its phases; it claims nothing."""
    async with hooked(bash_hook(tmp_path, "")) as worker:
        (description,) = worker.live
        described = {entry.name: list(entry.phases) for entry in description.message.policies}
        assert described == {
            VALIDATING: [pb.PHASE_VALIDATING],
            "judge-test-example-com": [pb.PHASE_VALIDATING],
            MUTATING: [pb.PHASE_MUTATING],
            "change-test-example-com": [pb.PHASE_MUTATING],
        }
        assert not any(entry.HasField("inputs") or entry.HasField("writes") for entry in description.message.policies)
        assert worker.described() == {description: 1}
        assert worker.all_with(description) == (worker,)
        assert worker.why == ""


async def test_a_binding_of_both_phases_is_one_policy(tmp_path):
    """With both phases."""
    config = CONFIG | {"kubernetesMutating": [{"name": VALIDATING, "rules": RULES}]}
    async with hooked(bash_hook(tmp_path, "", config=config)) as worker:
        phases = {entry.name: list(entry.phases) for entry in worker.live[0].message.policies}
        assert phases[VALIDATING] == [pb.PHASE_MUTATING, pb.PHASE_VALIDATING]


async def test_a_hook_accepts_no_settings(tmp_path):
    """Empty settings are valid; others are rejected with a hint."""
    async with hooked(bash_hook(tmp_path, "")) as worker:
        assert not (await worker.validate_settings(VALIDATING, b"{}")).errors
        (error,) = (await worker.validate_settings(VALIDATING, b'{"a":1}')).errors
        assert "accepts no settings" in error.message


async def test_the_gateway_calls_its_policies(tmp_path):
    """With its version, like those of every other worker."""
    path = python_hook(tmp_path, "json.dump({'allowed': True}, open(os.environ['ADMISSION_RESPONSE_PATH'], 'w'))")
    judge = policy("judge", phase=Phase.VALIDATING, worker="hook", policy=VALIDATING)
    configured = Worker(name="hook", hook=HookTarget(path="hook.py", directory=str(path.parent)))
    async with working(Configuration(workers={"hook": configured}, validating=(judge,)), wait=30.0) as workers:
        availability = workers.availabilities(Phase.VALIDATING)[judge.qualified_name]
        assert availability == Described(version=availability.version, identity=verdict_identity(judge, configured))
        reply = Reply()
        workers.call(policy_call(), reply)
        assert await reply.first() == Allow(version=availability.version)


@pytest.mark.parametrize("trace", [{}, {"traceparent": TRACEPARENT}, {"traceparent": TRACEPARENT, "tracestate": "a=1"}])
async def test_a_hook_gets_the_trace_context_in_its_environment(tmp_path, trace):
    """In the variables that OpenTelemetry names for it, which are absent without a trace."""
    names = "{name: os.environ.get(name) for name in ('TRACEPARENT', 'TRACESTATE')}"
    path = python_hook(
        tmp_path,
        f"json.dump({{'allowed': False, 'message': json.dumps({names})}},"
        " open(os.environ['ADMISSION_RESPONSE_PATH'], 'w'))",
    )
    async with hooked(path) as worker:
        answer = await answer_of(worker, policy_call(**trace))
    expected = {"TRACEPARENT": trace.get("traceparent"), "TRACESTATE": trace.get("tracestate")}
    assert json.loads(answer.message) == expected


async def test_a_hook_that_cannot_be_described_says_why(tmp_path, hasty):
    """Its calls fail with the reason, until it can be described."""
    path = executable(tmp_path / "hook.sh", "#!/bin/bash\necho '{'\n")
    async with hooked(path, described=False) as worker:
        await until(lambda: worker.why)
        answer = await answer_of(worker)
        assert answer.reason is Reason.WORKER_UNAVAILABLE
        assert "printed an invalid configuration" in answer.message
        bash_hook(tmp_path, ALLOW)
        await until(lambda: worker.live)
        assert isinstance(await answer_of(worker), Allow)


async def test_a_call_before_the_description_fails(tmp_path):
    """At once."""
    async with hooked(bash_hook(tmp_path, ALLOW), described=False) as worker:
        assert (await answer_of(worker)).reason is Reason.WORKER_UNAVAILABLE


async def test_a_hook_whose_file_appears_later_is_described(tmp_path, hasty):
    """The worker retries."""
    async with hooked(tmp_path / "hook.sh", described=False) as worker:
        await until(lambda: "there is no such file" in worker.why)
        bash_hook(tmp_path, ALLOW)
        await until(lambda: worker.live)


async def test_a_changed_file_is_described_again(tmp_path, hasty):
    """With another version; listeners are notified."""
    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        (before,) = worker.live
        notified = asyncio.Event()
        worker.listen(notified.set)
        bash_hook(tmp_path, DENY)
        await until(lambda: worker.live not in ((), (before,)))
        assert worker.live[0].message.version != before.message.version
        assert notified.is_set()
        assert not worker.is_doubted


async def test_a_touched_file_has_the_same_description(tmp_path, hasty):
    """It is the same object, so nothing is computed again."""
    path = bash_hook(tmp_path, ALLOW)
    async with hooked(path) as worker:
        (before,) = worker.live
        notified = asyncio.Event()
        worker.listen(notified.set)
        path.touch()
        async with asyncio.timeout(30):
            await notified.wait()
        assert worker.live == (before,)


async def test_a_hook_whose_configuration_becomes_invalid_is_unavailable(tmp_path, hasty, log):
    """It is not called, not even by its last description."""
    path = bash_hook(tmp_path, ALLOW)
    events = Reports()
    async with hooked(path, events=events) as worker:
        assert events.usable == 1
        executable(path, "#!/bin/bash\nexit 1\n")
        await until(lambda: not worker.live)
        assert (await answer_of(worker)).reason is Reason.WORKER_UNAVAILABLE
        assert events.usable == 0
        assert any("hook became unavailable" in entry["event"] for entry in log)


async def test_verdicts_of_a_changed_file_are_not_reused(tmp_path):
    """Until its new content is described."""
    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        settled = await answer_of(worker)
        assert (settled.version, settled.reuse) == (worker.live[0].message.version, None)
        bash_hook(tmp_path, f"sleep 0\n{ALLOW}")
        doubted = await answer_of(worker)
        assert (doubted.version, doubted.reuse) == ("", 0.0)
        await until(lambda: not worker.is_doubted)
        assert (await answer_of(worker)).version == worker.live[0].message.version != settled.version


async def test_a_verdict_is_not_reused_if_the_file_changes_during_the_call(tmp_path):
    """It is unknown which content gave it."""
    async with hooked(bash_hook(tmp_path, f"echo >> hook.sh\n{ALLOW}")) as worker:
        assert (await answer_of(worker)).reuse == 0.0


async def test_a_binding_that_is_gone_is_a_failure(tmp_path):
    """Not a denial."""
    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        answer = await answer_of(worker, policy_call("other.test.example.com"))
        assert answer.reason is Reason.CONFIGURATION
        assert (await answer_of(worker, policy_call(VALIDATING, phase=Phase.MUTATING))).reason is Reason.CONFIGURATION


# ----------------------------------------------------------------------------------------------------- its calls


async def test_a_binding_is_called_by_name_or_by_id(tmp_path):
    """The hook gets the binding's name."""
    hook = bash_hook(tmp_path, f'grep -q \'"binding":"{VALIDATING}"\' $BINDING_CONTEXT_PATH || exit 1\n{ALLOW}')
    async with hooked(hook) as worker:
        for name in (VALIDATING, "judge-test-example-com"):
            assert isinstance(await answer_of(worker, policy_call(name)), Allow)


async def test_a_hook_gets_its_snapshots(tmp_path):
    """Those that the binding includes."""
    config = {
        "configVersion": "v1",
        "kubernetes": [{"name": "all", "kind": "Namespace"}],
        "kubernetesValidating": [{"name": VALIDATING, "rules": RULES, "includeSnapshotsFrom": ["all"]}],
    }
    body = """
(context,) = json.load(open(os.environ["BINDING_CONTEXT_PATH"]))
names = [each["object"]["metadata"]["name"] for each in context["snapshots"]["all"]]
json.dump({"allowed": True, "warnings": names}, open(os.environ["ADMISSION_RESPONSE_PATH"], "w"))
"""
    objects = tuple(
        json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).encode() for name in "ab"
    )
    async with hooked(python_hook(tmp_path, body, config=config), objects=objects) as worker:
        assert (await answer_of(worker)).warnings == ("a", "b")


async def test_runs_are_counted(tmp_path):
    """And how many are running."""
    events = Reports()
    async with hooked(bash_hook(tmp_path, "exit 1"), events=events) as worker:
        assert (await answer_of(worker)).message == HOOK_FAILED.message
        await worker.idle()
    assert events.counted == ["connected", "hook_run", "gone"]
    assert (events.running, events.usable) == (0, 0)


async def test_at_its_deadline_a_call_is_answered_and_stopped(tmp_path, monkeypatch):
    """The answer does not wait for a process that ignores SIGTERM."""
    # Far longer than the answer takes.
    monkeypatch.setattr("gateway.hooks.execution.process.GRACE_SECONDS", 3.0)
    hook = bash_hook(tmp_path, "trap '' TERM; echo $$ > own; while :; do sleep 9; done")
    for seconds in longer_and_longer(1.0):
        events = Reports()
        async with hooked(hook, events=events) as worker:
            answer = await answer_of(worker, policy_call(seconds=seconds))
            if not (tmp_path / "own").exists():
                continue
            assert answer.reason is Reason.WORKER_TIMEOUT
            assert "stopped at its deadline" in answer.message
            assert events.running == 1
            await worker.idle()
            assert events.counted == ["connected", "hook_run", "hook_killed"]
            break
    await gone(await pid_in(tmp_path / "own"))


async def test_a_cancelled_call_stops_its_process(tmp_path):
    """It has no answer."""
    answers = []
    async with hooked(bash_hook(tmp_path, "echo $$ > own; sleep 1e6")) as worker:
        cancel = worker.call(policy_call(), lambda _, answer: answers.append(answer))
        pid = await pid_in(tmp_path / "own")
        cancel()
        await worker.idle()
        await gone(pid)
    assert answers == []


async def test_a_cancelled_call_with_side_effects_continues(tmp_path):
    """Without an answer."""
    answers = []
    async with hooked(
        bash_hook(tmp_path, "touch started; until test -e go; do sleep 0.01; done; touch done")
    ) as worker:
        cancel = worker.call(policy_call(cancellable=False), lambda _, answer: answers.append(answer))
        await until((tmp_path / "started").exists)
        cancel()
        (tmp_path / "go").touch()
        await worker.idle()
    assert (tmp_path / "done").exists()
    assert answers == []


async def test_a_call_with_side_effects_is_stopped_at_its_deadline(tmp_path):
    """Cancelled or not."""
    async with hooked(bash_hook(tmp_path, "echo $$ > own; sleep 1e6")) as worker:
        for seconds in longer_and_longer(1.0):
            worker.call(policy_call(cancellable=False, seconds=seconds), print)()
            worker.call(policy_call(cancellable=False, seconds=seconds), print)
            await worker.idle()
            if (tmp_path / "own").exists():
                break
    await gone(await pid_in(tmp_path / "own"))


async def test_closing_leaves_nothing(tmp_path):
    """Side effects or not; open calls have no answer."""
    answers = []
    body = "echo $$ > own.$$; (setsid sh -c 'echo $$ > away.$$; exec sleep 1e6' &); sleep 1e6"
    async with hooked(bash_hook(tmp_path, body), hook_processes=4) as worker:
        for cancellable in (True, False):
            worker.call(policy_call(cancellable=cancellable), lambda _, answer: answers.append(answer))
        files = await until(lambda: (found := [*tmp_path.glob("own.*"), *tmp_path.glob("away.*")])[3:] and found)
    for path in files:
        await gone(int(path.suffix[1:]))
    assert answers == []


async def test_waiting_calls_are_limited(tmp_path):
    """One more is rejected; a call whose deadline has passed is not started."""
    hook = bash_hook(tmp_path, "echo >> started; until test -e go; do sleep 0.01; done; exit 1")
    events = Reports()
    async with hooked(hook, events=events, hook_processes=1, hook_waiting=1) as worker:
        first = asyncio.create_task(answer_of(worker))
        await until((tmp_path / "started").exists)
        leave = worker.call(policy_call(), print)
        await asyncio.sleep(0)
        refused = await answer_of(worker)
        leave()
        late = await answer_of(worker, policy_call(seconds=0.05))
        (tmp_path / "go").touch()
        assert (await first).message == HOOK_FAILED.message
    assert (refused.reason, late.reason) == (Reason.OVERLOADED, Reason.WORKER_TIMEOUT)
    assert "hook_processes" in late.message
    assert (tmp_path / "started").read_text() == "\n"
    assert WorkerEvent.HOOK_REFUSED.value in events.counted


async def test_a_bug_of_the_gateway_is_a_failure(tmp_path, monkeypatch, log):
    """The call is answered."""

    async def broken(*_arguments, **_fields):
        raise ZeroDivisionError

    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        monkeypatch.setattr(worker._runner, "call", broken)
        answer = await answer_of(worker)
    assert isinstance(answer, Failure)
    assert answer.reason is Reason.INTERNAL
    assert any("exception" in entry or entry.get("exc_info") for entry in log)


async def test_a_closed_worker_is_not_called(tmp_path):
    """The call fails."""
    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        pass
    assert (await answer_of(worker)).reason is Reason.WORKER_UNAVAILABLE
