"""Each fuzz target, without a fuzzer: its seeds, and every input that has ever broken its invariant."""

import importlib
import itertools
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.fuzz.__main__ import RUNS

REGRESSIONS = Path(__file__).parent / "regressions"
SEEDS = 10
"""Of each target: more are run by `make fuzz`."""


@pytest.mark.parametrize("target", RUNS)
def test_a_target_runs_what_it_begins_with(target):
    """A target that does not fit the gateway any more fails here, and not first in `make fuzz`."""
    module = importlib.import_module(f"tests.fuzz.{target}")
    assert module.WORDS
    with getattr(module, "world", nullcontext)():
        for seed in itertools.islice(module.seeds(), SEEDS):
            module.run(seed)


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_a_target_found_is_mended(path):
    """Its file is named after what was wrong."""
    module = importlib.import_module(f"tests.fuzz.{path.parent.name}")
    with getattr(module, "world", nullcontext)():
        module.run(path.read_bytes())
