"""Calls of real hooks in bash and Python: answers, failures, limits."""

import asyncio
import base64
import json
import os
import signal
import threading
import time

import pytest

from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.hooks.execution import run_files
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
    VALIDATING,
    WAIT_SECONDS,
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
    """The directory of temporary files. None is left, whatever happens."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    yield directory
    assert list(directory.iterdir()) == []


async def answer_of(hook, *, phase=Phase.VALIDATING, seconds=WAIT_SECONDS, on_event=None, runner=None, **fields):
    """The answer of a hook."""
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
    assert await answer_of(bash_hook(tmp_path, answering(answer))) == verdict


async def test_the_phase_decides_what_a_patch_is(tmp_path):
    """A change of a mutating hook, and an invalid response of a validating one."""
    hook = bash_hook(tmp_path, answering({"allowed": True, "patch": ENCODED}))
    change = Change(kind=ChangeKind.KUBERNETES_PATCH, content=json.dumps(PATCH).encode())
    assert await answer_of(hook, phase=Phase.MUTATING) == Allow(change=change)
    answer = await answer_of(hook)
    assert isinstance(answer, Failure)
    assert answer.reason is Reason.INVALID_RESPONSE


async def test_the_answer_has_two_variables(tmp_path):
    """VALIDATING_RESPONSE_PATH and ADMISSION_RESPONSE_PATH."""
    hook = bash_hook(tmp_path, """echo '{"allowed":true}' > "$ADMISSION_RESPONSE_PATH" """)
    assert await answer_of(hook) == Allow()


async def test_a_hook_gets_what_shell_operator_passes(tmp_path):
    """No arguments, its own directory, the binding context, and shell-operator's variables; no others."""
    body = """
context = json.load(open(os.environ["BINDING_CONTEXT_PATH"]))
json.dump({"allowed": True, "warnings": [json.dumps([
    sys.argv[1:], os.getcwd(), context[0]["binding"], context[0]["type"], context[0]["review"]["request"]["object"],
    sorted(name for name in os.environ if name.endswith("_PATH")), os.environ.get("ADMISSION_GATEWAY_SECRET"),
])]}, open(os.environ["ADMISSION_RESPONSE_PATH"], "w"))
"""
    os.environ["ADMISSION_GATEWAY_SECRET"] = "s"
    try:
        answer = await answer_of(python_hook(tmp_path / "deep", body))
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
    assert await answer_of(hook) == NO_ANSWER
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
    """With 403 "Hook failed"."""
    assert await answer_of(bash_hook(tmp_path, body)) == HOOK_FAILED
    entry = next(entry for entry in log if "hook failed" in entry["event"])
    assert why in entry["why"]
    assert (entry["uid"], entry["binding"]) == ("u1", VALIDATING)


async def test_a_large_answer_is_read_in_a_thread(tmp_path, monkeypatch):
    """It does not block the event loop; a small answer needs no thread."""
    threads = []

    def recorded(*args, **fields):
        threads.append(threading.current_thread())
        return verdict(*args, **fields)

    monkeypatch.setattr("gateway.hooks.execution.runner.verdict", recorded)
    large = "printf '{\"allowed\":true}%*s' 300000 '' > \"$VALIDATING_RESPONSE_PATH\""
    assert await answer_of(bash_hook(tmp_path, large)) == Allow()
    assert await answer_of(bash_hook(tmp_path, answering({"allowed": True}))) == Allow()
    assert [thread is threading.main_thread() for thread in threads] == [False, True]


async def test_a_full_directory_is_removed_in_a_thread(tmp_path, monkeypatch):
    """It does not block the event loop, however the hook ends."""
    threads = []

    def recorded(root):
        threads.append(threading.current_thread())
        removed(root)

    removed = run_files._remove_tree
    monkeypatch.setattr("gateway.hooks.execution.run_files._remove_tree", recorded)
    fill = 'mkdir -p "${BINDING_CONTEXT_PATH%/*}/a/b"; touch "${BINDING_CONTEXT_PATH%/*}/c"\n'
    assert await answer_of(bash_hook(tmp_path, fill + answering({"allowed": True}))) == Allow()
    assert await answer_of(bash_hook(tmp_path, fill + "exit 1")) == HOOK_FAILED
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_metrics_are_limited(tmp_path):
    """A larger file is an invalid response."""
    failure = await answer_of(bash_hook(tmp_path, "head -c 1100000 /dev/zero | tr '\\0' ' ' > \"$METRICS_PATH\""))
    assert failure.reason is Reason.INVALID_RESPONSE
    assert "metrics.json has more than 1048576 bytes" in failure.message


async def test_output_goes_to_the_log_with_its_uid(tmp_path, log):
    """Both streams, line by line."""
    await answer_of(bash_hook(tmp_path, f"echo one; echo two >&2\n{answering({'allowed': True})}"))
    lines = {(entry["stream"], entry["line"], entry["uid"], entry["binding"]) for entry in log}
    assert lines == {("stdout", "one", "u1", VALIDATING), ("stderr", "two", "u1", VALIDATING)}


async def test_a_hook_that_hangs_is_a_timeout(tmp_path):
    """A failure, not a denial; its process is killed."""
    hook = bash_hook(tmp_path, "echo $$ > own; sleep 1e6")
    for seconds in LIMITS:
        events = []
        answer = await answer_of(hook, seconds=seconds, on_event=events.append)
        assert answer.reason is Reason.WORKER_TIMEOUT
        if (tmp_path / "own").exists():
            break
    assert events == [RunEvent.STARTED, RunEvent.KILLED]
    await gone(await pid_in(tmp_path / "own"))


async def test_too_much_output_is_a_failure(tmp_path):
    """With the limit in the message."""
    answer = await answer_of(bash_hook(tmp_path, "yes"), output_bytes=100_000)
    assert answer.reason is Reason.WORKER_FAILURE
    assert "100000 bytes" in answer.message


async def test_much_output_within_the_limit_is_allowed(tmp_path):
    """As of a hook that traces its commands."""
    body = f"head -c 5000000 /dev/zero | tr '\\0' x; {answering({'allowed': True})}"
    assert await answer_of(bash_hook(tmp_path, body)) == Allow()


async def test_an_answer_that_is_too_large_is_a_failure(tmp_path):
    """It is not read."""
    answer = await answer_of(bash_hook(tmp_path, "truncate -s 1G $VALIDATING_RESPONSE_PATH"))
    assert answer.reason is Reason.INVALID_RESPONSE
    assert "hook_response_bytes" in answer.message


@pytest.mark.parametrize(
    ("text", "mode"),
    [("#!/bin/bash\n", 0o644), ("#!/nowhere/bash\n", 0o755), ("echo\n", 0o755), (None, 0)],
    ids=["mode", "interpreter", "format", "missing"],
)
async def test_a_hook_that_cannot_be_started_is_unavailable(tmp_path, text, mode):
    """Its policy's failurePolicy decides; no process is counted."""
    hook = tmp_path / "hook.sh"
    if text is not None:
        executable(hook, text).chmod(mode)
    events = []
    answer = await answer_of(hook, on_event=events.append)
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert str(hook) in answer.message
    assert events == []


async def test_a_hook_killed_from_elsewhere_has_failed(tmp_path):
    """By the kernel, out of memory: a denial, as in shell-operator."""
    task = asyncio.create_task(answer_of(bash_hook(tmp_path, "echo $$ > own; sleep 1e6 & wait")))
    os.kill(await pid_in(tmp_path / "own"), signal.SIGKILL)
    assert await task == HOOK_FAILED


async def test_cancelled_nothing_is_left(tmp_path):
    """No process, no file, no slot."""
    runner, events = HookRunner(limits()), []
    hook = bash_hook(tmp_path, "echo $$ > own; (setsid sh -c 'echo $$ > away; exec sleep 1e6' &); sleep 1e6")
    task = asyncio.create_task(answer_of(hook, runner=runner, on_event=events.append))
    pids = [await pid_in(tmp_path / name) for name in ("own", "away")]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in pids:
        await gone(pid)
    assert (runner.concurrency.running, events) == (0, [RunEvent.STARTED, RunEvent.KILLED])


async def test_no_more_processes_run_than_the_limit(tmp_path):
    """The other calls wait."""
    body = "echo + >> count; test $(grep -c + count) = $(($(grep -c - count) + 1)) || exit 9; sleep 0.05\n"
    hook = bash_hook(tmp_path, f"{body}{answering({'allowed': True})}\necho - >> count")
    (tmp_path / "count").touch()
    runner = HookRunner(limits(processes=1))
    assert await asyncio.gather(*(answer_of(hook, runner=runner) for _ in range(8))) == [Allow()] * 8


async def test_too_many_waiting_calls_are_rejected_at_once(tmp_path):
    """With OVERLOADED."""
    hook = bash_hook(tmp_path, "touch started; until test -e go; do sleep 0.01; done; exit 1")
    runner, events = HookRunner(limits(processes=1, waiting=1)), []
    tasks = [asyncio.create_task(answer_of(hook, runner=runner)) for _ in range(2)]
    await asyncio.sleep(0)
    answer = await answer_of(hook, runner=runner, on_event=events.append)
    assert (answer.reason, events) == (Reason.OVERLOADED, [RunEvent.REJECTED])
    (tmp_path / "go").touch()
    assert await asyncio.gather(*tasks) == [HOOK_FAILED] * 2


HANGING = "echo $$ > own.$$; exec sleep 1e6"


async def hanging(runner, directory, calls, processes):
    """Calls of a hook that hangs, as soon as it has so many processes."""
    hook = bash_hook(directory, HANGING, name="hanging.sh")
    tasks = [asyncio.create_task(answer_of(hook, runner=runner)) for _ in range(calls)]
    await until(lambda: len(list(directory.glob("own.*"))) == processes)
    return hook, tasks


async def ended(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_hanging_hook_does_not_delay_the_others(tmp_path):
    """Its waiting calls fill its own queue only."""
    runner, events = HookRunner(limits(processes=3, waiting=10)), []
    hook, tasks = await hanging(runner, tmp_path, 12, 2)
    well = bash_hook(tmp_path, answering({"allowed": True}), name="well.sh")
    assert await asyncio.gather(*(answer_of(well, runner=runner) for _ in range(10))) == [Allow()] * 10
    answer = await answer_of(hook, runner=runner, on_event=events.append)
    assert (answer.reason, events) == (Reason.OVERLOADED, [RunEvent.REJECTED])
    assert len(list(tmp_path.glob("own.*"))) == 2
    await ended(tasks)
    assert runner.concurrency.running == 0


async def test_a_hanging_hook_does_not_delay_descriptions(tmp_path):
    """Not even its own: a corrected file is described while runs of the old one hang."""
    runner = HookRunner(limits(processes=1))
    hook, tasks = await hanging(runner, tmp_path, 2, 1)
    async with asyncio.timeout(WAIT_SECONDS):
        described = await runner.config(hook)
    assert json.loads(described) == CONFIG
    assert not any(task.done() for task in tasks)
    await ended(tasks)


async def test_hanging_descriptions_do_not_delay_calls(tmp_path):
    """However many there are; only a few run at the same time."""
    runner = HookRunner(limits(processes=2))
    text = "#!/bin/bash\necho > on.$$\nexec sleep 1e6\n"
    mute = [executable(tmp_path / f"{number}.sh", text) for number in range(8)]
    tasks = [asyncio.create_task(runner.config(hook)) for hook in mute]
    await until(lambda: len(list(tmp_path.glob("on.*"))) == CONFIG_RUNS)
    well = bash_hook(tmp_path, answering({"allowed": True}), name="well.sh")
    assert await answer_of(well, runner=runner) == Allow()
    assert len(list(tmp_path.glob("on.*"))) == CONFIG_RUNS
    await ended(tasks)


async def test_a_call_whose_deadline_passes_while_it_waits_is_not_started(tmp_path):
    """The message names the limit."""
    hook = bash_hook(tmp_path, "touch started")
    answer = await answer_of(hook, seconds=-1.0)
    assert answer.reason is Reason.WORKER_TIMEOUT
    assert "hook_processes" in answer.message
    assert not (tmp_path / "started").exists()


async def test_a_full_disk_is_an_internal_failure(tmp_path, monkeypatch):
    """The message names TMPDIR."""
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    answer = await answer_of(bash_hook(tmp_path, "exit 0"))
    monkeypatch.undo()
    assert answer.reason is Reason.INTERNAL
    assert "TMPDIR" in answer.message
