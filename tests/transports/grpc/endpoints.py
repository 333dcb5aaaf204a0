"""A GrpcWorker over connections that are played by the test: nothing is sent anywhere."""

from contextlib import asynccontextmanager

from gateway.transports.descriptions import Descriptions
from gateway.transports.grpc.connection import State
from gateway.transports.grpc.worker import GrpcWorker
from gateway.transports.limits import TransportLimits
from tests.integration.running import until
from tests.integration.workers import description
from tests.reports import Reports
from tests.transports.reaching import judge, question

SAID = Descriptions().of(description("judge"))


class PlayedAttempt:
    """One attempt of a call, which the test ends."""

    def __init__(self, place, call):
        self._place = place
        self._call = call

    def answered(self, answer):
        self._place.open.remove(self)
        self._call.answered(answer)

    def ended(self, failure, result):
        self._place.open.remove(self)
        self._call.ended(failure, result)

    def cancel(self):
        self._place.open.remove(self)
        self._place.cancelled.append(self)


class Played:
    """A connection. ``attempts`` are those put to it, ``unary`` which of them as a call of their own, ``open`` those
    that have not ended.
    """

    is_doubted = False
    behind = False

    def __init__(self, address, said=SAID):
        self.address = address
        self.state = State.READY
        self.description = said
        self.is_serving = True
        self.is_draining = False
        self.is_closed = False
        self.why = ""
        self.attempts = []
        self.open = []
        self.unary = []
        self.cancelled = []

    def is_behind(self, _now):
        return self.behind

    def find_loss(self):
        return self.state is not State.READY

    @property
    def can_be_called(self):
        return self.state is State.READY and self.is_serving and not self.is_draining

    def call(self, call, *, unary):
        attempt = PlayedAttempt(self, call)
        self.attempts.append(attempt)
        self.open.append(attempt)
        if unary:
            self.unary.append(attempt)
        return attempt

    def drain(self):
        self.is_draining = True

    async def idle(self):
        pass

    async def close(self):
        self.is_closed = True


class Dialled:
    """Unused channels: the addresses themselves."""

    tls = None

    def __init__(self):
        self.has_changed = False
        self.error = None

    def changed(self):
        changed, self.has_changed = self.has_changed, False
        return changed

    def channel(self, address):
        if self.error is not None:
            raise self.error
        return address


class Called:
    """A call to the worker. ``answers`` are those that came."""

    def __init__(self, endpoints, about=None, *, cancellable=True, fits=None, reported=lambda: None, **fields):
        self.answers = []
        self._reported = reported
        policy_call = question(about or judge(), **fields)
        if not cancellable:
            policy_call = type(policy_call)(
                **{name: getattr(policy_call, name) for name in policy_call.__struct_fields__} | {"cancellable": False}
            )
        self.call = policy_call
        self.cancel = endpoints.worker.call(policy_call, self._answered, fits)

    def _answered(self, _call, answer):
        self.answers.append(answer)
        self._reported()

    @property
    def answer(self):
        (answer,) = self.answers
        return answer


class FleetPlayed:
    """A worker with a connection to each of its addresses; ``places`` are these, by address."""

    def __init__(self, worker, events, dialled):
        self.worker = worker
        self.events = events
        self.dialled = dialled
        self.made = []

    @property
    def places(self):
        return self.worker._endpoints.connections()

    def attempts(self):
        """All attempts, with who was called, in no order."""
        return [(place, attempt) for place in self.made for attempt in place.attempts]


@asynccontextmanager
async def played(*addresses, said=SAID, resolver=None, is_supervised=False, **limits):
    """A worker at these addresses."""
    events, dialled = Reports(), Dialled()

    async def resolve(target):
        return tuple(addresses)

    worker = GrpcWorker(
        "labels",
        "labels.svc:1",
        TransportLimits(**({"worker_connections": 1} | limits)),
        dialer=dialled,
        events=events,
        is_supervised=is_supervised,
        resolver=resolver or resolve,
    )
    endpoints = FleetPlayed(worker, events, dialled)

    def connect(address, channel):
        assert channel == address
        endpoints.made.append(Played(address, said))
        return endpoints.made[-1]

    worker._endpoints._connect = connect
    try:
        await until(lambda: len(worker._endpoints.endpoints) == len(addresses))
        yield endpoints
    finally:
        await worker.close()
        assert all(place.is_closed for place in worker._endpoints.connections())
