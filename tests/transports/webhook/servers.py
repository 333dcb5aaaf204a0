"""Webhooks over real TLS that do with a connection whatever a test says, and remember what they were sent."""

import asyncio
import base64
import json
import socket
import ssl
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

NAME = "judge.hooks.svc"
"""The names in a webhook's certificate, besides 127.0.0.1 and localhost."""


@dataclass(frozen=True, kw_only=True)
class Got:
    """A request as it came. ``connection`` counts connections from 0; ``subject`` is the client certificate's."""

    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    connection: int
    subject: str

    @property
    def review(self):
        """The AdmissionReview."""
        return json.loads(self.body)

    @property
    def uid(self):
        """That of the AdmissionRequest."""
        return self.review["request"]["uid"]

    def header(self, name):
        """A header by its name, None if it did not come."""
        return next((value for header, value in self.headers if header.lower() == name.lower()), None)


def review(got, **response):
    """An AdmissionReview that answers what was got: it allows, unless ``response`` says otherwise."""
    called = got.review
    answer = {"uid": got.uid, "allowed": True} | response
    return json.dumps({"apiVersion": called["apiVersion"], "kind": "AdmissionReview", "response": answer}).encode()


def http(status=200, body=b"", **headers):
    """An HTTP answer; underscores in names of headers are dashes."""
    lines = [f"HTTP/1.1 {status} Whatever"]
    named = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    named |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    lines += [f"{name}: {value}" for name, value in named.items() if value is not None]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def json_patch(*operations):
    """The two members of a response that carry a JSON Patch."""
    return {"patch": base64.b64encode(json.dumps(operations).encode()).decode(), "patchType": "JSONPatch"}


def allows(got):
    """Allow whatever it is."""
    return http(body=review(got))


class Hook:
    """A webhook. ``script`` is called with each request, and gives the bytes to answer; or writes itself and gives
    None, if it takes a writer too and is asynchronous. ``reached`` is set by each request.
    """

    def __init__(self, script=allows):
        self.script = script
        self.got = []
        self.connections = 0
        self.ended = asyncio.Event()
        self.reached = asyncio.Event()
        self.port = 0
        self._writers = set()
        self._tasks = set()

    @property
    def url(self):
        """By address, with a path."""
        return f"https://127.0.0.1:{self.port}/judge"

    async def serve(self, reader, writer):
        """One connection."""
        number, self.connections = self.connections, self.connections + 1
        task = asyncio.current_task()
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while True:
                got = await _read(reader, writer, number)
                self.got.append(got)
                self.reached.set()
                if asyncio.iscoroutinefunction(self.script):
                    await self.script(got, writer)
                else:
                    writer.write(self.script(got))
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            self.ended.set()
        finally:
            self._writers.discard(writer)
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError, ssl.SSLError, TimeoutError):
                await writer.wait_closed()

    def drop(self):
        """Close all connections, as a server does whose patience with idle ones is over."""
        for writer in tuple(self._writers):
            writer.close()

    def stop(self):
        """End whatever it is at."""
        for task in tuple(self._tasks):
            task.cancel()


async def _read(reader, writer, number):
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = tuple(tuple(line.split(": ", 1)) for line in head[1:] if line)
    size = next(int(value) for name, value in headers if name.lower() == "content-length")
    body = await reader.readexactly(size)
    certificate = writer.get_extra_info("peercert") or {}
    subject = dict(pair[0] for pair in certificate.get("subject", ())).get("commonName", "")
    return Got(target=head[0].split(" ")[1], headers=headers, body=body, connection=number, subject=subject)


def server_context(certificate, key, *, client_ca=None, alpn=("http/1.1",)):
    """TLS of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(list(alpn))
    if client_ca is not None:
        context.load_verify_locations(cadata=client_ca.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextmanager
def handshaking(context):
    """The port of a server that only shakes hands, in a thread: unlike asyncio it says what it does not like."""

    def shake():
        while True:
            try:
                plain, _ = listening.accept()
            except OSError:
                return
            with plain, suppress(OSError), context.wrap_socket(plain, server_side=True) as secured:
                secured.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=shake)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def frozen(context):
    """The port of a server that shakes hands, and from then on neither reads nor writes nor closes, in a thread."""
    held = []

    def accept():
        while True:
            try:
                plain, _ = listening.accept()
            except OSError:
                return
            with suppress(OSError):
                held.append(context.wrap_socket(plain, server_side=True))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in held:
                each.close()


@asynccontextmanager
async def served(hook, context, port=0):
    """A webhook at 127.0.0.1, behind this TLS (None: plain text)."""
    server = await asyncio.start_server(hook.serve, "127.0.0.1", port, ssl=context, limit=2**26)
    hook.port = server.sockets[0].getsockname()[1]
    try:
        yield hook
    finally:
        server.close()
        hook.drop()
        hook.stop()
