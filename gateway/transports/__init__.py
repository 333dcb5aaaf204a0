"""How a worker is asked: over gRPC, started and supervised by the gateway where the configuration says so."""

import gateway.transports.environment  # noqa: F401 - before whatever imports gRPC
from gateway.transports.events import NoWorkerEvents, WorkerEvent, WorkerEvents
from gateway.transports.limits import TransportLimits
from gateway.transports.means import Means
from gateway.transports.pool import WorkerPool
from gateway.transports.workers import Workers

__all__ = ["Means", "NoWorkerEvents", "TransportLimits", "WorkerEvent", "WorkerEvents", "WorkerPool", "Workers"]
