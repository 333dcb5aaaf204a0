"""What a command finds at its start: standard streams that are closed, full or left, a TMPDIR of no use for sockets.

No verdict is made up, nothing aborts or hangs, nothing shows a traceback.
"""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.examples import EXAMPLES, patient_examples
from tests.integration.process import COMMAND, WAIT_SECONDS

pytestmark = pytest.mark.integration

REVIEWED = str(EXAMPLES / "reviews" / "1-pod-create.json")
REVIEW = ["review", "--policies", str(EXAMPLES / "policies"), REVIEWED]
CHECK = ["check", str(EXAMPLES / "policies")]
RENDER = ["render", str(EXAMPLES / "policies"), "--url", "https://gateway.example.com"]


@pytest.fixture(scope="module")
def review(tmp_path_factory):
    """REVIEW, by policies that have time for a machine that is busy."""
    policies = patient_examples(tmp_path_factory.mktemp("patient")) / "policies"
    return ["review", "--policies", str(policies), "--worker-startup-timeout", str(WAIT_SECONDS), REVIEWED]


def run(arguments, redirections="", environment=None, **kwargs):
    """The command, run by a shell with these redirections."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" "$@" {redirections}', COMMAND, *arguments],
        stderr=kwargs.pop("stderr", subprocess.PIPE),
        timeout=WAIT_SECONDS,
        check=False,
        # The sample workers are started by the name of the interpreter.
        env=os.environ | {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"} | (environment or {}),
        **kwargs,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [CHECK, RENDER, REVIEW], ids=lambda each: each[0])
def test_an_output_that_cannot_be_written_is_reported(arguments):
    """A full disk is status 2 and a line: status 1 would mean a denial or an error in the configuration."""
    ended = run(arguments, "> /dev/full")
    assert ended.returncode == 2
    assert b"error: the output cannot be written: No space left on device" in ended.stderr
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("arguments", [CHECK, REVIEW], ids=lambda each: each[0])
def test_a_reader_that_has_left_is_no_verdict(arguments):
    """``| head -1`` ends the command quietly, with status 2."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = run(arguments, stdout=writer)
    finally:
        os.close(writer)
    assert ended.returncode == 2
    # On a machine that is busy, the workers keep the command waiting, and it says so.
    lines = ended.stderr.splitlines()
    assert [line for line in lines if not line.startswith(b"waiting for the workers: ")] == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_nothing_but_what_is_seen(review, closed):
    """The requests are decided, by workers that run, whichever of the standard streams is closed."""
    ended = run(review, closed, stdout=subprocess.PIPE)
    assert ended.returncode == 0
    assert (b"allowed" in ended.stdout) is (">&-" not in closed.split())


@pytest.mark.parametrize("name", ["x" * 120, "a#b", "a%41?"])
def test_a_temporary_directory_that_holds_no_sockets_is_not_used(tmp_path, review, name):
    """One too long for a socket's path, or with what gRPC reads otherwise: the workers are reached all the same."""
    (tmp_path / name).mkdir()
    ended = run(review, environment={"TMPDIR": str(tmp_path / name)}, stdout=subprocess.PIPE)
    assert ended.returncode == 0
    assert b"not judged" not in ended.stdout
    assert list((tmp_path / name).iterdir()) == []


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)]
)
def test_a_terminal_shows_colours_unless_they_are_disabled(tmp_path, environment, coloured):
    """https://no-color.org: whatever it is set to, but empty."""
    (tmp_path / "wrong.yaml").write_text("kind: Pod\napiVersion: v1\n")
    main_end, terminal = pty.openpty()
    clean = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
    ended = subprocess.run(
        [COMMAND, "check", tmp_path],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env=clean | environment,
        timeout=WAIT_SECONDS,
        check=False,
    )
    os.close(terminal)
    shown = os.read(main_end, 65536)
    os.close(main_end)
    assert ended.returncode == 1
    assert (b"\x1b[" in shown) is coloured
