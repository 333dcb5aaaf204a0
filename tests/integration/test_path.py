"""The path of one review through the gateway, as ``make path`` counts it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "path.py"
MOST = {"calls": 190, "modules": 50, "depth": 13}
"""A quarter of the calls bound what one review can cost: bytes of its header, its turn and its shares under overload,
the JSON values and the answer that are charged, the tenant's calls to a worker.
"""


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions count comprehensions otherwise")
def test_the_path_of_a_review_stays_short():
    """A denied validating review passes at most so many of our functions, in so many modules, so deep."""
    printed = subprocess.run([sys.executable, PATH], check=True, capture_output=True, text=True, timeout=60).stdout
    found = {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", printed)}
    assert found.keys() == MOST.keys()
    assert all(found[name] <= most for name, most in MOST.items()), printed
