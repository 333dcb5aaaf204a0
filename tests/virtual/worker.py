"""A worker in the gateway's own process: what it describes and answers is a value that the test sets."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer
from gateway.transports.descriptions import Descriptions
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.version_skew import VersionSkew
from gateway.transports.worker_channel import WorkerError

SETTLE_SECONDS = 60.0
PHASES = (pb.PHASE_MUTATING, pb.PHASE_VALIDATING)


@dataclass(kw_only=True, eq=False)
class ScriptedWorker:
    """A DescribableChannel with replicas, by version, each of which describes ``policies``.

    ``answer`` is called for each call with the version of the replica that gets it, and returns the answer and after
    how many seconds it comes; None: never. ``refused_settings`` are settings that the worker refuses. Each answer that
    has been given is in ``given``, each call that was made in ``calls``.
    """

    name: str
    policies: tuple[str, ...]
    answer: Callable[[PolicyCall, str], tuple[Answer, float] | None]
    versions: tuple[str, ...] = ("1",)
    refused_settings: frozenset[bytes] = frozenset()
    calls: list[PolicyCall] = field(default_factory=list)
    given: list[tuple[PolicyCall, Answer]] = field(default_factory=list)
    is_closed: bool = False

    def __post_init__(self):
        self.target = f"virtual:{self.name}"
        self.version_skew = VersionSkew(SETTLE_SECONDS)
        self.is_doubted = False
        self.never = ""
        self._known = Descriptions()
        self._listeners: list[Callable[[], object]] = []
        self._open: dict[int, asyncio.TimerHandle] = {}
        self._turn = 0

    # ------------------------------------------------------------------------------------- what the test does

    def roll_out(self, *versions: str) -> None:
        """From now on there is one replica of each of these versions; none: it is down."""
        self.versions = versions
        self.changed()

    def changed(self) -> None:
        """Whatever it describes may have changed."""
        for listener in tuple(self._listeners):
            listener()

    # ------------------------------------------------------------------------------------- DescribableChannel

    @property
    def why(self) -> str:
        return "" if self.versions else f"worker {self.name!r} is down"

    @property
    def live(self):
        return tuple(dict.fromkeys(map(self._description, self.versions)))

    def described(self):
        return {self._description(version): self.versions.count(version) for version in self.versions}

    def listen(self, listener):
        self._listeners.append(listener)

    def unlisten(self, listener):
        self._listeners.remove(listener)

    def all_with(self, description):
        return (self,) if description in self.live else ()

    async def validate_settings(self, policy: str, settings: bytes) -> Any:
        if not self.versions:
            raise WorkerError(self.why)
        errors = [pb.SettingsError(pointer="", message="refused")] if settings in self.refused_settings else []
        return pb.ValidateSettingsResponse(errors=errors)

    def call(self, call, answered, fits=None):
        loop = asyncio.get_running_loop()
        self.calls.append(call)
        self._turn += 1
        able = [version for version in self.versions if fits is None or self._description(version) in fits]
        outcome = self.answer(call, able[self._turn % len(able)] if able else "")
        if outcome is None:
            return lambda: None
        answer, seconds = outcome
        key = self._turn
        self._open[key] = loop.call_later(seconds, self._give, key, call, answer, answered)
        return lambda: self._cancel(key)

    async def idle(self):
        while self._open:  # noqa: ASYNC110 - in virtual time
            await asyncio.sleep(1.0)

    async def close(self):
        self.is_closed = True
        for key in tuple(self._open):
            self._cancel(key)

    def _description(self, version):
        policies = [pb.PolicyDescription(name=name, phases=PHASES) for name in self.policies]
        return self._known.of(pb.DescribeResponse(version=version, policies=policies).SerializeToString())

    def _give(self, key, call, answer, answered):
        del self._open[key]
        self.given.append((call, answer))
        answered(call, answer)

    def _cancel(self, key):
        timer = self._open.pop(key, None)
        if timer is not None:
            timer.cancel()
