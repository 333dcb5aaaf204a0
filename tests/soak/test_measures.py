"""When the soak says that a process has grown."""

import os

from tests.soak.measures import Measured, findings, measured


def series(memory, *, descriptors=40, threads=9):
    return [
        Measured(memory=each, descriptors=descriptors(at) if callable(descriptors) else descriptors, threads=threads)
        for at, each in enumerate(memory)
    ]


def test_filling_up_at_first_is_no_growth():
    """What a cache takes in the first third is not held against it."""
    assert not findings(series([50, 70, 90, 100, 101, 100, 102, 101, 100]))


def test_a_slow_leak_is_found():
    """Growth of a tenth from the second third to the last."""
    (finding,) = findings(series(range(100, 148, 4)))
    assert finding.startswith("memory grew from ")


def test_a_spike_is_no_growth():
    """One sample, while a large review is judged."""
    assert not findings(series([100, 100, 100, 100, 100, 100, 100, 900, 100]))


def test_leaked_descriptors_are_found():
    """One more in each sample."""
    (finding,) = findings(series([100] * 30, descriptors=lambda at: 40 + at))
    assert finding.startswith("descriptors grew from ")


def test_a_process_is_measured():
    """This one has memory, descriptors and a thread."""
    now = measured(os.getpid())
    assert now.memory > 1_000_000
    assert now.descriptors > 2
    assert now.threads >= 1
