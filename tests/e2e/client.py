"""Kubernetes' API as kubectl uses it: JSON in, JSON out, the warnings and the Status that a user sees."""

import asyncio
import io
import json
import re
from typing import NamedTuple

import aiohttp

from tests.e2e.api_server import ADMIN
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import POLL_SECONDS

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
"""What kubectl get accepts: the columns of a kind."""

_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')


class Reply(NamedTuple):
    """A response. ``body`` is an object, or the Status of an error.

    For a path without an API, kube-apiserver answers in plain text, which is the ``message`` then.
    """

    code: int
    body: dict
    warnings: list
    audit_id: str

    @property
    def message(self):
        return self.body["message"]


class Client:
    """Connections to an API server: ``async with Client(server) as client``."""

    def __init__(self, server):
        self.server = server

    async def __aenter__(self):
        connector = aiohttp.TCPConnector(ssl=self.server.trust, limit=0)
        timeout = aiohttp.ClientTimeout(total=WAIT_SECONDS)
        self._session = aiohttp.ClientSession(self.server.url, connector=connector, timeout=timeout)
        return self

    async def __aexit__(self, *exc_info):
        await self._session.close()

    async def send(self, method, path, body=None, *, user=ADMIN, media=JSON, accept=JSON, **parameters):
        """One request of a user."""
        headers = {"Authorization": f"Bearer {user}", "Content-Type": media, "Accept": accept}
        content = None if body is None else io.BytesIO(json.dumps(body).encode())
        sent = self._session.request(method, path, data=content, headers=headers, params=parameters)
        async with sent as response:
            text = await response.text()
            return Reply(
                code=response.status,
                body=json.loads(text) if text.startswith("{") else {"message": text},
                warnings=[_WARNING.fullmatch(text)[1] for text in response.headers.getall("Warning", ())],
                audit_id=response.headers["Audit-Id"],
            )

    async def create(self, obj, **options):
        """POST an object to its collection; a Reply whatever comes of it."""
        return await self.send("POST", collection(obj), obj, **options)

    async def get(self, obj, **options):
        """GET an object."""
        return await self.send("GET", path(obj), **options)

    async def apply(self, obj, *, manager="tests", **options):
        """Server-side apply."""
        return await self.send("PATCH", path(obj), obj, media=APPLY, fieldManager=manager, force="true", **options)

    async def delete(self, obj, **options):
        """DELETE an object."""
        return await self.send("DELETE", path(obj), **options)


def path(obj):
    """Where the object is."""
    return f"{collection(obj)}/{obj['metadata']['name']}"


def collection(obj):
    """The path of the objects of this kind beside it."""
    version, namespace = obj["apiVersion"], obj["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{obj['kind'].lower()}s"


async def eventually(attempt):
    """What a coroutine function returns, called again until that is true."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not (found := await attempt()):  # noqa: ASYNC110 - what is awaited happens in another process
            await asyncio.sleep(POLL_SECONDS)
    return found
