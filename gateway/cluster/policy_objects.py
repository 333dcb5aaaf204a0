"""The gateway's kinds in the cluster: their objects, watched, as texts that are loaded like files.

An object's text holds what its author wrote: no status and no metadata but its name. So what the API server and the
gateways write into it changes no text, and is no change of the configuration.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from gateway.cluster.client import KubernetesClient, collection_path, object_path
from gateway.cluster.errors import ApiError
from gateway.cluster.reflector import Reflector
from gateway.policies.decoding.texts import SourceText
from gateway.policies.objects import CONFIGURATION_KINDS, GROUP, VERSION, WORKER

KINDS: Final = (WORKER, *CONFIGURATION_KINDS)

_NOT_INSTALLED: Final = "install the CustomResourceDefinitions: kubectl apply --server-side -f deploy/chart/crds"
_NOT_PERMITTED: Final = "grant it to the gateway's service account: docs/operate.md has the rules"


class PolicyObject(Struct, frozen=True, kw_only=True):
    """One object. ``text`` is named ``KIND/NAME``; ``status`` is what is stored of it, if anything is."""

    kind: str
    name: str
    text: SourceText
    generation: int
    status: Any = None

    @property
    def path(self) -> str:
        """Its path in the API."""
        return object_path(GROUP, VERSION, _plural(self.kind), self.name)


class PolicyObjects:
    """Watches all objects of the gateway's kinds.

    Args:
        client: connected before ``run``.
        changed: called when an object was added, changed or removed, and once all objects are known.
    """

    def __init__(self, client: KubernetesClient, changed: Callable[[], object]) -> None:
        self._changed = changed
        self._reflectors = {
            kind: Reflector(
                client,
                collection_path(GROUP, VERSION, _plural(kind)),
                partial(_read, kind),
                lambda _name, _object: changed(),
            )
            for kind in KINDS
        }

    @property
    def known(self) -> bool:
        """Whether each kind has been listed once."""
        return all(reflector.synced.is_set() for reflector in self._reflectors.values())

    @property
    def problem(self) -> str | None:
        """Why the objects that are known may be out of date, and what to do; None: all watches are open."""
        for reflector in self._reflectors.values():
            if reflector.problem is not None:
                return _with_advice(reflector.problem, reflector.error)
        return None

    def all(self) -> Mapping[str, PolicyObject]:
        """The objects that are known, by the names of their texts."""
        return {each.text.name: each for kind in KINDS for _, each in sorted(self._reflectors[kind].items.items())}

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors.values():
                tasks.create_task(reflector.run())
            for reflector in self._reflectors.values():
                await reflector.synced.wait()
            self._changed()


async def read_policy_objects(client: KubernetesClient) -> tuple[SourceText, ...]:
    """The texts of all objects as they are now, for a command that does not watch them. Raises ApiError."""
    texts: list[SourceText] = []
    for kind in KINDS:
        try:
            items, _ = await client.list_all(collection_path(GROUP, VERSION, _plural(kind)))
        except ApiError as error:
            problem = _with_advice(error.message, error)
            raise ApiError(f"GET {_plural(kind)}", error.code, error.reason, problem) from None
        texts += [each.text for each in sorted((_read(kind, item) for item in items), key=lambda each: each.name)]
    return tuple(texts)


def _read(kind: str, obj: Any) -> PolicyObject:
    metadata = obj["metadata"]
    rest = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind", "metadata", "status"}}
    content = {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": metadata["name"]}, **rest}
    return PolicyObject(
        kind=kind,
        name=metadata["name"],
        text=SourceText(name=f"{kind}/{metadata['name']}", content=msgspec.json.encode(content), in_cluster=True),
        generation=metadata.get("generation", 0),
        status=obj.get("status"),
    )


def _plural(kind: str) -> str:
    return f"{kind.lower()}s"


def _with_advice(problem: str, error: ApiError | None) -> str:
    advice = {404: _NOT_INSTALLED, 403: _NOT_PERMITTED}.get(0 if error is None else error.code)
    return problem if advice is None else f"{problem}; {advice}"
