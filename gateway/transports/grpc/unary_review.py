"""One unary call of ``Review``, whose answer is received where there is room for it (see ``answer_room``)."""

from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from gateway.engine.policy_call import PolicyCall
from gateway.transports.answer_room import AnswerRoom
from gateway.transports.grpc.describe_client import SERVICE
from gateway.transports.messages import review_request, trace_metadata

ROOM_SHARE: Final = 0.5
"""The share of the time that a call has left, when its answer begins to arrive, in which the answer may wait for a
place. The other half is for receiving it, and for the rest of the review."""


class NoRoomError(Exception):
    """There was no place for an answer in time."""


class ReviewMethod:
    """The method on one channel. Without serializers: an invalid message is a failure of the worker, not an exception
    inside grpc.
    """

    __slots__ = ("direct", "in_room")

    def __init__(self, channel: grpc.aio.Channel) -> None:
        method = SERVICE + "Review"
        self.direct: Any = channel.unary_unary(method)
        self.in_room: Any = channel.unary_stream(method)
        """A stream of one message, which is the same on the wire: the message is received when it is read."""


class UnaryReview:
    """One call. At the end of its context the call is cancelled, unless it has ended, and its place is free.

    Args:
        method: on the channel.
        room: in which its answer is received.
        worker: the Worker's name.
    """

    __slots__ = ("_has_place", "_is_direct", "_method", "_reply", "_room", "_worker")

    def __init__(self, method: ReviewMethod, room: AnswerRoom, worker: str) -> None:
        self._method = method
        self._room = room
        self._worker = worker
        self._is_direct = False
        self._has_place = False
        self._reply: Any = None

    def __enter__(self) -> Self:
        self._is_direct = self._room.begin_direct()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_direct:
            self._room.end_direct()
        elif self._has_place:
            self._room.leave(self._worker)
        if self._reply is not None:
            self._reply.cancel()  # without effect if it has ended

    async def message(self, call: PolicyCall) -> bytes:
        """Make the call. Returns the message with the answer, which must not be kept after the context.

        Raises:
            AioRpcError: the call failed, or its status is not OK.
            DecodeError: there is no message.
            NoRoomError: there was no place for it.
        """
        request, metadata = review_request(call), trace_metadata(call)
        left = max(call.deadline - monotonic(), 0.0)
        if self._is_direct:
            return _message(await self._method.direct(request, timeout=left, metadata=metadata))
        reply = self._reply = self._method.in_room(request, timeout=left, metadata=metadata)
        await reply.initial_metadata()
        if not reply.done():  # it has failed, if it is
            left = max(call.deadline - monotonic(), 0.0)
            self._has_place = await self._room.enter(self._worker, ROOM_SHARE * left)
            if not self._has_place:
                raise NoRoomError
        content = _message(await reply.read())
        if await reply.code() is not grpc.StatusCode.OK:
            await reply.read()  # raises the status
        return content


def _message(content: Any) -> bytes:
    """What was received, if it is a message."""
    if content is None or content is grpc.aio.EOF:
        raise DecodeError("there is none")
    return bytes(content)
