"""One ``ReviewStream``, from the gateway's side. It records every outcome, unexpected ones included."""

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc

from worker_conformance.findings import BrokenRuleError, expect, listed
from worker_conformance.proto.admission.worker.v1 import worker_pb2

Item = worker_pb2.ReviewStreamRequest.RequestItem
Outcomes = dict[int, worker_pb2.Outcome]


def calls(wanted: Iterable[worker_pb2.PolicyCall], first: int = 1) -> list[Item]:
    """The calls under the ids ``first``, ``first`` + 1, ..."""
    return [Item(id=number, call=policy_call) for number, policy_call in enumerate(wanted, first)]


def cancels(*numbers: int) -> list[Item]:
    """A cancel for each id."""
    return [Item(id=number, cancel=worker_pb2.ReviewStreamRequest.Cancel()) for number in numbers]


class ReviewStream:
    """A stream.

    Args:
        call: gRPC's call.
        patience: seconds to wait for an outcome.

    Attributes:
        outcomes: all received outcomes, by id.
        twice: ids with more than one outcome.
    """

    def __init__(self, call: Any, patience: float) -> None:
        self._call = call
        self._patience = patience
        self.outcomes: Outcomes = {}
        self.twice: list[int] = []

    async def send(self, items: Iterable[Item], documents: Iterable[bytes] = ()) -> None:
        """Write one message."""
        await self.write(worker_pb2.ReviewStreamRequest(items=items, documents=documents).SerializeToString())

    async def write(self, message: bytes) -> None:
        """Write one message of these bytes."""
        try:
            await asyncio.wait_for(self._call.write(message), self._patience)
        except TimeoutError:
            observed = f"the worker reads nothing from it for {self._patience:g} s"
            raise BrokenRuleError("a stream from which the worker reads calls", observed) from None
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise BrokenRuleError("an open stream", f"it has ended: {await self._ended(error)}") from None

    async def until(self, *numbers: int) -> Outcomes:
        """Read until each of these ids has its outcome.

        Returns:
            All outcomes received so far.
        """
        wanted = set(numbers)
        while missing := wanted - set(self.outcomes):
            if not await self._read(f"an outcome for id {listed(sorted(missing)[:5])}"):
                observed = f"the stream has ended with {(await self.status()).name}, {len(missing)} are missing"
                raise BrokenRuleError(f"outcomes for {len(wanted)} ids", observed)
        return self.outcomes

    async def rest(self) -> Outcomes:
        """Half-close, and read until the stream ends; it must end with OK.

        Returns:
            All outcomes of the stream.
        """
        await self._call.done_writing()
        while await self._read("the end of a stream that was half-closed"):
            pass
        status = await self.status()
        expect(status is grpc.StatusCode.OK, "a stream that ends with OK after it was half-closed", status.name)
        return self.outcomes

    async def status(self) -> grpc.StatusCode:
        """How the stream has ended."""
        try:
            return grpc.StatusCode(await asyncio.wait_for(self._call.code(), self._patience))
        except TimeoutError:
            raise BrokenRuleError("the end of the stream", f"it is still open after {self._patience:g} s") from None

    async def broken(self) -> grpc.StatusCode:
        """Read until the stream ends; return its status."""
        while await self._read("the end of the stream"):
            pass
        return await self.status()

    def breaks(self) -> None:
        """Cancel it, as when the gateway ends."""
        self._call.cancel()

    async def _read(self, wanted: str) -> bool:
        """Record the next message's outcomes; False: the stream has ended, with any status."""
        try:
            message = await asyncio.wait_for(self._call.read(), self._patience)
        except grpc.aio.AioRpcError:
            return False
        except asyncio.CancelledError:
            if self._call.cancelled():
                return False
            raise
        except TimeoutError:
            raise BrokenRuleError(wanted, f"nothing within {self._patience:g} s") from None
        if message is grpc.aio.EOF:
            return False
        for item in message.items:
            if item.id in self.outcomes:
                self.twice.append(item.id)
            self.outcomes[item.id] = item.outcome
        return True

    async def _ended(self, error: BaseException) -> str:
        return f"{(await self.status()).name} ({getattr(error, 'details', lambda: error)()})"
