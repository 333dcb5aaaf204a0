"""Assigns the objects among the documents to the workers of hooks whose snapshots contain them.

* An object, also a Namespace or a native configuration, is assigned to each worker of a hook whose ``snapshotsOf``
  names its kind. An object that no hook needs and that has no other meaning is rejected, so that a document without
  effect does not go unnoticed.
* An object has a name and is unique. Anything else is fatal, because it would be unclear what hooks judge by.
* Objects are kept in a canonical form (sorted keys, no whitespace) and sorted, so that the same objects are the same
  bytes, whatever their files and their order are.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.errors import Place
from gateway.policies.fields.policy import Workers
from gateway.policies.fields.settings import canonical
from gateway.policies.objects import CONFIGURATION_KINDS, WORKER, Objects, SourceObject, refuse_unknown
from gateway.policies.workers.hook_target import is_named
from gateway.policies.workers.targets import HookTarget, Worker

MAX_SNAPSHOT_BYTES: Final = 16 * 1024 * 1024
"""Of all objects of one hook. Its snapshots are written into a file for each call: 16 MiB is the limit of a file of
policies, and 5,000 Pods of 3 KiB."""

_OURS: Final = frozenset({WORKER, *CONFIGURATION_KINDS})


class _SnapshotWorker(Struct, kw_only=True):
    """A worker of a hook with snapshots, and the objects that were assigned to it."""

    worker: Worker
    hook: HookTarget
    objects: list[bytes] = field(default_factory=list)
    size: int = 0

    def needs(self, item: SourceObject) -> bool:
        return is_named(self.hook.snapshots_of, item.api_version, item.kind)

    def add(self, content: bytes, document: Field) -> None:
        self.size += len(content)
        if self.size <= MAX_SNAPSHOT_BYTES:
            self.objects.append(content)
        elif self.size - len(content) <= MAX_SNAPSHOT_BYTES:
            document.refuse(
                f"Too large: with it, the objects for the snapshots of worker {field_errors.quote(self.worker.name)} "
                f"have more than {MAX_SNAPSHOT_BYTES} bytes; leave out what the hook does not need"
            )

    def complete(self) -> Worker:
        return replace(self.worker, hook=replace(self.hook, objects=tuple(sorted(self.objects))))


def with_snapshots(workers: Workers, found: Objects) -> Workers:
    """The workers, those of hooks with the objects of their snapshots; errors in these objects are reported.

    Objects of unknown kinds that no hook needs are rejected.
    """
    needing = {
        name: _SnapshotWorker(worker=worker, hook=worker.hook)
        for name, worker in workers.sound.items()
        if worker.hook is not None and worker.hook.snapshots_of
    }
    seen: dict[tuple[str, ...], Place] = {}
    for item in found.known:
        if item.kind not in _OURS:
            _assign(item, needing.values(), seen)
    for item in found.unknown:
        if not _assign(item, needing.values(), seen):
            refuse_unknown(item)
    return replace(workers, sound={**workers.sound, **{name: each.complete() for name, each in needing.items()}})


def _assign(item: SourceObject, workers: Iterable[_SnapshotWorker], seen: dict[tuple[str, ...], Place]) -> bool:
    """Assign the object to each worker that needs it. Whether there is one."""
    needing = [worker for worker in workers if worker.needs(item)]
    if not needing:
        return False
    document = replace(item.document, findings=item.section.fatal)
    name, namespace = document.get("metadata").get("name"), document.get("metadata").get("namespace").raw_text or ""
    before = len(document.findings)
    content = canonical(document)
    if name.text("") == "":
        name.refuse(field_errors.required())
    identity = (item.api_version, item.kind, namespace, name.raw_text or "")
    if len(document.findings) == before and identity in seen:
        name.refuse(
            field_errors.duplicate("/".join(filter(None, (namespace, name.raw_text)))), f"the first is {seen[identity]}"
        )
    seen.setdefault(identity, document.place)
    if len(document.findings) == before:
        for worker in needing:
            worker.add(content, document)
    return True
