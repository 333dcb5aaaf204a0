"""Clients as kube-apiserver is one: HTTP/1.1 over TLS, kept connections, exactly the headers that it sends."""

import asyncio
import contextlib
import http.client
import json
import socket

from tests.integration.process import WAIT_SECONDS

NAME = "localhost"
"""What the development certificate is good for."""

_PATHS = {"mutating": "/mutate", "validating": "/validate"}


def message(recording, *, body=None):
    """A recorded request as the bytes that go over the wire: its own headers, its own query, our path."""
    sent = recording.body if body is None else body
    target = _PATHS[recording.phase] + recording.target[recording.target.index("?") :]
    fields = dict(recording.headers)
    if ":authority" in fields:
        # Recorded over HTTP/2, which the API server speaks to loopback urls only: the same in HTTP/1.1's words.
        fields = {"host": fields[":authority"]} | {name: text for name, text in fields.items() if name[0] != ":"}
    if body is not None:
        length = next(name for name in fields if name.lower() == "content-length")
        fields[length] = str(len(sent))
    head = "\r\n".join([f"POST {target} HTTP/1.1", *(f"{name}: {text}" for name, text in fields.items()), "", ""])
    return head.encode() + sent


def post(body, path="/mutate?timeout=10s", *fields):
    """A request with the API server's headers and any body, as bytes; ``fields`` replace or join the headers."""
    headers = {
        "Host": "gateway.svc:443",
        "User-Agent": "kube-apiserver-admission",
        "Content-Length": str(len(body)),
        "Accept": "application/json, */*",
        "Content-Type": "application/json",
        "Accept-Encoding": "gzip",
    } | dict(fields)
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items() if text is not None)]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Answer:
    """An HTTP answer. ``review`` is the AdmissionReview in it."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def review(self):
        return json.loads(self.body)

    @property
    def response(self):
        return self.review["response"]

    @property
    def text(self):
        return self.body.decode()

    def fails_with(self, reason):
        """Whether it refuses because a policy under Fail could not judge, for this reason."""
        status = self.response.get("status", {})
        return (
            self.status == 200
            and self.response["allowed"] is False
            and "patch" not in self.response
            and (status["code"], status["reason"]) == (500, "InternalError")
            and status["message"].startswith(f"{reason}: ")
        )

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


class Client:
    """One kept TLS connection. It gives up, as an API server does, when an answer takes longer than ``wait_time``."""

    def __init__(self, port, context, *, wait_time=WAIT_SECONDS):
        with contextlib.ExitStack() as stack:
            raw = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=wait_time))
            self._socket = context.wrap_socket(raw, server_hostname=NAME)
            stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def close(self):
        self._socket.close()

    def certificate(self):
        """The server's, as Python reads it."""
        return self._socket.getpeercert()

    def sendall(self, content):
        self._socket.sendall(content)

    def answer(self, method="POST"):
        """The next answer on the connection."""
        response = http.client.HTTPResponse(self._socket, method=method)
        response.begin()
        return Answer(response.status, response.headers, response.read())

    def send(self, content):
        """One request, one answer."""
        self.sendall(content)
        return self.answer()


class AsyncClient:
    """The same in a loop: many of them at once."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port, context):
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAME))

    def sendall(self, content):
        self._writer.write(content)

    async def answer(self):
        """The next answer on the connection."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in head[1:] if line)}
        body = await self._reader.readexactly(int(headers["content-length"]))
        return Answer(int(head[0].split()[1]), headers, body)

    async def send(self, content, *, wait_time=WAIT_SECONDS):
        """One request, one answer; TimeoutError where an API server would have given up."""
        async with asyncio.timeout(wait_time):
            self.sendall(content)
            await self._writer.drain()
            return await self.answer()

    async def close(self):
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
