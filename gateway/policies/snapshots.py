"""The objects that the snapshots of hooks are made of: documents beside the policies.

* An object belongs to each hook worker whose ``snapshotsOf`` names its kind, a Namespace or a native configuration as
  well as any other. One that no hook asks for, and that is nothing else to us, is refused: nobody may believe it to be
  in force.
* It has a name, and is there once. Otherwise nobody knows what hooks are to judge by, which is fatal.
* Objects are kept in a canonical form (sorted keys, no blanks) and sorted, so that the same objects are the same bytes,
  in whichever files and in whichever order they stand.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from gateway.policies import wording
from gateway.policies.fields import Field
from gateway.policies.hook_target import is_named
from gateway.policies.model import HookTarget, Place, Worker
from gateway.policies.objects import CONFIGURATION_KINDS, WORKER, Objects, SourceObject, refuse_stranger
from gateway.policies.policy import Workers
from gateway.policies.settings import canonical

MAX_SNAPSHOT_BYTES: Final = 16 * 1024 * 1024
"""Of all objects of one hook. Whatever the hook asks for is written into a file each time that it runs: 16 MiB are as
much as one file of policies may have, and 5,000 Pods of 3 KiB."""

_OURS: Final = frozenset({WORKER, *CONFIGURATION_KINDS})


class _Asker(Struct, kw_only=True):
    """A hook worker with snapshots, and the objects that have been found for it."""

    worker: Worker
    hook: HookTarget
    objects: list[bytes] = field(default_factory=list)
    size: int = 0

    def wants(self, item: SourceObject) -> bool:
        return is_named(self.hook.snapshots_of, item.api_version, item.kind)

    def take(self, content: bytes, document: Field) -> None:
        self.size += len(content)
        if self.size <= MAX_SNAPSHOT_BYTES:
            self.objects.append(content)
        elif self.size - len(content) <= MAX_SNAPSHOT_BYTES:
            document.refuse(
                f"Too large: with it, the objects for the snapshots of worker {wording.quote(self.worker.name)} have "
                f"more than {MAX_SNAPSHOT_BYTES} bytes; leave out what the hook does not need"
            )

    def supplied(self) -> Worker:
        return replace(self.worker, hook=replace(self.hook, objects=tuple(sorted(self.objects))))


def with_snapshots(workers: Workers, found: Objects) -> Workers:
    """The workers, the hooks among them with the objects of their snapshots; what is wrong with those is reported.

    All other strangers are refused.
    """
    askers = {
        name: _Asker(worker=worker, hook=worker.hook)
        for name, worker in workers.sound.items()
        if worker.hook is not None and worker.hook.snapshots_of
    }
    seen: dict[tuple[str, ...], Place] = {}
    for item in found.known:
        if item.kind not in _OURS:
            _hand_out(item, askers.values(), seen)
    for item in found.strangers:
        if not _hand_out(item, askers.values(), seen):
            refuse_stranger(item)
    return replace(workers, sound={**workers.sound, **{name: asker.supplied() for name, asker in askers.items()}})


def _hand_out(item: SourceObject, askers: Iterable[_Asker], seen: dict[tuple[str, ...], Place]) -> bool:
    """Give the object to those that ask for it; whether somebody does."""
    wanting = [asker for asker in askers if asker.wants(item)]
    if not wanting:
        return False
    document = replace(item.document, findings=item.section.fatal)
    name, namespace = document.get("metadata").get("name"), document.get("metadata").get("namespace").said or ""
    before = len(document.findings)
    content = canonical(document)
    if name.text("") == "":
        name.refuse(wording.required())
    identity = (item.api_version, item.kind, namespace, name.said or "")
    if len(document.findings) == before and identity in seen:
        name.refuse(wording.duplicate("/".join(filter(None, (namespace, name.said)))), f"the first is {seen[identity]}")
    seen.setdefault(identity, document.place)
    if len(document.findings) == before:
        for asker in wanting:
            asker.take(content, document)
    return True
