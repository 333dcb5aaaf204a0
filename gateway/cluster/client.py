"""The Kubernetes API: requests with JSON in and out, and watches.

kubernetes-asyncio finds the API server and the credentials (a pod's service account, or a kubeconfig file with its exec
plugins) as client-go does, and has the connections. Its models are not used: what the gateway reads is JSON.

It is imported by ``connect`` only: its models take 0.3 s and 40 MB, for nothing in a gateway without ``--cluster``.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import msgspec
from yaml import MarkedYAMLError, YAMLError

from gateway.cluster.errors import ApiError, KubeconfigError
from gateway.extras import NEEDS_CLUSTER_EXTRA

SECONDS: Final = 10.0
"""How long a request may take."""

PAGE: Final = 500
"""Objects in one response to a list: as client-go's reflectors."""

_WATCH_LINE_BYTES: Final = 8 * 1024 * 1024
"""The longest event of a watch: an object (1.5 MiB in etcd) whose JSON is longer than what is stored."""

_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""A watch may be silent for a minute. 45 s after the API server's host is gone, its connection is closed."""

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
MERGE_PATCH: Final = "application/merge-patch+json"

METADATA: Final = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"
"""Accept only the metadata of objects; ``{}``: "List", or nothing for a watch."""

_CLOCK_NOISE: Final = timedelta(seconds=SECONDS + 1)
"""Clocks that differ by no more than a response may take are taken for equal."""

Query = Mapping[str, str | int]


class KubernetesClient:
    """Sends requests to one API server. Errors of requests are ApiErrors.

    Args:
        kubeconfig: a kubeconfig file; None: the pod's service account.
    """

    def __init__(self, kubeconfig: Path | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._api: Any = None
        self.clock_skew = timedelta(0)
        """What the API server's clock is ahead of this machine's, to the second, by its last response."""

    def now(self) -> datetime:
        """The API server's time, timezone-aware."""
        return datetime.now(UTC) + self.clock_skew

    async def connect(self) -> None:
        """Read the credentials.

        Raises:
            KubeconfigError: there are none, or they cannot be used.
        """
        try:
            from kubernetes_asyncio.client import ApiClient, Configuration  # noqa: PLC0415 - see the module
        except ModuleNotFoundError:
            raise KubeconfigError(f"Kubernetes API: --cluster {NEEDS_CLUSTER_EXTRA}") from None
        settings: Any = Configuration()
        await _load(settings, self._kubeconfig)
        try:
            self._api = ApiClient(configuration=settings, header_name="User-Agent", header_value="admission-gateway")
        except OSError as error:  # ssl.SSLError among them
            raise KubeconfigError(f"Kubernetes API: the credentials cannot be used: {error}; check them") from error

    async def close(self) -> None:
        """Close all connections."""
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    async def get(self, path: str, *, accept: str = JSON, seconds: float = SECONDS) -> Any:
        """The object at ``path`` (see ``object_path``)."""
        return await self.send("GET", path, accept=accept, seconds=seconds)

    async def list_all(self, path: str, *, accept: str = JSON) -> tuple[list[Any], str]:
        """All objects of a collection, page by page, and the resource version of the list."""
        items: list[Any] = []
        version = ""
        async for page, version in self.pages(path, accept=accept):  # noqa: B007 - the last one is returned
            items += page
        return items, version

    async def pages(
        self, path: str, *, selectors: Query | None = None, accept: str = JSON
    ) -> AsyncIterator[tuple[list[Any], str]]:
        """The pages of a list: objects, and the resource version of the list.

        Args:
            path: of the collection.
            selectors: ``labelSelector`` and ``fieldSelector``.
            accept: a media type.
        """
        query: dict[str, str | int] = {"limit": PAGE, **(selectors or {})}
        while True:
            page = await self.send("GET", path, query=query, accept=accept)
            metadata = page["metadata"]
            yield page.get("items") or [], metadata["resourceVersion"]
            if not metadata.get("continue"):
                return
            query["continue"] = metadata["continue"]

    async def apply(self, path: str, obj: Any, *, manager: str, force: bool = True, dry_run: bool = False) -> Any:
        """Server-side apply: own the fields of ``obj`` as ``manager``, and take them from others with ``force``."""
        query: dict[str, str | int] = {"fieldManager": manager, "force": str(force).lower()}
        if dry_run:
            query["dryRun"] = "All"
        return await self.send("PATCH", path, obj, query=query, content_type=APPLY)

    async def send(  # noqa: PLR0913 - all but the first three by name
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        seconds: float = SECONDS,
    ) -> Any:
        """The JSON of the response to one request. It is not repeated, unless the credentials had expired."""
        timeout = aiohttp.ClientTimeout(total=seconds)
        headers = {"Accept": accept, "Content-Type": content_type}
        async with self._response(method, path, query, headers, body, timeout) as response:
            return msgspec.json.decode(await response.read())

    async def watch(
        self, path: str, *, resource_version: str, seconds: int, selectors: Query | None = None, accept: str = JSON
    ) -> AsyncIterator[tuple[str, Any]]:
        """The events of a collection after ``resource_version``: (type, object); BOOKMARK among them.

        ``selectors`` are those of the list (``pages``). It ends after ``seconds``, and whenever the API server or the
        network ends it.

        Raises:
            ApiError: also for an event of the type ERROR, such as that the resource version is too old.
        """
        query: Query = {
            "watch": 1,
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": seconds,
            **(selectors or {}),
        }
        timeout = aiohttp.ClientTimeout(connect=SECONDS, sock_read=seconds + SECONDS)
        headers = {"Accept": accept, "Content-Type": JSON}
        async with self._response("GET", path, query, headers, None, timeout) as response:
            _keep_alive(response)
            async for line in _lines(response.content):
                event = msgspec.json.decode(line)
                if event["type"] == "ERROR":
                    raise _refusal(f"watch {path}", event["object"])
                yield event["type"], event["object"]

    @asynccontextmanager
    async def _response(
        self,
        method: str,
        path: str,
        query: Query | None,
        headers: dict[str, str],
        body: Any,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response that is no error."""
        sent = f"{method} {path}"
        try:
            response = await self._open(method, path, query, headers, body, timeout)
            if response.status == 401:  # noqa: PLR2004 - Unauthorized: the token has expired, or was replaced
                response.release()
                await self._renew()
                response = await self._open(method, path, query, headers, body, timeout)
            async with response:
                self._compare_clocks(response.headers.get("Date", ""))
                if not response.ok:
                    raise await _error(sent, response)
                yield response
        except TimeoutError:
            raise ApiError(sent, 0, "Timeout", "no response in time; check that the API server is reachable") from None
        except (aiohttp.ClientError, OSError, msgspec.DecodeError) as error:
            raise ApiError(sent, 0, "", f"{type(error).__name__}: {error}") from error

    async def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        headers: dict[str, str],
        body: Any,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's
    ) -> aiohttp.ClientResponse:
        if self._api is None:
            raise ApiError(f"{method} {path}", 0, "", "the client is closed")
        response: aiohttp.ClientResponse = await self._api.call_api(
            path,
            method,
            query_params=list((query or {}).items()),
            header_params=dict(headers),
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=timeout,
        )
        return response

    def _compare_clocks(self, date: str) -> None:
        with suppress(ValueError, TypeError):
            skew = parsedate_to_datetime(date) - datetime.now(UTC)
            # The header has no fractions of a second, and takes a moment to arrive.
            self.clock_skew = skew if abs(skew) > _CLOCK_NOISE else timedelta(0)

    async def _renew(self) -> None:
        """Read the token again; keep the old one if it cannot be read."""
        settings = self._api.configuration
        with suppress(KubeconfigError):
            await _load(settings, self._kubeconfig)


def collection_path(group: str, version: str, resource: str, namespace: str = "") -> str:
    """The path of a collection: ``/api/v1/namespaces``, ``/apis/apps/v1/namespaces/NAMESPACE/deployments``."""
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{base}/namespaces/{quote(namespace, safe='')}/{resource}" if namespace else f"{base}/{resource}"


def object_path(group: str, version: str, resource: str, name: str, namespace: str = "") -> str:
    """The path of one object."""
    return f"{collection_path(group, version, resource, namespace)}/{quote(name, safe='')}"


async def _load(settings: Any, kubeconfig: Path | None) -> None:
    """Read the API server's address and the credentials into kubernetes-asyncio's Configuration."""
    from kubernetes_asyncio import config  # noqa: PLC0415 - see the module

    try:
        if kubeconfig is None:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        else:
            # Without it, a missing file is reported as one without a context.
            await asyncio.to_thread(kubeconfig.read_bytes)
            await config.load_kube_config(
                config_file=str(kubeconfig), client_configuration=settings, persist_config=False
            )
    except (config.ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError, YAMLError) as error:
        where = "the pod's service account" if kubeconfig is None else f"the kubeconfig file {kubeconfig}"
        advice = "set --kubeconfig outside of a cluster" if kubeconfig is None else "check that kubectl can use it"
        raise KubeconfigError(f"Kubernetes API: {where}: {_why(error)}; {advice}") from error


def _why(error: Exception) -> str:
    """What is wrong with a kubeconfig; not the line where YAML ends, which may be a token."""
    if not isinstance(error, MarkedYAMLError):
        return "no YAML" if isinstance(error, YAMLError) else str(error)
    return f"no YAML: {error.problem}" + (f" in line {error.problem_mark.line + 1}" if error.problem_mark else "")


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a response, each complete; what follows the last one is cut off."""
    parts: list[bytes] = []
    size = 0
    async for part in content.iter_any():
        *ended, rest = part.split(b"\n")
        for line in ended:
            yield b"".join((*parts, line))
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > _WATCH_LINE_BYTES:
            raise aiohttp.ClientPayloadError(f"an event of more than {_WATCH_LINE_BYTES} bytes")


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    connection = response.connection
    transport = None if connection is None else connection.transport
    found = None if transport is None else transport.get_extra_info("socket")
    if found is None:
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _error(sent: str, response: aiohttp.ClientResponse) -> ApiError:
    try:
        status = msgspec.json.decode(await response.read())
    except (aiohttp.ClientError, msgspec.DecodeError):
        status = None
    if not isinstance(status, dict):
        status = {"message": f"HTTP {response.status} {response.reason}"}
    after = response.headers.get("Retry-After", "")
    return _refusal(sent, {**status, "code": response.status}, float(after) if after.isdecimal() else 0.0)


def _refusal(sent: str, status: Mapping[str, Any], retry_after: float = 0.0) -> ApiError:
    message = str(status.get("message") or status.get("reason") or "an error without a message")
    return ApiError(
        sent,
        int(status.get("code") or 0),
        str(status.get("reason") or ""),
        message,
        retry_after,
        continue_token=str((status.get("metadata") or {}).get("continue") or ""),
    )
