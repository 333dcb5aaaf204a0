"""A connection that is lost is described anew, however quickly there is another one: it may be another version."""

import asyncio

import grpc
import grpc.aio

from gateway.transports.answer_room import AnswerRoom
from gateway.transports.descriptions import Descriptions
from gateway.transports.grpc.connection import Connection
from gateway.transports.grpc.failures import Failures
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.version_skew import VersionSkew
from tests.integration.running import until
from tests.integration.workers import description


class Owner:
    """Whose connection it is: counts the changes."""

    def __init__(self):
        self.changes = []

    def changed(self, connection):
        self.changes.append((connection.state.name, connection.description))

    def read(self, policy_call, outcome):
        raise AssertionError("not called")

    unsolicited = stream_broke = read


class Unimplemented:
    """A call that the worker does not have."""

    def __aiter__(self):
        return self

    async def __anext__(self):
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNIMPLEMENTED, grpc.aio.Metadata(), grpc.aio.Metadata())

    async def read(self):
        return await self.__anext__()

    def cancel(self):
        pass


class Flickering:
    """A channel that is connected at each look, and was not in between. ``versions`` are those of the
    workers behind it, one after another.
    """

    def __init__(self, *versions):
        self._versions = iter(versions)
        self.changes = asyncio.Queue()

    def get_state(self, *, try_to_connect=False):
        return grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last):
        assert last is grpc.ChannelConnectivity.READY
        await self.changes.get()

    def unary_unary(self, method):
        async def call(_request, **_fields):
            return description("judge", version=next(self._versions))

        return call

    def stream_stream(self, method):
        return Unimplemented

    def unary_stream(self, method):
        return lambda _request: Unimplemented()

    async def close(self):
        pass


async def test_a_connection_that_is_back_already_is_described_anew():
    """Lost and found again before the loop's next turn is lost all the same: what was said counts no more."""
    owner, channel = Owner(), Flickering("1", "2")
    connection = Connection(
        channel,
        address="unix:/nonexistent",
        owner=owner,
        version_skew=VersionSkew(60.0),
        descriptions=Descriptions(),
        failures=Failures("labels", "unix:/nonexistent", 100),
        backlog=Backlog(1),
        room=AnswerRoom(TransportLimits()),
        limits=TransportLimits(),
    )
    try:
        await until(lambda: connection.can_be_called)
        assert connection.description.version_of("judge") == "1"
        channel.changes.put_nowait(None)
        await until(lambda: connection.can_be_called and connection.description.version_of("judge") == "2")
        assert ("CONNECTING", None) in owner.changes
    finally:
        await connection.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
