"""A hook as a worker: described by its own words, asked in its own process, bounded and cancelled like any other."""

import asyncio
import json

import pytest

from gateway.engine.plan import Described
from gateway.engine.verdicts import Allow, Failure
from gateway.hooks.protocol.outcomes import HOOK_FAILED
from gateway.hooks.transport import description_watch
from gateway.policies.identity import verdict_identity
from gateway.policies.model import Configuration, HookTarget, Phase, Worker
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
from tests.hooks.transport.workers import asked, hooked, question
from tests.reports import Reports
from tests.transports.reaching import Reply, working
from tests.world import policy

pytestmark = pytest.mark.integration

ALLOW = answering({"allowed": True})
DENY = answering({"allowed": False, "message": "no"})


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where the files of runs are made. None is left, whatever happens."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    yield directory
    assert list(directory.iterdir()) == []


@pytest.fixture
def hasty(monkeypatch):
    """Files are looked at all the time."""
    monkeypatch.setattr(description_watch, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(description_watch, "RETRY_SECONDS", (0.05, 0.1))


# ---------------------------------------------------------------------------------------------- its description


async def test_it_describes_its_bindings(tmp_path):
    """By name and by id, each for its phase; claims nothing."""
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
    """Of one name."""
    config = CONFIG | {"kubernetesMutating": [{"name": VALIDATING, "rules": RULES}]}
    async with hooked(bash_hook(tmp_path, "", config=config)) as worker:
        phases = {entry.name: list(entry.phases) for entry in worker.live[0].message.policies}
        assert phases[VALIDATING] == [pb.PHASE_MUTATING, pb.PHASE_VALIDATING]


async def test_it_takes_no_settings(tmp_path):
    """None are fine, others are refused with a hint."""
    async with hooked(bash_hook(tmp_path, "")) as worker:
        assert not (await worker.validate_settings(VALIDATING, b"{}")).errors
        (error,) = (await worker.validate_settings(VALIDATING, b'{"a":1}')).errors
        assert "accepts no settings" in error.message


async def test_behind_the_gateway_its_policies_stand(tmp_path):
    """With its version, asked like those of every other worker."""
    path = python_hook(tmp_path, "json.dump({'allowed': True}, open(os.environ['ADMISSION_RESPONSE_PATH'], 'w'))")
    judge = policy("judge", phase=Phase.VALIDATING, worker="hook", policy=VALIDATING)
    configured = Worker(name="hook", hook=HookTarget(path="hook.py", directory=str(path.parent)))
    async with working(Configuration(workers={"hook": configured}, validating=(judge,)), wait=30.0) as workers:
        availability = workers.availabilities(Phase.VALIDATING)[judge.qualified_name]
        assert availability == Described(version=availability.version, identity=verdict_identity(judge, configured))
        reply = Reply()
        workers.call(question(), reply)
        assert await reply.first() == Allow(version=availability.version)


async def test_one_that_cannot_be_described_says_why(tmp_path, hasty):
    """To whoever asks, and it is described as soon as it can be."""
    path = executable(tmp_path / "hook.sh", "#!/bin/bash\necho '{'\n")
    async with hooked(path, described=False) as worker:
        await until(lambda: worker.why)
        answer = await asked(worker)
        assert answer.reason is Reason.WORKER_UNAVAILABLE
        assert "printed an invalid configuration" in answer.message
        bash_hook(tmp_path, ALLOW)
        await until(lambda: worker.live)
        assert isinstance(await asked(worker), Allow)


async def test_before_it_is_described_it_cannot_be_asked(tmp_path):
    """And says so at once."""
    async with hooked(bash_hook(tmp_path, ALLOW), described=False) as worker:
        assert (await asked(worker)).reason is Reason.WORKER_UNAVAILABLE


async def test_one_that_is_not_there_yet_is_waited_for(tmp_path, hasty):
    """Its file may come later."""
    async with hooked(tmp_path / "hook.sh", described=False) as worker:
        await until(lambda: "there is no such file" in worker.why)
        bash_hook(tmp_path, ALLOW)
        await until(lambda: worker.live)


async def test_a_changed_file_is_described_anew(tmp_path, hasty):
    """With another version; whoever listens is told."""
    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        (before,) = worker.live
        told = asyncio.Event()
        worker.listen(told.set)
        bash_hook(tmp_path, DENY)
        await until(lambda: worker.live not in ((), (before,)))
        assert worker.live[0].message.version != before.message.version
        assert told.is_set()
        assert not worker.is_doubted


async def test_a_touched_file_says_the_same(tmp_path, hasty):
    """Its description is the same object: nothing is worked out again."""
    path = bash_hook(tmp_path, ALLOW)
    async with hooked(path) as worker:
        (before,) = worker.live
        told = asyncio.Event()
        worker.listen(told.set)
        path.touch()
        async with asyncio.timeout(30):
            await told.wait()
        assert worker.live == (before,)


async def test_one_that_breaks_is_lost(tmp_path, hasty, log):
    """It is not asked any more, and not with what it said before."""
    path = bash_hook(tmp_path, ALLOW)
    events = Reports()
    async with hooked(path, events=events) as worker:
        assert events.usable == 1
        executable(path, "#!/bin/bash\nexit 1\n")
        await until(lambda: not worker.live)
        assert (await asked(worker)).reason is Reason.WORKER_UNAVAILABLE
        assert events.usable == 0
        assert any("hook became unavailable" in entry["event"] for entry in log)


async def test_of_a_file_that_has_just_changed_no_verdict_is_kept(tmp_path):
    """Nobody knows whose it is, until the new content is described."""
    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        settled = await asked(worker)
        assert (settled.version, settled.reuse) == (worker.live[0].message.version, None)
        bash_hook(tmp_path, f"sleep 0\n{ALLOW}")
        doubted = await asked(worker)
        assert (doubted.version, doubted.reuse) == ("", 0.0)
        await until(lambda: not worker.is_doubted)
        assert (await asked(worker)).version == worker.live[0].message.version != settled.version


async def test_of_a_file_that_changes_meanwhile_no_verdict_is_kept(tmp_path):
    """Which content has answered?"""
    async with hooked(bash_hook(tmp_path, f"echo >> hook.sh\n{ALLOW}")) as worker:
        assert (await asked(worker)).reuse == 0.0


async def test_a_binding_that_is_gone_is_a_failure(tmp_path):
    """Not a denial."""
    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        answer = await asked(worker, question("other.test.example.com"))
        assert answer.reason is Reason.CONFIGURATION
        assert (await asked(worker, question(VALIDATING, phase=Phase.MUTATING))).reason is Reason.CONFIGURATION


# ----------------------------------------------------------------------------------------------------- its asks


async def test_it_is_asked_by_name_or_by_id(tmp_path):
    """The hook sees the binding's whole name."""
    hook = bash_hook(tmp_path, f'grep -q \'"binding":"{VALIDATING}"\' $BINDING_CONTEXT_PATH || exit 1\n{ALLOW}')
    async with hooked(hook) as worker:
        for name in (VALIDATING, "judge-test-example-com"):
            assert isinstance(await asked(worker, question(name)), Allow)


async def test_it_is_given_snapshots(tmp_path):
    """Those that its binding includes."""
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
        assert (await asked(worker)).warnings == ("a", "b")


async def test_what_happens_is_counted(tmp_path):
    """Runs, and how many go on."""
    events = Reports()
    async with hooked(bash_hook(tmp_path, "exit 1"), events=events) as worker:
        assert (await asked(worker)).message == HOOK_FAILED.message
        await worker.idle()
    assert events.told == ["connected", "hook_run", "gone"]
    assert (events.running, events.usable) == (0, 0)


async def test_at_its_deadline_it_is_answered_and_ended(tmp_path, monkeypatch):
    """The answer does not wait for a process that does not listen."""
    # Far longer than the answer takes.
    monkeypatch.setattr("gateway.hooks.execution.process.GRACE_SECONDS", 3.0)
    hook = bash_hook(tmp_path, "trap '' TERM; echo $$ > own; while :; do sleep 9; done")
    for seconds in longer_and_longer(1.0):
        events = Reports()
        async with hooked(hook, events=events) as worker:
            answer = await asked(worker, question(seconds=seconds))
            if not (tmp_path / "own").exists():
                continue
            assert answer.reason is Reason.WORKER_TIMEOUT
            assert "stopped at its deadline" in answer.message
            assert events.running == 1
            await worker.idle()
            assert events.told == ["connected", "hook_run", "hook_killed"]
            break
    await gone(await pid_in(tmp_path / "own"))


async def test_cancelled_it_is_ended(tmp_path):
    """And nobody is told."""
    answers = []
    async with hooked(bash_hook(tmp_path, "echo $$ > own; sleep 1e6")) as worker:
        cancel = worker.ask(question(), lambda _, answer: answers.append(answer))
        pid = await pid_in(tmp_path / "own")
        cancel()
        await worker.idle()
        await gone(pid)
    assert answers == []


async def test_one_with_side_effects_is_not_broken_off(tmp_path):
    """It goes on though nobody waits."""
    answers = []
    async with hooked(
        bash_hook(tmp_path, "touch started; until test -e go; do sleep 0.01; done; touch done")
    ) as worker:
        cancel = worker.ask(question(cancellable=False), lambda _, answer: answers.append(answer))
        await until((tmp_path / "started").exists)
        cancel()
        (tmp_path / "go").touch()
        await worker.idle()
    assert (tmp_path / "done").exists()
    assert answers == []


async def test_one_with_side_effects_ends_at_its_deadline(tmp_path):
    """Which it has known from the start."""
    async with hooked(bash_hook(tmp_path, "echo $$ > own; sleep 1e6")) as worker:
        for seconds in longer_and_longer(1.0):
            worker.ask(question(cancellable=False, seconds=seconds), print)()
            worker.ask(question(cancellable=False, seconds=seconds), print)
            await worker.idle()
            if (tmp_path / "own").exists():
                break
    await gone(await pid_in(tmp_path / "own"))


async def test_closing_leaves_nothing(tmp_path):
    """Side effects or not; nobody is told."""
    answers = []
    body = "echo $$ > own.$$; (setsid sh -c 'echo $$ > away.$$; exec sleep 1e6' &); sleep 1e6"
    async with hooked(bash_hook(tmp_path, body), hook_processes=4) as worker:
        for cancellable in (True, False):
            worker.ask(question(cancellable=cancellable), lambda _, answer: answers.append(answer))
        files = await until(lambda: (found := [*tmp_path.glob("own.*"), *tmp_path.glob("away.*")])[3:] and found)
    for path in files:
        await gone(int(path.suffix[1:]))
    assert answers == []


async def test_what_waits_for_a_process_is_bounded(tmp_path):
    """One more is refused; one whose time is over was not started."""
    hook = bash_hook(tmp_path, "echo >> started; until test -e go; do sleep 0.01; done; exit 1")
    events = Reports()
    async with hooked(hook, events=events, hook_processes=1, hook_waiting=1) as worker:
        first = asyncio.create_task(asked(worker))
        await until((tmp_path / "started").exists)
        leave = worker.ask(question(), print)
        await asyncio.sleep(0)
        refused = await asked(worker)
        leave()
        late = await asked(worker, question(seconds=0.05))
        (tmp_path / "go").touch()
        assert (await first).message == HOOK_FAILED.message
    assert (refused.reason, late.reason) == (Reason.OVERLOADED, Reason.WORKER_TIMEOUT)
    assert "hook_processes" in late.message
    assert (tmp_path / "started").read_text() == "\n"
    assert WorkerEvent.HOOK_REFUSED.value in events.told


async def test_a_mistake_of_ours_is_a_failure(tmp_path, monkeypatch, log):
    """Somebody waits for an answer."""

    async def broken(*_arguments, **_fields):
        raise ZeroDivisionError

    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        monkeypatch.setattr(worker._runner, "call", broken)
        answer = await asked(worker)
    assert isinstance(answer, Failure)
    assert answer.reason is Reason.INTERNAL
    assert any("exception" in entry or entry.get("exc_info") for entry in log)


async def test_after_its_end_it_is_not_asked(tmp_path):
    """The gateway has let go of it."""
    async with hooked(bash_hook(tmp_path, ALLOW)) as worker:
        pass
    assert (await asked(worker)).reason is Reason.WORKER_UNAVAILABLE
