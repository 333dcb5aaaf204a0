"""What tests of hooks share."""

import pytest
from structlog.testing import capture_logs


@pytest.fixture
def log():
    """What is logged in the meantime."""
    with capture_logs() as entries:
        yield entries
