"""Fixtures of the tests of hooks."""

import pytest
from structlog.testing import capture_logs


@pytest.fixture
def log():
    """The log entries of the test."""
    with capture_logs() as entries:
        yield entries
