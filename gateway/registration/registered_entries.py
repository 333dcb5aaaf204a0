"""The policies of the entries that are registered, in an annotation of the object that registers them.

A path names an entry and its revision, but not its policies. A gateway that was started with a later configuration, or
that has an earlier one, reads them here, so that it serves the registered paths as if it had known that configuration
(``former_entries``). The annotation is JSON, compressed and in base64, since annotations have a limit:

    {"policies": [QUALIFIED_NAME, ...],              of all entries of the phase, in chain order
     "entries": {"ENTRY/REVISION": [INDEX, ...]}}    indices in ``policies``
"""

import base64
import binascii
import zlib
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec
from msgspec import Struct

from gateway.registration.entries import Entry

ANNOTATION: Final = "admission-gateway.dev/registered-entries"

MAX_ANNOTATION_BYTES: Final = 65_536
"""A quarter of Kubernetes' 256 KiB for all annotations of an object: `kubectl apply` keeps the object once more in one.
They hold 2,000 isolated policies, which are the most that one object can register, or 8,000 that share entries. Without
the annotation, a gateway that restarts knows the registered paths by the entries' names only."""

_MAX_JSON_BYTES: Final = 4 * 1024 * 1024
"""What is decompressed at most: 60 times as much, where names compress to a tenth."""

_LEVEL: Final = 9


class RegisteredPolicy(Struct, frozen=True, kw_only=True):
    """A policy of a registered entry: its ``CONFIGURATION/NAME`` or ``CONFIGURATION/NAME[INDEX]``."""

    qualified_name: str

    @property
    def name(self) -> str:
        """Its name without the configuration."""
        return self.qualified_name.partition("/")[2].partition("[")[0]


class RegisteredEntries(Struct, frozen=True, kw_only=True):
    """The entries of one phase: their policies in chain order; by entry and revision the qualified names of each."""

    policies: tuple[RegisteredPolicy, ...] = ()
    entries: Mapping[tuple[str, str], tuple[str, ...]] = {}


class _Content(Struct, frozen=True, kw_only=True):
    policies: tuple[str, ...]
    entries: dict[str, tuple[int, ...]]


def registered_entries(entries: Iterable[Entry]) -> RegisteredEntries:
    """These entries, as they are registered."""
    listed = tuple(entries)
    policies = {policy.qualified_name: policy for entry in listed for policy in entry.policies}
    chain = sorted(policies.values(), key=lambda policy: (policy.configuration, policy.index))
    return RegisteredEntries(
        policies=tuple(RegisteredPolicy(qualified_name=policy.qualified_name) for policy in chain),
        entries={
            (entry.name, entry.revision): tuple(policy.qualified_name for policy in entry.policies) for entry in listed
        },
    )


def with_kept(desired: RegisteredEntries, live: RegisteredEntries, registered: AbstractSet[str]) -> RegisteredEntries:
    """The desired entries, and the live ones whose webhooks stay registered: those of the other names."""
    stays = registered - {name for name, _ in desired.entries}
    entries = {key: members for key, members in live.entries.items() if key[0] in stays} | dict(desired.entries)
    used = {name for members in entries.values() for name in members}
    policies = dict.fromkeys((*desired.policies, *live.policies))
    return RegisteredEntries(
        policies=tuple(policy for policy in policies if policy.qualified_name in used), entries=entries
    )


def encode(registered: RegisteredEntries) -> str:
    """The value of the annotation; it may be longer than MAX_ANNOTATION_BYTES."""
    places = {policy.qualified_name: index for index, policy in enumerate(registered.policies)}
    content = _Content(
        policies=tuple(places),
        entries={
            f"{name}/{revision}": tuple(places[each] for each in members)
            for (name, revision), members in registered.entries.items()
        },
    )
    return base64.b64encode(zlib.compress(msgspec.json.encode(content), _LEVEL)).decode()


def decode(value: str) -> RegisteredEntries:
    """What ``encode`` was given.

    Raises:
        ValueError: the value is no such annotation.
    """
    try:
        content = msgspec.json.decode(_decompressed(base64.b64decode(value, validate=True)), type=_Content)
        entries = {
            (name, revision): tuple(content.policies[index] for index in members)
            for key, members in content.entries.items()
            for name, _, revision in [key.partition("/")]
        }
    except (binascii.Error, zlib.error, msgspec.DecodeError, IndexError) as error:
        raise ValueError(f"these are no registered entries: {error}") from error
    policies = tuple(RegisteredPolicy(qualified_name=each) for each in content.policies)
    return RegisteredEntries(policies=policies, entries=entries)


def _decompressed(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    text = decompressor.decompress(data, _MAX_JSON_BYTES)
    if not decompressor.eof:
        raise zlib.error(f"it is cut off, or its JSON has more than {_MAX_JSON_BYTES} bytes")
    return text
