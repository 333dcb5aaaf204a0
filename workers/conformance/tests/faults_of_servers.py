"""Workers with faults in health, connections and sizes."""

import asyncio
from contextlib import suppress

import grpc

from worker_conformance.checks.connections import PREFACE
from workers.conformance.tests.faults import breaks
from workers.conformance.tests.reference_serving import HEALTH, OPTIONS, SERVICE, Stream, Worker


@breaks("health.check", "health.check-service", "health.many-watches")
class NeverServes(Worker):
    def __init__(self):
        super().__init__()
        self.stopping.set()

    async def watch(self, request, context):
        await context.write(HEALTH(status=HEALTH.NOT_SERVING))


@breaks("health.check", "health.watch")
class KnowsOnlyItsService(Worker):
    services = (SERVICE,)


@breaks("health.check-service", "health.watch")
class KnowsOnlyTheEmptyName(Worker):
    services = ("",)


@breaks("health.check-unknown")
class ServesEverything(Worker):
    async def check(self, request, context):
        return HEALTH(status=HEALTH.SERVING)


@breaks("health.watch")
class ReportsOnce(Worker):
    async def watch(self, request, context):
        await context.write(HEALTH(status=HEALTH.SERVING))


@breaks("health.watch-unknown")
class WatchesAnything(Worker):
    async def watch(self, request, context):
        await context.write(HEALTH(status=HEALTH.SERVING))
        await self.stopping.wait()


@breaks("health.many-watches")
class WatchedByFew(Worker):
    watches = 0

    async def watch(self, request, context):
        self.watches += 1
        if self.watches > 50:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "watched enough")
        await super().watch(request, context)


# -------------------------------------------------------------------------------------- connections


@breaks("connections.many", "connections.reconnect")
class KnowsFewPeers(Worker):
    def __init__(self):
        super().__init__()
        self.peers = set()

    async def call_describe(self, received, context):
        self.peers.add(context.peer())
        if len(self.peers) > 5:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many peers")
        return await super().call_describe(received, context)


class Proxy:
    """Forwards bytes to a server; it can break as a whole."""

    def __init__(self, port):
        self._port, self._open, self._taking = port, set(), set()

    async def start(self):
        self._server = await asyncio.start_server(self.take, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def take(self, reader, writer):
        self._open.add(writer)
        self._taking.add(asyncio.current_task())
        begun = await reader.read(65536)
        if self.minds(begun, len(self._open)):
            self.die()
            return
        inner_reader, inner = await asyncio.open_connection("127.0.0.1", self._port)
        self._open.add(inner)
        inner.write(begun)
        await asyncio.gather(self.passed(reader, inner), self.passed(inner_reader, writer), return_exceptions=True)
        self._open.discard(writer)

    async def passed(self, reader, writer):
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def stop(self):
        self.die()
        for task in self._taking:
            task.cancel()
        await asyncio.gather(*self._taking, return_exceptions=True)

    def die(self):
        self._server.close()
        for writer in self._open:
            writer.close()

    def minds(self, begun, count):
        """Whether it breaks."""
        return False


class DiesOfGarbage(Proxy):
    def minds(self, begun, count):
        return bool(begun) and not begun.startswith(PREFACE)


class TakesFew(Proxy):
    async def take(self, reader, writer):
        if len(self._open) > 100:
            writer.close()
            self.die()
        else:
            await super().take(reader, writer)


@breaks("connections.garbage")
class BehindABrittleProxy(Worker):
    front = DiesOfGarbage


@breaks("connections.silent")
class BehindANarrowProxy(Worker):
    front = TakesFew


@breaks("connections.keepalive")
class RejectsPings(Worker):
    options = tuple(option for option in OPTIONS if "ping" not in option[0] and "keepalive" not in option[0])


# -------------------------------------------------------------------------------------------- sizes


def with_option(name, value):
    """The server's options with another value for one."""
    return tuple((dict(OPTIONS) | {name: value}).items())


@breaks("sizes.large-document", "sizes.large-object", "sizes.large-on-the-stream")
class TakesLittle(Worker):
    options = with_option("grpc.max_receive_message_length", 4 << 20)


@breaks("sizes.answer-near-the-limit")
class SendsLittle(Worker):
    options = with_option("grpc.max_send_message_length", 20 << 20)


@breaks("sizes.answer-beyond-the-limit", "sizes.answer-beyond-the-limit-on-the-stream")
class DoesNotMeasure(Worker):
    async def judge(self, call, document, trace=""):
        return await self.judged(call, document, trace)


class OneBatch(Stream):
    def batch(self):
        made = super().batch()
        while self.ready:
            made.MergeFrom(super().batch())
        return made


@breaks("sizes.batches-fit")
class WritesAllTogether(Worker):
    class stream_class(OneBatch):  # noqa: N801 - the worker's attribute
        async def work(self, number, call, document):
            await asyncio.sleep(0)
            await super().work(number, call, document)


@breaks("sizes.request-beyond-the-limit")
class TakesAnySize(Worker):
    options = with_option("grpc.max_receive_message_length", -1)
