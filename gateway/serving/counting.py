"""What happens in the front, in the judge and to the configuration, counted: events in, metrics out."""

from collections.abc import Callable

from gateway.deciding import Decision
from gateway.policies import Phase
from gateway.serving.generation import Generation
from gateway.serving.refusals import Refusal
from gateway.telemetry import Metrics


class Counting:
    """A FrontEvents, a JudgeEvents and a ReloadEvents.

    Args:
        metrics: where to count.
        current: the generation in force.
    """

    def __init__(self, metrics: Metrics, current: Callable[[], Generation]) -> None:
        self._metrics = metrics
        self._current = current

    def answered(self, phase: Phase, status: int, seconds: float, body_bytes: int) -> None:
        """Decisions are counted where they are made."""

    def refused(self, why: Refusal) -> None:
        """A request or connection got no verdict."""
        self._metrics.refused(why)

    def limit_hit(self, limit: str) -> None:
        """A limit said no."""
        self._metrics.limit_hit(limit)

    def judged(self, entry: str | None, decision: Decision) -> None:
        """A decision was made; through an entry, if not None."""
        if entry is not None:
            self._metrics.judged(entry, decision)

    def abandoned(self, phase: Phase) -> None:
        """The API server hung up before the decision."""
        self._metrics.abandoned(phase)

    def not_a_review(self) -> None:
        """A body was no AdmissionReview."""
        self._metrics.not_a_review()

    def reloaded(self, result: str, *, errors: int, good: bool) -> None:
        """The configuration was read again."""
        self._metrics.reloaded(result, errors=errors, good=good)

    def loaded(self, generation: Generation) -> None:
        """Its policies and entries can be counted from now on."""
        self._metrics.know(generation.policies(), generation.entry_names())
        self._metrics.loaded(generation.loaded.timestamp(), errors=len(generation.configuration.errors))

    def retired(self) -> None:
        """What only the generation before had is not counted any more."""
        current = self._current()
        self._metrics.forget_others(current.policies(), current.entry_names())
