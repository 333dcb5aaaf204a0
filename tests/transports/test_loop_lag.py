"""The event loop's lag: what is counted as the gateway's own lateness. The loop's clock is a number."""

from gateway.transports import loop_lag as lag_module
from gateway.transports.loop_lag import LAG_INTERVAL_SECONDS, LoopLag


class Loop:
    """A loop whose timer the test runs."""

    def __init__(self):
        self.now = 0.0
        self.timer = None

    def time(self):
        return self.now

    def call_at(self, when, run):
        self.due, self.run = when, run
        return self

    def cancel(self):
        self.run = None


def measured(monkeypatch, *delays):
    """The lag after timers that ran so much later than they were due."""
    loop = Loop()
    monkeypatch.setattr(lag_module.asyncio, "get_running_loop", lambda: loop)
    lag = LoopLag()
    for delay in delays:
        loop.now = loop.due + delay
        loop.run()
    seconds = lag.seconds
    lag.close()
    assert loop.run is None
    return seconds


def test_a_loop_that_runs_has_none(monkeypatch):
    """Nor one whose timers are a little late, as always."""
    assert measured(monkeypatch, 0.0, 0.001, 0.004, 0.0) == 0.0


def test_delays_add_up(monkeypatch):
    """Each in full."""
    assert measured(monkeypatch, 1.5, 0.0, 0.5) == 2.0
    assert LAG_INTERVAL_SECONDS < 0.5
