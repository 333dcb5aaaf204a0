"""Folders to work in, and the CA of today's webhooks."""

import pytest

from tests.authorities import Authority


@pytest.fixture(scope="session")
def authority():
    """Not the gateway's own."""
    return Authority("webhooks")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The reader's folder, which is the current one: relative paths of the pages begin there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
