"""The files of a run: private, read within limits, and removed, whatever the hook did to them."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from gateway.hooks.execution.run_files import RunFiles
from gateway.hooks.protocol.verdicts import AnswerFiles, UnreadFile

pytestmark = pytest.mark.integration

NAMES = {
    "BINDING_CONTEXT_PATH",
    "VALIDATING_RESPONSE_PATH",
    "ADMISSION_RESPONSE_PATH",
    "CONVERSION_RESPONSE_PATH",
    "METRICS_PATH",
    "KUBERNETES_PATCH_PATH",
}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where the files are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    left = list(tmp_path.iterdir())
    # Python's own way to remove a directory does not get as deep as one test.
    subprocess.run(["rm", "-rf", *left], check=True)
    assert left == []


def response(files):
    return Path(files.variables["ADMISSION_RESPONSE_PATH"])


def test_the_files_are_empty_and_private():
    """Except for the binding context; both variables of the answer name one file."""
    with RunFiles(b"context") as files:
        variables = files.variables
        assert variables.keys() == NAMES
        assert variables["ADMISSION_RESPONSE_PATH"] == variables["VALIDATING_RESPONSE_PATH"]
        for name in NAMES:
            content = Path(variables[name]).read_bytes()
            assert content == (b"context" if name == "BINDING_CONTEXT_PATH" else b"")
        assert stat.S_IMODE(response(files).parent.stat().st_mode) == 0o700


def test_what_was_written_is_read():
    """Each file by its own variable."""
    with RunFiles(b"") as files:
        for name in NAMES - {"BINDING_CONTEXT_PATH", "VALIDATING_RESPONSE_PATH"}:
            Path(files.variables[name]).write_text(name)
        assert files.read(100) == AnswerFiles(
            response=b"ADMISSION_RESPONSE_PATH",
            conversion=b"CONVERSION_RESPONSE_PATH",
            metrics=b"METRICS_PATH",
            patches=b"KUBERNETES_PATCH_PATH",
        )


def test_reading_is_limited():
    """A file of a gigabyte is not read at all. (It is sparse.)"""
    with RunFiles(b"") as files:
        with response(files).open("wb") as file:
            file.truncate(1 << 30)
        unread = UnreadFile("admission-response.json has more than 1000 bytes", too_large=True)
        assert files.read(1000).response == unread
        response(files).write_bytes(b"x" * 1000)
        assert len(files.read(1000).response) == 1000


@pytest.mark.parametrize("become", [os.mkfifo, Path.mkdir, lambda path: None], ids=["pipe", "directory", "gone"])
def test_a_file_that_was_replaced_cannot_be_read(become):
    """Reading a pipe does not block."""
    with RunFiles(b"") as files:
        response(files).unlink()
        become(response(files))
        unread = files.read(1000).response
        assert isinstance(unread, UnreadFile)
        assert not unread.too_large


def test_a_file_moved_into_place_is_read():
    """As by a hook that writes a temporary file and renames it."""
    with RunFiles(b"") as files:
        other = response(files).with_name("other")
        other.write_text("moved")
        other.replace(response(files))
        assert files.read(1000).response == b"moved"


def test_other_files_of_the_hook_are_removed():
    """Also a directory without permissions."""
    with RunFiles(b"") as files:
        closed = response(files).parent / "closed"
        closed.mkdir()
        (closed / "file").touch()
        closed.chmod(0)


def test_deep_directories_are_removed():
    """Deeper than Python's stack, the open files of a process, and the longest path."""
    with RunFiles(b"") as files:
        here = os.open(response(files).parent, os.O_RDONLY)
        for _ in range(5000):
            os.mkdir("deeper", dir_fd=here)
            below = os.open("deeper", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)


def test_a_hook_that_removes_its_own_directory_changes_nothing_else(temporary):
    """The parent directory keeps its mode."""
    temporary.chmod(0o1777)
    with RunFiles(b"") as files:
        shutil.rmtree(response(files).parent)
    assert stat.S_IMODE(temporary.stat().st_mode) == 0o1777


def test_links_are_removed_and_not_followed(tmp_path_factory, temporary):
    """A link in a directory without permissions, and one in place of the whole directory: their targets stay."""
    other = tmp_path_factory.mktemp("other")
    (other / "metrics.json").touch()
    other.chmod(0o755)
    with RunFiles(b"") as files:
        closed = response(files).parent / "closed"
        closed.mkdir()
        (closed / "link").symlink_to(other)
        closed.chmod(0o500)
    with RunFiles(b"") as files:
        shutil.rmtree(response(files).parent)
        response(files).parent.symlink_to(other)
    assert stat.S_IMODE(other.stat().st_mode) == 0o755
    assert (other / "metrics.json").exists()


def test_an_error_inside_of_the_block_removes_the_files():
    """They are removed with the block."""
    with pytest.raises(ZeroDivisionError), RunFiles(b""):
        raise ZeroDivisionError


def test_a_missing_temporary_directory_is_an_error(monkeypatch):
    """On entering."""
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    with pytest.raises(FileNotFoundError), RunFiles(b""):
        pass
