"""Real hooks, in bash and Python, judged by what they leave: shell-operator's answers, and its failures."""

import asyncio
import base64
import json
import os
import signal
import threading
import time

import pytest

from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.hooks.execution import files
from gateway.hooks.execution.config_run import CONFIG_RUNS
from gateway.hooks.execution.runner import HookRequest, HookRunner, RunEvent
from gateway.hooks.protocol.outcomes import HOOK_FAILED, NO_ANSWER
from gateway.hooks.protocol.verdicts import verdict
from gateway.policies.model import Phase
from gateway.reasons import Reason
from tests.hooks.scripts import (
    CONFIG,
    LIMITS,
    MUTATING,
    PATIENCE,
    VALIDATING,
    answering,
    bash_hook,
    executable,
    gone,
    limits,
    pid_in,
    python_hook,
    until,
)

pytestmark = pytest.mark.integration

PATCH = [{"op": "add", "path": "/spec/replicas", "value": 333}]
ENCODED = base64.b64encode(json.dumps(PATCH).encode()).decode()
DOCUMENT = b'{"operation":"CREATE","object":{"spec":{"image":"a"}}}'


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where the files of runs are made. None is left, whatever happens."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    yield directory
    assert list(directory.iterdir()) == []


async def judged(hook, *, phase=Phase.VALIDATING, seconds=PATIENCE, on_event=None, runner=None, **fields):
    """What a hook says, or why it says nothing."""
    request = HookRequest(
        binding=VALIDATING if phase is Phase.VALIDATING else MUTATING, phase=phase, document=DOCUMENT, uid="u1"
    )
    runner = runner or HookRunner(limits(**fields))
    return await runner.call(hook, request, deadline=time.monotonic() + seconds, on_event=on_event or [].append)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"allowed": True, "warnings": ["w"]}, Allow(warnings=("w",))),
        ({"allowed": False, "message": "no way"}, Deny(code=403, message="no way", reason="")),
        ("{", HOOK_FAILED),
    ],
)
async def test_the_answer_is_the_verdict(tmp_path, answer, verdict):
    """As ``protocol.verdicts`` reads it."""
    assert await judged(bash_hook(tmp_path, answering(answer))) == verdict


async def test_the_phase_decides_what_a_patch_is(tmp_path):
    """A change of a mutating hook, and an invalid response of a validating one."""
    hook = bash_hook(tmp_path, answering({"allowed": True, "patch": ENCODED}))
    change = Change(kind=ChangeKind.KUBERNETES_PATCH, content=json.dumps(PATCH).encode())
    assert await judged(hook, phase=Phase.MUTATING) == Allow(change=change)
    answer = await judged(hook)
    assert isinstance(answer, Failure)
    assert answer.reason is Reason.INVALID_RESPONSE


async def test_either_path_leads_to_the_answer(tmp_path):
    """VALIDATING_RESPONSE_PATH, and ADMISSION_RESPONSE_PATH."""
    hook = bash_hook(tmp_path, """echo '{"allowed":true}' > "$ADMISSION_RESPONSE_PATH" """)
    assert await judged(hook) == Allow()


async def test_a_hook_in_python_sees_the_whole_contract(tmp_path):
    """No arguments, its own directory, the context, and every variable that shell-operator gives; no other."""
    body = """
context = json.load(open(os.environ["BINDING_CONTEXT_PATH"]))
json.dump({"allowed": True, "warnings": [json.dumps([
    sys.argv[1:], os.getcwd(), context[0]["binding"], context[0]["type"], context[0]["review"]["request"]["object"],
    sorted(name for name in os.environ if name.endswith("_PATH")), os.environ.get("ADMISSION_GATEWAY_SECRET"),
])]}, open(os.environ["ADMISSION_RESPONSE_PATH"], "w"))
"""
    os.environ["ADMISSION_GATEWAY_SECRET"] = "s"
    try:
        answer = await judged(python_hook(tmp_path / "deep", body))
    finally:
        del os.environ["ADMISSION_GATEWAY_SECRET"]
    paths = ["ADMISSION_RESPONSE", "BINDING_CONTEXT", "CONVERSION_RESPONSE", "KUBERNETES_PATCH", "METRICS"]
    assert json.loads(answer.warnings[0]) == [
        [],
        str((tmp_path / "deep").resolve()),
        VALIDATING,
        "Validating",
        {"spec": {"image": "a"}},
        [f"{path}_PATH" for path in [*paths, "VALIDATING_RESPONSE"]],
        None,
    ]


async def test_no_answer_is_a_denial_with_500_and_the_log_says_why(tmp_path, log):
    """The log line of a failed hook has the hook, the binding and the uid."""
    hook = bash_hook(tmp_path, "echo {} > $VALIDATING_RESPONSE_PATH; > $VALIDATING_RESPONSE_PATH")
    assert await judged(hook) == NO_ANSWER
    (entry,) = [entry for entry in log if entry["log_level"] == "warning"]
    assert entry["event"] == "hook failed; the request is denied"
    assert "no answer" in entry["why"]
    assert (entry["hook"], entry["binding"], entry["uid"]) == (str(hook), VALIDATING, "u1")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("exit 1", "status 1"),
        ("kill -SEGV $$", "signal 11"),
        (f"{answering({'allowed': True})}\nexit 3", "status 3"),
        (f"{answering({'allowed': True})}\necho '{{' > $METRICS_PATH", "METRICS_PATH"),
        ("rm $VALIDATING_RESPONSE_PATH", "cannot be read"),
        ("rm $VALIDATING_RESPONSE_PATH; mkfifo $VALIDATING_RESPONSE_PATH", "cannot be read"),
    ],
)
async def test_a_failed_hook_denies_and_the_log_says_why(tmp_path, log, body, why):
    """403 "Hook failed", and nothing of it is dropped silently."""
    assert await judged(bash_hook(tmp_path, body)) == HOOK_FAILED
    entry = next(entry for entry in log if "hook failed" in entry["event"])
    assert why in entry["why"]
    assert (entry["uid"], entry["binding"]) == ("u1", VALIDATING)


async def test_a_large_answer_is_read_in_a_thread(tmp_path, monkeypatch):
    """Reading it takes a second, in which others are judged; a small one costs no thread."""
    threads = []

    def noted(*args, **fields):
        threads.append(threading.current_thread())
        return verdict(*args, **fields)

    monkeypatch.setattr("gateway.hooks.execution.runner.verdict", noted)
    large = "printf '{\"allowed\":true}%*s' 300000 '' > \"$VALIDATING_RESPONSE_PATH\""
    assert await judged(bash_hook(tmp_path, large)) == Allow()
    assert await judged(bash_hook(tmp_path, answering({"allowed": True}))) == Allow()
    assert [thread is threading.main_thread() for thread in threads] == [False, True]


async def test_a_hook_that_fills_its_directory_holds_up_nobody(tmp_path, monkeypatch):
    """What it left there is removed in a thread, however it ends."""
    threads = []

    def noted(root):
        threads.append(threading.current_thread())
        removed(root)

    removed = files._remove_tree
    monkeypatch.setattr("gateway.hooks.execution.files._remove_tree", noted)
    fill = 'mkdir -p "${BINDING_CONTEXT_PATH%/*}/a/b"; touch "${BINDING_CONTEXT_PATH%/*}/c"\n'
    assert await judged(bash_hook(tmp_path, fill + answering({"allowed": True}))) == Allow()
    assert await judged(bash_hook(tmp_path, fill + "exit 1")) == HOOK_FAILED
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_more_metrics_than_anybody_has_are_a_failure(tmp_path):
    """They are read only to see that they can be."""
    failure = await judged(bash_hook(tmp_path, "head -c 1100000 /dev/zero | tr '\\0' ' ' > \"$METRICS_PATH\""))
    assert failure.reason is Reason.INVALID_RESPONSE
    assert "metrics.json has more than 1048576 bytes" in failure.message


async def test_output_goes_to_the_log_with_its_uid(tmp_path, log):
    """Both streams, line by line."""
    await judged(bash_hook(tmp_path, f"echo one; echo two >&2\n{answering({'allowed': True})}"))
    lines = {(entry["stream"], entry["line"], entry["uid"], entry["binding"]) for entry in log}
    assert lines == {("stdout", "one", "u1", VALIDATING), ("stderr", "two", "u1", VALIDATING)}


async def test_one_that_never_ends_is_a_timeout(tmp_path):
    """Not a denial: what shell-operator has no words for is a failure. It is killed."""
    hook = bash_hook(tmp_path, "echo $$ > own; sleep 1e6")
    for seconds in LIMITS:
        told = []
        answer = await judged(hook, seconds=seconds, on_event=told.append)
        assert answer.reason is Reason.WORKER_TIMEOUT
        if (tmp_path / "own").exists():
            break
    assert told == [RunEvent.STARTED, RunEvent.KILLED]
    await gone(await pid_in(tmp_path / "own"))


async def test_one_that_floods_its_output_is_a_failure(tmp_path):
    """With the limit in the message."""
    answer = await judged(bash_hook(tmp_path, "yes"), output_bytes=100_000)
    assert answer.reason is Reason.WORKER_FAILURE
    assert "100000 bytes" in answer.message


async def test_much_output_within_the_bound_is_no_mistake(tmp_path):
    """A hook that traces works."""
    body = f"head -c 5000000 /dev/zero | tr '\\0' x; {answering({'allowed': True})}"
    assert await judged(bash_hook(tmp_path, body)) == Allow()


async def test_a_gigabyte_of_answer_is_a_failure(tmp_path):
    """It is not even read."""
    answer = await judged(bash_hook(tmp_path, "truncate -s 1G $VALIDATING_RESPONSE_PATH"))
    assert answer.reason is Reason.INVALID_RESPONSE
    assert "hook_response_bytes" in answer.message


@pytest.mark.parametrize(
    ("text", "mode"),
    [("#!/bin/bash\n", 0o644), ("#!/nowhere/bash\n", 0o755), ("echo\n", 0o755), (None, 0)],
    ids=["mode", "interpreter", "format", "missing"],
)
async def test_one_that_cannot_be_started_is_unavailable(tmp_path, text, mode):
    """Its policy's failurePolicy decides; no process is counted."""
    hook = tmp_path / "hook.sh"
    if text is not None:
        executable(hook, text).chmod(mode)
    told = []
    answer = await judged(hook, on_event=told.append)
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert str(hook) in answer.message
    assert told == []


async def test_one_killed_by_somebody_else_has_failed(tmp_path):
    """Out of memory, say: a denial, as for shell-operator."""
    task = asyncio.create_task(judged(bash_hook(tmp_path, "echo $$ > own; sleep 1e6 & wait")))
    os.kill(await pid_in(tmp_path / "own"), signal.SIGKILL)
    assert await task == HOOK_FAILED


async def test_cancelled_nothing_is_left(tmp_path):
    """No process, no file, no seat taken."""
    runner, told = HookRunner(limits()), []
    hook = bash_hook(tmp_path, "echo $$ > own; (setsid sh -c 'echo $$ > away; exec sleep 1e6' &); sleep 1e6")
    task = asyncio.create_task(judged(hook, runner=runner, on_event=told.append))
    pids = [await pid_in(tmp_path / name) for name in ("own", "away")]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in pids:
        await gone(pid)
    assert (runner.concurrency.running, told) == (0, [RunEvent.STARTED, RunEvent.KILLED])


async def test_no_more_run_than_there_are_seats(tmp_path):
    """Each waits for its turn."""
    body = "echo + >> count; test $(grep -c + count) = $(($(grep -c - count) + 1)) || exit 9; sleep 0.05\n"
    hook = bash_hook(tmp_path, f"{body}{answering({'allowed': True})}\necho - >> count")
    (tmp_path / "count").touch()
    runner = HookRunner(limits(processes=1))
    assert await asyncio.gather(*(judged(hook, runner=runner) for _ in range(8))) == [Allow()] * 8


async def test_too_many_are_refused_at_once(tmp_path):
    """By a failure of its own."""
    hook = bash_hook(tmp_path, "touch started; until test -e go; do sleep 0.01; done; exit 1")
    runner, told = HookRunner(limits(processes=1, waiting=1)), []
    tasks = [asyncio.create_task(judged(hook, runner=runner)) for _ in range(2)]
    await asyncio.sleep(0)
    answer = await judged(hook, runner=runner, on_event=told.append)
    assert (answer.reason, told) == (Reason.OVERLOADED, [RunEvent.REJECTED])
    (tmp_path / "go").touch()
    assert await asyncio.gather(*tasks) == [HOOK_FAILED] * 2


HANGING = "echo $$ > own.$$; exec sleep 1e6"


async def hanging(runner, directory, asks, processes):
    """Asks of a hook that hangs, when it has so many processes."""
    hook = bash_hook(directory, HANGING, name="hanging.sh")
    tasks = [asyncio.create_task(judged(hook, runner=runner)) for _ in range(asks)]
    await until(lambda: len(list(directory.glob("own.*"))) == processes)
    return hook, tasks


async def ended(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_hook_that_hangs_does_not_hold_up_the_others(tmp_path):
    """Many asks of it wait; the other one is answered, asked once or ten times; and more of its own are refused."""
    runner, told = HookRunner(limits(processes=3, waiting=10)), []
    hook, tasks = await hanging(runner, tmp_path, 12, 2)
    well = bash_hook(tmp_path, answering({"allowed": True}), name="well.sh")
    assert await asyncio.gather(*(judged(well, runner=runner) for _ in range(10))) == [Allow()] * 10
    answer = await judged(hook, runner=runner, on_event=told.append)
    assert (answer.reason, told) == (Reason.OVERLOADED, [RunEvent.REJECTED])
    assert len(list(tmp_path.glob("own.*"))) == 2
    await ended(tasks)
    assert runner.concurrency.running == 0


async def test_a_hook_that_hangs_does_not_hold_up_descriptions(tmp_path):
    """Nor its own: a file that was mended is described anew while the old one's runs hang."""
    runner = HookRunner(limits(processes=1))
    hook, tasks = await hanging(runner, tmp_path, 2, 1)
    async with asyncio.timeout(PATIENCE):
        described = await runner.config(hook)
    assert json.loads(described) == CONFIG
    assert not any(task.done() for task in tasks)
    await ended(tasks)


async def test_descriptions_that_hang_do_not_hold_up_verdicts(tmp_path):
    """However many do; and no more than a few run."""
    runner = HookRunner(limits(processes=2))
    text = "#!/bin/bash\necho > on.$$\nexec sleep 1e6\n"
    mute = [executable(tmp_path / f"{number}.sh", text) for number in range(8)]
    tasks = [asyncio.create_task(runner.config(hook)) for hook in mute]
    await until(lambda: len(list(tmp_path.glob("on.*"))) == CONFIG_RUNS)
    well = bash_hook(tmp_path, answering({"allowed": True}), name="well.sh")
    assert await judged(well, runner=runner) == Allow()
    assert len(list(tmp_path.glob("on.*"))) == CONFIG_RUNS
    await ended(tasks)


async def test_one_whose_time_is_over_before_it_has_a_seat_is_not_started(tmp_path):
    """It says what it has waited for."""
    hook = bash_hook(tmp_path, "touch started")
    answer = await judged(hook, seconds=-1.0)
    assert answer.reason is Reason.WORKER_TIMEOUT
    assert "hook_processes" in answer.message
    assert not (tmp_path / "started").exists()


async def test_a_disk_that_cannot_be_written_is_our_failure(tmp_path, monkeypatch):
    """With a hint to the directory."""
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    answer = await judged(bash_hook(tmp_path, "exit 0"))
    monkeypatch.undo()
    assert answer.reason is Reason.INTERNAL
    assert "TMPDIR" in answer.message
