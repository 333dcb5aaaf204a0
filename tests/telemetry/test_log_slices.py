"""Many log lines at once: in order, and in slices."""

import asyncio

from gateway.telemetry.log_slices import AT_ONCE, LogSlices


async def test_others_are_served_between_slices():
    """No iteration of the loop writes more than its share, and all lines are written in order."""
    lines, seen = LogSlices(), []
    written = []
    for number in range(2 * AT_ONCE + 10):
        lines.write(lambda number=number: written.append(number))
    while len(written) < 2 * AT_ONCE + 10:
        await asyncio.sleep(0)
        seen.append(len(written))
    assert seen == [AT_ONCE, 2 * AT_ONCE, 2 * AT_ONCE + 10]
    assert written == list(range(2 * AT_ONCE + 10))


async def test_a_line_that_comes_meanwhile_is_written_after_the_others():
    """It is not lost, and overtakes none."""
    lines, written = LogSlices(), []
    for number in range(AT_ONCE + 1):
        lines.write(lambda number=number: written.append(number))
    await asyncio.sleep(0)
    lines.write(lambda: written.append("late"))
    await asyncio.sleep(0)
    assert written[-2:] == [AT_ONCE, "late"]


def test_without_a_loop_a_line_is_written_at_once():
    """As on a command line."""
    lines, written = LogSlices(), []
    lines.write(lambda: written.append(1))
    lines.write(lambda: written.append(2))
    assert written == [1, 2]
