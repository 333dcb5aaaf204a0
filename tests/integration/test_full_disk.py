"""A gateway whose standard error is a file on a full disk starts, serves, and ends as any other."""

from pathlib import Path

import pytest

from tests.integration.running import policy, source, until
from tests.integration.test_reload import VALIDATING, Client, post, worker

FULL = Path("/dev/full")

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def test_a_full_disk_under_the_standard_error_does_not_prevent_a_start(serve, tmp_path, trust):
    """With errors to report, a worker that writes, and a log: what cannot be written is lost, and counted."""
    path = tmp_path / "policies.yaml"
    mistaken = policy("other", worker="reporter", policy="report", timeoutSeconds=99, rules=[])
    report = policy("report", worker="reporter", settings={"word": "one"})
    path.write_text(source(workers={"reporter": worker()}, validating=[report, mistaken]))
    with FULL.open("wb") as full:
        process = serve("--policies", path, "--worker-startup-timeout", 30, stderr=full).ready()
    with Client(process.port, trust) as client:
        assert client.send(post(VALIDATING, "/validate?timeout=30s")).response["allowed"]
    assert process.metric("log_lines_dropped_total") > 0
    process.terminate()
    assert process.exit_code() == 0


async def test_a_full_disk_under_the_decision_log_delays_no_review(serve, tmp_path, trust):
    """It starts, answers, and counts each decision that it cannot write; the process's log says so once."""
    path = tmp_path / "policies.yaml"
    report = policy("report", worker="reporter", settings={"word": "one"})
    path.write_text(source(workers={"reporter": worker()}, validating=[report]))
    logging = ("--decision-log", FULL, "--decision-log-level", "all")
    process = serve("--policies", path, "--worker-startup-timeout", 30, *logging).ready()
    with Client(process.port, trust) as client:
        for _ in range(3):
            assert client.send(post(VALIDATING, "/validate?timeout=30s")).response["allowed"]
    message = "decisions cannot be written; they are dropped until they can"
    assert "No space left on device" in process.logged(message, to=str(FULL))["error"]
    await until(lambda: process.metric("decisions_dropped_total", output="log", reason="write_error") == 3)
    assert [entry["message"] for entry in process.log()].count(message) == 1


def test_a_refused_start_has_its_exit_code(serve, tmp_path):
    """1 for errors, even if they cannot be written."""
    path = tmp_path / "policies.yaml"
    path.write_text("kind: Pod\napiVersion: v1\n")
    with FULL.open("wb") as full:
        assert serve("--policies", path, stderr=full).exit_code() == 1
