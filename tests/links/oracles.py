"""What must become of a review, by the link that has a fault and the fault.

=====================  ================================================================================================
link                   outcome
=====================  ================================================================================================
any                    judged while the link only delays
worker, webhook        WORKER_TIMEOUT while nothing arrives; WORKER_UNAVAILABLE when the connection is lost, or there
                       is none: gRPC connects before a call, a webhook's call connects by itself; either, if a bit
                       flipped: it may be one of the length of a TLS record, for whose other bytes TLS then waits
gateway to Redis       WORKER_UNAVAILABLE: a Redis that is slower than its limit is unavailable; or, if the bit that
                       flipped is one of the sealed call, WORKER_TIMEOUT: no bridge takes it
bridge to Redis        WORKER_TIMEOUT: the call waits in the queue for a bridge that may come back
both of Redis          or judged, if the connection that half closed, or the bit that flipped, was not needed: an answer
                       comes over another connection, and is sealed
bridge to worker       either, by whether the bridge had taken the call when it lost its worker
cache                  judged: the worker's verdict is as good
clients                no answer; kube-apiserver applies its failurePolicy
=====================  ================================================================================================
"""

from gateway.reasons import Reason
from tests.links.proxy import Fault
from tests.links.reviews import JUDGED, LOST

_DELAYS = frozenset({Fault.LATENCY, Fault.JITTER})
_STANDS_STILL = frozenset({Fault.BLACKHOLE, Fault.DRIP})

_JUDGED = frozenset({JUDGED})
_TIMEOUT = frozenset({Reason.WORKER_TIMEOUT})
_UNAVAILABLE = frozenset({Reason.WORKER_UNAVAILABLE})

_OF_REDIS = frozenset({"gateway to Redis", "bridge to Redis"})
_OF_WORKERS = frozenset({"grpc-stream", "grpc-unary", "webhook"})

_OF_ALL_FAULTS = {
    "gateway to Redis": _UNAVAILABLE,
    "bridge to Redis": _TIMEOUT,
    "bridge to worker": _TIMEOUT | _UNAVAILABLE,
    "gateway to cache": _JUDGED,
    "clients": frozenset({LOST}),
}

_OF_SOME_FAULTS = {(link, Fault.HALF_CLOSE): _JUDGED | _OF_ALL_FAULTS[link] for link in _OF_REDIS}
_OF_SOME_FAULTS |= {(link, Fault.CORRUPT): _JUDGED | _TIMEOUT | _UNAVAILABLE for link in _OF_REDIS}
_OF_SOME_FAULTS |= {(link, Fault.CORRUPT): _TIMEOUT | _UNAVAILABLE for link in _OF_WORKERS}


def expected(link, fault):
    """The possible outcomes; most have one."""
    if fault in _DELAYS:
        return _JUDGED
    if (link, fault) in _OF_SOME_FAULTS:
        return _OF_SOME_FAULTS[link, fault]
    if link in _OF_ALL_FAULTS:
        return _OF_ALL_FAULTS[link]
    if fault in _STANDS_STILL or (link == "webhook" and fault is Fault.SILENCE):
        return _TIMEOUT
    return _UNAVAILABLE
