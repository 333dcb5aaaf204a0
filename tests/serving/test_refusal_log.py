"""A flood of refusals is a few lines of the log, and the number of those that were left out."""

import pytest
from structlog.testing import capture_logs

from gateway.serving.refusal_log import LINES, RefusalLog
from gateway.serving.refusals import Refusal


class World:
    """A clock, its timers, and the log."""

    def __init__(self):
        self.now = 100.0
        self.timers = []
        self.log = RefusalLog("refused", now=lambda: self.now, later=self.later)

    def later(self, seconds, call):
        self.timers.append((self.now + seconds, call))

    def at(self, now):
        """Time goes on to this moment."""
        self.now = now
        due = [timer for timer in self.timers if timer[0] <= now]
        self.timers = [timer for timer in self.timers if timer[0] > now]
        for _, call in due:
            call()

    def refuse(self, times, refusal=Refusal.PATH):
        for number in range(times):
            self.log.write(refusal, peer="p", why=f"{number}")


@pytest.fixture
def world():
    return World()


def numbers(lines, refusal=Refusal.PATH):
    """Of the lines of a kind: how many there are, and what they say was left out."""
    own = [line for line in lines if line["refusal"] == refusal]
    return sum("left_out" not in line for line in own), [line["left_out"] for line in own if "left_out" in line]


def test_a_flood_is_ten_lines_a_second(world):
    """And one at the end of the second, whether or not anything follows."""
    with capture_logs() as lines:
        world.refuse(25_201)
        assert numbers(lines) == (LINES, [])
        world.at(101.0)
        assert numbers(lines) == (LINES, [25_201 - LINES])
        world.at(200.0)
        assert numbers(lines) == (LINES, [25_201 - LINES])
        world.refuse(LINES)
    assert numbers(lines) == (2 * LINES, [25_201 - LINES])
    assert lines[0] == {
        "event": "refused",
        "refusal": Refusal.PATH,
        "peer": "p",
        "why": "0",
        "log_level": "warning",
    }


def test_kinds_do_not_hide_each_other(world):
    """A flood of one kind leaves out nothing of another."""
    with capture_logs() as lines:
        world.refuse(1_000)
        world.refuse(1, Refusal.TLS)
    assert numbers(lines, Refusal.TLS) == (1, [])


def test_a_late_timer_says_nothing_twice(world):
    """The next refusal has ended the period before it: each period has one line about what was left out."""
    with capture_logs() as lines:
        world.refuse(LINES + 3)
        world.now = 101.5
        world.refuse(LINES + 4)
        assert numbers(lines) == (2 * LINES, [3])
        world.at(101.6)
        assert numbers(lines) == (2 * LINES, [3])
        world.at(102.5)
    assert numbers(lines) == (2 * LINES, [3, 4])


def test_its_state_is_bounded(world):
    """A flood of each kind keeps two dozen periods and timers, and nothing when it is over."""
    with capture_logs():
        for refusal in Refusal:
            world.refuse(100, refusal)
        assert len(world.timers) == len(Refusal)
        world.at(101.0)
    assert not world.log._periods


def test_what_is_rare_is_all_there(world):
    """Nine in each second, for a minute."""
    with capture_logs() as lines:
        for second in range(60):
            world.at(100.0 + second)
            world.refuse(LINES - 1)
    assert numbers(lines) == (60 * (LINES - 1), [])
