"""Limits that cannot work are refused by name."""

import pytest

from gateway.caching.limits import CacheLimits


@pytest.mark.parametrize("name", list(CacheLimits.limits))
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_bounds(name, value):
    """Zero, less, infinity and no number are refused."""
    with pytest.raises(ValueError, match=name):
        CacheLimits(**{name: value})


def test_an_entry_fits_into_the_memory():
    """A memory that cannot hold one verdict of the largest size is rejected, and the error has its size."""
    with pytest.raises(ValueError, match=r"limit memory_bytes is 10: it must hold .* 11 bytes"):
        CacheLimits(memory_bytes=10, entry_bytes=11)
