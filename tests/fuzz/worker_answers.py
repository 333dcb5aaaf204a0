"""Whatever a gRPC worker sends: each call gets one answer at most, which decides as ``judging`` says.

* A message of ReviewStream answers open calls only; one that cannot be read ends the stream, and all its calls fail.
* Describe gives each policy an availability, or the worker is not described. Nothing else is raised, or logged as an
  error of the gateway.

The first byte of an input says which message it is: see ``run``.
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import grpc.aio
from google.protobuf.message import DecodeError

from gateway.engine.plan import Described, Unavailable
from gateway.policies.model import Phase
from gateway.policies.workers.targets import GrpcTarget, Worker
from gateway.transports.description_validator import DescriptionValidator
from gateway.transports.descriptions import Descriptions, read_message
from gateway.transports.grpc.call_attempt import CallResult
from gateway.transports.grpc.failures import Failures
from gateway.transports.grpc.stream import ReviewStream
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.messages import outcome_answer, review_answer
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.fuzz import judging
from tests.virtual.gateway import Errors, capturing
from tests.virtual.loop import VirtualLoop

CHARACTERS = 500
OPEN_CALLS = 3
WORDS = (
    b"\n | \x12 | \x1a | \x08\x01 | \x08\x02 | \x08\x03 | "
    b'[{"op":"add","path":"/metadata/labels/b","value":"2"}] | {"metadata":{"labels":{"a":null}}} | '
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01 | judge | /object | /metadata"
).split(b" | ")


def seeds() -> Iterator[bytes]:
    """Messages of each kind."""
    patch = b'[{"op":"add","path":"/metadata/labels/b","value":"2"}]'
    outcomes = [
        pb.Outcome(allow=pb.Allow(), version="1"),
        pb.Outcome(allow=pb.Allow(json_patch=patch), warnings=["w"], audit_annotations={"k": "v"}),
        pb.Outcome(allow=pb.Allow(merge_patch=b'{"metadata":{"labels":{"a":null}}}')),
        pb.Outcome(allow=pb.Allow(object=b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}')),
        pb.Outcome(deny=pb.Deny(code=403, message="no", details=pb.StatusDetails(name="x"))),
        pb.Outcome(failure=pb.Failure(message="cannot")),
        pb.Outcome(allow=pb.Allow(), cache=pb.CacheHint(no_store=pb.CacheHint.NoStore())),
    ]
    for outcome in outcomes:
        for phase in (b"\x00", b"\x80"):
            yield phase + b"\x00" + pb.ReviewResponse(outcome=outcome).SerializeToString()
    for count in range(1, len(outcomes)):
        response = pb.ReviewStreamResponse()
        for number, outcome in enumerate(outcomes[:count]):
            response.items.add(id=number, outcome=outcome)
        yield b"\x80\x01" + response.SerializeToString()
    described = pb.PolicyDescription(name="judge", phases=[pb.PHASE_MUTATING, pb.PHASE_VALIDATING])
    yield b"\x00\x02" + pb.DescribeResponse(version="1", policies=[described]).SerializeToString()
    yield b"\x00\x03" + pb.ValidateSettingsResponse(warnings=["w"]).SerializeToString()


def run(data: bytes) -> None:
    """First byte: the phase; second byte: 0 an answer, 1 a message of a stream, 2 a description, 3 settings."""
    phase, rest = judging.phase_of(data)
    kind, content = (rest[0] % 4 if rest else 0), rest[1:]
    if kind == 0:
        judging.check(review_answer(judging.call(phase), content, characters=CHARACTERS), phase)
    elif kind == 1:
        _stream(phase, content)
    else:
        _description(content, settings=kind == 3)


class _Attempt:
    def __init__(self, phase: Phase, number: int) -> None:
        self.call = judging.call(phase, number)
        self.ends: list[Any] = []

    def answered(self, answer: Any) -> None:
        self.ends.append(answer)

    def ended(self, failure: Any, result: CallResult) -> None:
        self.ends.append(failure)


class _Wire:
    """A gRPC call that has received this message, and then nothing more: the end."""

    def __init__(self, content: bytes) -> None:
        self._received = [content]
        self._written = asyncio.Event()
        self.is_cancelled = False

    async def write(self, content: bytes) -> None:
        self._written.set()

    async def read(self) -> Any:
        await self._written.wait()
        return self._received.pop() if self._received else grpc.aio.EOF

    async def done_writing(self) -> None:
        pass

    def cancel(self) -> bool:
        self.is_cancelled = True
        return True

    def cancelled(self) -> bool:
        return self.is_cancelled


_loops: list[VirtualLoop] = []


@contextmanager
def world() -> Iterator[None]:
    """While there is a loop."""
    with closing(VirtualLoop()) as loop:
        _loops.append(loop)
        yield
        _loops.clear()


def _run(coroutine: Any) -> Any:
    loop = _loops[0]
    task = loop.create_task(coroutine)
    loop.run_for(1.0)
    assert task.done(), "it waits for ever"
    return task.result()


def _stream(phase: Phase, content: bytes) -> None:
    attempts = [_Attempt(phase, number) for number in range(1, OPEN_CALLS + 1)]
    backlog, ended, errors = Backlog(1_000_000), [], Errors()

    async def talk() -> None:
        stream = ReviewStream(
            _Wire(content),
            limits=TransportLimits(),
            backlog=backlog,
            failures=Failures("judge", "somewhere", CHARACTERS),
            read=lambda call, outcome, *, is_large: outcome_answer(call, outcome, characters=CHARACTERS),
            unsolicited=lambda count: None,
            ended=ended.append,
        )
        for attempt in attempts:
            stream.call(attempt)
        await asyncio.sleep(0.5)
        await stream.close()

    with capturing(errors):
        _run(talk())
    assert not errors.found, errors.found
    assert len(ended) == 1
    assert backlog.bytes == 0
    for attempt in attempts:
        assert len(attempt.ends) == 1, attempt.ends
        judging.check(attempt.ends[0], phase)


class _Validator:
    def __init__(self, answer: pb.ValidateSettingsResponse) -> None:
        self._answer = answer

    async def validate_settings(self, policy: str, settings: bytes) -> pb.ValidateSettingsResponse:
        return self._answer


_DESCRIBED = pb.DescribeResponse(
    version="1", policies=[pb.PolicyDescription(name="judge", phases=[pb.PHASE_MUTATING, pb.PHASE_VALIDATING])]
)


def _description(content: bytes, *, settings: bool) -> None:
    try:
        answer = read_message(pb.ValidateSettingsResponse, content) if settings else pb.ValidateSettingsResponse()
        description = Descriptions().of(_DESCRIBED.SerializeToString() if settings else content)
    except DecodeError:
        return
    worker = Worker(name="worker-judge", grpc=GrpcTarget(target="dns:///judge:1"))
    validator = DescriptionValidator(_Validator(answer), worker, description.message, CHARACTERS)
    for availability in _run(validator.availabilities([[each] for each in judging.POLICIES.values()])):
        assert isinstance(availability, Described | Unavailable)
        if isinstance(availability, Unavailable):
            assert availability.message.isprintable(), availability.message
        else:
            assert description.version_of("judge") == availability.version
