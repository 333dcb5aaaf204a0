"""The sockets of started workers: where they are, and what becomes of those that killed gateways left."""

import os
import tempfile
from pathlib import Path

import pytest

from gateway.transports import socket_directory as module
from gateway.transports.socket_directory import SocketDirectory


@pytest.fixture
def parent(monkeypatch):
    """Where directories are made: pytest's own have too long a path for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        monkeypatch.setattr(module.tempfile, "tempdir", path)
        yield Path(path)


def age(path, seconds=module.LEFT_OVER_SECONDS + 1):
    """Make a directory look older."""
    found = path.stat()
    os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))


def left_over(parent, name="old"):
    """What a killed gateway leaves: a directory with a socket that no process holds."""
    path = parent / f"admission-workers-{name}"
    path.mkdir(mode=0o700)
    (path / "0.sock").touch()
    age(path)
    return path


def test_it_is_private_and_gone_at_the_end(parent):
    """Only this user can enter it."""
    made = SocketDirectory()
    assert made.path.parent == parent
    assert made.path.stat().st_mode & 0o777 == 0o700
    (made.path / "0.sock").touch()
    made.close()
    assert list(parent.iterdir()) == []


def test_what_killed_gateways_left_is_removed(parent):
    """At the next start."""
    left = left_over(parent)
    made = SocketDirectory()
    assert not left.exists()
    made.close()


def test_what_a_running_gateway_uses_stays(parent):
    """However old it is."""
    running = SocketDirectory()
    age(running.path)
    other = SocketDirectory()
    assert running.path.exists()
    running.close()
    other.close()


def test_what_was_made_a_moment_ago_stays(parent):
    """It may not be locked yet."""
    path = parent / "admission-workers-new"
    path.mkdir()
    SocketDirectory().close()
    assert path.exists()


def test_others_are_not_touched(parent):
    """Directories of other names, files, and links."""
    other = parent / "somebody-elses"
    other.mkdir()
    age(other)
    file = parent / "admission-workers-file"
    file.touch()
    age(file)
    link = parent / "admission-workers-link"
    link.symlink_to(other)
    os.utime(link, (0, 0), follow_symlinks=False)
    SocketDirectory().close()
    assert other.exists()
    assert file.exists()
    assert link.is_symlink()


def test_one_start_removes_a_bounded_number(parent, monkeypatch):
    """So that it stays quick."""
    monkeypatch.setattr(module, "MOST_REMOVED", 2)
    for number in range(5):
        left_over(parent, str(number))
    SocketDirectory().close()
    assert len(list(parent.iterdir())) >= 2
