"""Many log lines at once: in order, and in slices."""

import asyncio

from structlog.testing import capture_logs

from gateway.telemetry.log_slices import AT_ONCE, MOST, LogSlices


async def test_others_are_served_between_slices():
    """No iteration of the loop writes more than its share, and all lines are written in order."""
    lines, seen = LogSlices(), []
    written = []
    for number in range(2 * AT_ONCE + 10):
        lines.write(lambda number=number: written.append(number))
    for _ in range(3):
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


async def test_a_line_that_cannot_be_written_holds_back_no_other():
    """Its error is the loop's, and those after it are written."""
    lines, written, errors = LogSlices(), [], []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["exception"]))
    for line in (lambda: written.append(1), lambda: 1 / 0, lambda: written.append(2)):
        lines.write(line)
    for _ in range(2):
        await asyncio.sleep(0)
    lines.write(lambda: written.append(3))
    await asyncio.sleep(0)
    assert written == [1, 2, 3]
    assert [type(error) for error in errors] == [ZeroDivisionError]


async def test_lines_that_come_too_fast_are_left_out_and_counted():
    """Those that wait are bounded: the last line says how many are missing."""
    lines, written = LogSlices(), []
    for number in range(MOST + 3):
        lines.write(lambda number=number: written.append(number))
    with capture_logs() as log:
        for _ in range(MOST // AT_ONCE):
            await asyncio.sleep(0)
    assert written == list(range(MOST))
    assert [entry["lines"] for entry in log] == [3]


def test_without_a_loop_a_line_is_written_at_once():
    """As on a command line."""
    lines, written = LogSlices(), []
    lines.write(lambda: written.append(1))
    lines.write(lambda: written.append(2))
    assert written == [1, 2]
