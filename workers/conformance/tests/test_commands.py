"""Workers that the kit starts: a correct one passes, and each check finds one that breaks its rule."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from worker_conformance.calls_file import Calls
from worker_conformance.checks import CHECKS
from worker_conformance.processes import Launcher
from worker_conformance.runner import run

ROOT = Path(__file__).parents[3]

PATIENCE = 30.0
"""Seconds to wait for an answer of a correct worker on a loaded machine."""

FAULTS = {
    "command.listening-line": "logs-port-0",
    "command.flag-before-variable": "variable-first",
    "command.socket-in-use": "takes-over",
    "command.port-in-use": "listens-anywhere",
    "command.invalid-flag": "ignores-flags",
    "command.invalid-variable": "ignores-variables",
    "command.invalid-address": "traces",
    "command.stale-socket": "minds-old-files",
    "command.in-flight": "has-room",
    "command.in-flight-released": "frees-nothing",
    "command.json-log": "logs-text",
    "command.log-holds-no-documents": "logs-documents",
    "command.failures-are-logged": "logs-no-uid",
    "stopping.health-not-serving": "reports-nothing",
    "stopping.answers-open-calls": "leaves-at-once",
    "stopping.answers-late-calls": "leaves-at-once",
    "stopping.ends-streams": "leaves-at-once",
    "stopping.exits-0": "exits-3",
    "stopping.closes-idle-streams": "waits-for-streams",
    "stopping.grace-period": "is-patient",
    "stopping.second-signal": "is-patient",
    "stopping.supervised": "orphan",
    "tls.serves": "serves-in-the-clear",
    "tls.no-plaintext": "serves-in-the-clear",
    "tls.reloads-certificates": "keeps-certificates",
    "tls.mutual": "trusts-strangers",
    "tls.invalid-certificate": "serves-with-nothing",
    "tls.client-ca-alone": "serves-in-the-clear",
}

STARTING = [check for check in CHECKS if check.command]


@pytest.fixture
def started(tmp_path_factory, monkeypatch):
    """Runs checks of the reference command; returns the results by name."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}")

    async def start(names, *flags, patience, start_patience):
        command = (sys.executable, "-m", "workers.conformance.tests.reference_command", *flags)
        folder = tmp_path_factory.mktemp("k")
        launcher = Launcher(
            command=command, probes=True, folder=folder, patience=patience, start_patience=start_patience
        )
        chosen = [check for check in CHECKS if check.name in names]
        # The worker that all checks share gets more time to start than those that a check starts.
        patient = Launcher(command=command, probes=True, folder=tmp_path_factory.mktemp("k"), patience=PATIENCE)
        async with patient.started() as first:
            target = await first.target()
            report = await run(
                target, launcher, checks=chosen, calls=Calls(), patience=patience, on_result=lambda _: None
            )
        return {result.name: result for result in report.checks}

    return start


@pytest.mark.timeout(900)
async def test_a_good_command_passes(started):
    """The reference worker passes all checks of processes."""
    results = await started({check.name for check in STARTING}, patience=PATIENCE, start_patience=2 * PATIENCE)
    assert [result for result in results.values() if result.outcome != "passed"] == []


@pytest.mark.parametrize("check", STARTING, ids=[check.name for check in STARTING])
async def test_a_broken_rule_is_found(started, check):
    """A command that breaks a rule fails its check, which reports what it expected and observed."""
    result = (await started({check.name}, "--fault", FAULTS[check.name], patience=2.0, start_patience=4.0))[check.name]
    assert result.outcome == "failed", result
    assert result.expected, result
    assert result.observed, result


def test_a_worker_can_be_interrupted_behind_a_shell(tmp_path):
    """Workers that the kit starts do not inherit the ignored SIGINT of a shell's background job."""
    worker = f"import signal; open({str(tmp_path / 'found')!r}, 'w').write(repr(signal.getsignal(signal.SIGINT)))"
    subprocess.run(
        [sys.executable, "-m", "worker_conformance", "--only", "health.check", "--", sys.executable, "-c", worker],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert "SIG_IGN" not in (tmp_path / "found").read_text()
    assert (tmp_path / "found").read_text()
