"""The state of this replica for the dashboard: health, certificate, configuration, workers, ignored failures."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from msgspec import Struct

from gateway import __version__
from gateway.engine.availability import UnavailablePolicy
from gateway.policies.model import Phase, Policy
from gateway.policies.workers.targets import Worker
from gateway.reasons import Reason
from gateway.serving.dashboard.recent_reviews import MOST_READ, RetainedDecisions, unix_time
from gateway.serving.dashboard.worker_states import lost_workers, worker_state
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.telemetry.decision_document import replica_name
from gateway.telemetry.findings import timestamp
from gateway.telemetry.labels import WorkerEvent
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import CERTIFICATE_EXPIRATION, FAILED_OPEN, WORKER_EVENTS

LISTED: Final = 200
"""Errors, policies or workers that are listed at most; the log and ``check`` have all of them."""

TEXT_CHARACTERS: Final = 1_000
"""Characters of a message."""


class HealthCheck(Protocol):
    """A readiness check: see ``gateway.serving.admin.Check``."""

    @property
    def name(self) -> str:
        """Its name on ``/readyz``."""

    @property
    def problem(self) -> str | None:
        """Why it fails."""

    @property
    def note(self) -> str | None:
        """What an operator has to know though it passes."""


class GatewayState(Struct, frozen=True, kw_only=True):
    """Reads the state.

    Args:
        loaded: the configuration in force.
        checks: the readiness checks.
        rejected: the errors of the configuration that was read last, if it was rejected.
        retained: the decisions that are retained.
        metrics: of this process.
        process: identifies the process: another one has other reviews and counters.
    """

    loaded: Callable[[], LoadedConfiguration]
    checks: Callable[[], Iterable[HealthCheck]]
    rejected: Callable[[], Sequence[str]]
    retained: RetainedDecisions
    metrics: Metrics
    process: str

    def read(self) -> dict[str, Any]:
        """The state now."""
        loaded = self.loaded()
        configuration = loaded.configuration
        unavailable, lost = loaded.unavailable(), lost_workers(loaded, self.metrics)
        named = {(each.policy.phase, each.policy.qualified_name) for each in unavailable}
        described = [each for each in loaded.policies() if (each.phase, each.qualified_name) not in named]
        failing = [each for each in described if each.worker in lost]
        listed = [*map(_unavailable, unavailable), *(_failing(each, lost[each.worker]) for each in failing)]
        policies, all_failing = (Counter(each.worker for each in some) for some in (loaded.policies(), failing))
        failed_open = list(self._failed_open(loaded))
        return {
            "replica": replica_name(),
            "process": self.process,
            "version": __version__,
            "loaded": timestamp(loaded.loaded.timestamp()),
            "certificateExpires": self.metrics.value(CERTIFICATE_EXPIRATION) or None,
            "checks": [{"name": each.name, "problem": each.problem, "note": each.note} for each in self.checks()],
            "policies": {phase.value: len(configuration.policies(phase)) for phase in Phase},
            "rejected": _listed(self.rejected()),
            "errors": _listed(map(str, configuration.errors)),
            "warnings": _listed(map(str, configuration.warnings)),
            "failing": sum(not each.last_good for each in unavailable),
            "unavailable": listed[:LISTED],
            "moreUnavailable": max(len(listed) - LISTED, 0),
            "workers": [
                self._worker(loaded, each) | {"policies": policies[each.name], "failing": all_failing[each.name]}
                for each in islice(configuration.workers.values(), LISTED)
            ],
            "moreWorkers": max(len(configuration.workers) - LISTED, 0),
            "failedOpen": failed_open,
            "lastFailedOpen": self._last_failed_open() if failed_open else None,
        }

    def _worker(self, loaded: LoadedConfiguration, worker: Worker) -> dict[str, Any]:
        counts = {event.value: self.metrics.value(WORKER_EVENTS, worker.name, event) for event in WorkerEvent}
        state = worker_state(loaded, worker, self.metrics)
        return {
            "name": _cut(worker.name),
            "transport": _transport(worker),
            "target": _cut(worker.address),
            "health": state.health,
            "connections": state.connections,
            "versions": list(map(_cut, state.versions)),
            "problem": _cut(state.problem),
            "events": {name: count for name, count in counts.items() if count},
        }

    def _failed_open(self, loaded: LoadedConfiguration) -> Iterator[dict[str, Any]]:
        for policy in loaded.policies():
            count = self.metrics.value(FAILED_OPEN, policy.phase, policy.qualified_name)
            if count:
                yield {"phase": policy.phase.value, "policy": policy.qualified_name, "count": count}

    def _last_failed_open(self) -> str | None:
        """When a failure was ignored last; None: before the retained decisions."""
        for decision in islice(self.retained.newest(), MOST_READ):
            if any(call.failed_open for call in decision.calls):
                return timestamp(round(unix_time(decision.ended)))
        return None


def _transport(worker: Worker) -> str:
    """The member of the worker's spec that names its transport."""
    return next(name for name in ("grpc", "queue", "webhook", "hook") if getattr(worker, name) is not None)


def _unavailable(each: UnavailablePolicy) -> dict[str, Any]:
    return {
        "phase": each.policy.phase.value,
        "policy": each.policy.qualified_name,
        "place": str(each.policy.place),
        "reason": each.availability.why.value,
        "lastGood": each.last_good,
        "message": _cut(each.message),
    }


def _failing(policy: Policy, why: str) -> dict[str, Any]:
    """A policy that is described, and whose worker cannot be called now."""
    return {
        "phase": policy.phase.value,
        "policy": policy.qualified_name,
        "place": str(policy.place),
        "reason": Reason.WORKER_UNAVAILABLE.value,
        "lastGood": False,
        "message": _cut(why),
    }


def _listed(texts: Iterable[str]) -> list[str]:
    found = list(texts)
    more = [f"and {len(found) - LISTED} more; `admission-gateway check` has all of them"] if len(found) > LISTED else []
    return [*map(_cut, found[:LISTED]), *more]


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"
