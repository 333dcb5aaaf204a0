"""Whether each worker can be called, as far as this process knows.

===========  ==========================================================================================================
health       when
===========  ==========================================================================================================
healthy      it is described, and a connection can be called; of a queue, a bridge is present
undescribed  it has not described itself yet
unreachable  it was described, and has no connection now
uncallable   it was described, and none of its replicas serves; or it is a hook, which has no connection
unknown      it is a webhook: it has no description and keeps no connection. Whether it answers shows in its events
===========  ==========================================================================================================

The policies of an unreachable or uncallable worker **fail**. They stay described, so they are not among
``LoadedConfiguration.unavailable``.
"""

from typing import Final

from msgspec import Struct

from gateway.policies.workers.targets import Worker
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import WORKER_CONNECTIONS

_LOST: Final = frozenset({"unreachable", "uncallable"})


class WorkerState(Struct, frozen=True, kw_only=True):
    """The state of one worker. ``versions`` are the last known ones, ``problem`` is why it cannot be called, or ""."""

    health: str
    connections: float | None = None
    versions: tuple[str, ...] = ()
    problem: str = ""


def worker_state(loaded: LoadedConfiguration, worker: Worker, metrics: Metrics) -> WorkerState:
    """The state of a worker."""
    if worker.webhook is not None:
        return WorkerState(health="unknown")
    name, workers = worker.name, loaded.workers
    connections = metrics.value(WORKER_CONNECTIONS, name)
    known = workers.last_descriptions(name)
    problem = workers.why_undescribed(name)
    if connections:
        health = "undescribed" if problem else "healthy"
    elif not known:
        health = "undescribed"
    else:
        health = "uncallable" if worker.hook is not None or workers.descriptions(name) else "unreachable"
        problem = problem or f"worker {name!r} has no connection that can be called; see its log"
    versions = tuple(sorted({each.message.version for each in known}))
    return WorkerState(health=health, connections=connections, versions=versions, problem=problem)


def lost_workers(loaded: LoadedConfiguration, metrics: Metrics) -> dict[str, str]:
    """Why each worker that was described cannot be called now, by name."""
    states = {name: worker_state(loaded, worker, metrics) for name, worker in loaded.configuration.workers.items()}
    return {name: state.problem for name, state in states.items() if state.health in _LOST}
