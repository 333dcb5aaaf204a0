"""Inputs that differ from request to request, so that no verdict about one can serve another.

Two requests are the same question if their documents are the same bytes. What stands in this table makes them differ,
whatever else is in them:

* ``managedFields``, by the time of each write. (The names of the managers do repeat: reading only these is fine.)
* ``resourceVersion``, of which each write makes a new one.
* ``uid`` and ``creationTimestamp``, which each object has of its own. (Mutating policies do not see them on CREATE:
  kube-apiserver fills them in between the phases. So a policy there that reads them has nothing to read.)
* Names made by ``generateName``, as the pods of a ReplicaSet have. kube-apiserver makes them between the phases too:
  only a validating policy sees them on CREATE. On UPDATE a name identifies the object, whose changes may well repeat.
* ``userInfo.extra``, which holds the id of the credential (``authentication.kubernetes.io/credential-id``): each token
  of a service account has its own, and a new one is issued every hour. (Other names in it do repeat.)
* The volume ``kube-api-access-xxxxx`` that kube-apiserver's ServiceAccount plugin adds to a new pod, before any webhook
  is called: its name ends in five characters by chance, and each container that mounts it repeats them.

``generation`` is not here: it counts 1, 2, 3 for every object. Nor are ``username``, ``groups`` and ``namespace``: few
of them make most requests.

An input at or below such a place was named for it, and is worth a warning in any case. One above it, or none at all,
was meant for something else; it spoils nothing but a cache.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from gateway.policies import field_errors
from gateway.policies.model import Phase, Policy, Rule
from gateway.quoting import quoted
from gateway.scopes.pointer import Pointer, format_pointer
from gateway.scopes.pointer_set import ANY, PointerSet

_GENERATED: Final = "each object has its own wherever generateName is used, as pods of a ReplicaSet do"
_OWN_VOLUME: Final = "kube-apiserver gives each new pod a volume kube-api-access-… with a name of its own"
_WRITTEN: Final = frozenset({"UPDATE", "DELETE"})


class _Unique(Struct, frozen=True, kw_only=True):
    """``place`` holds what each request has of its own; exactly that is ``part``, below it.

    It is so for these ``operations``, in this ``phase`` (None: both), for all resources or for ``pods`` only.
    """

    place: Pointer
    because: str
    operations: frozenset[str]
    part: Pointer = ()
    phase: Phase | None = None
    pods: bool = False

    def concerns(self, policy: Policy) -> bool:
        """Whether a request that the policy matches can have it."""
        return self.phase in {None, policy.phase} and any(map(self._within, policy.rules))

    def _within(self, rule: Rule) -> bool:
        if self.operations.isdisjoint(rule.operations) and ANY not in rule.operations:
            return False
        return not self.pods or _is_about_pods(rule)

    def is_named_by(self, pointer: Pointer) -> bool:
        """Whether an input lies in the place, and shows what is unique there."""
        # The first two are quick, and nearly always enough: this is evaluated for each place and each policy.
        return (
            len(pointer) >= len(self.place) and self.is_shown_by(pointer) and PointerSet([self.place]).covers(pointer)
        )

    def is_shown_by(self, pointer: Pointer) -> bool:
        """Whether an input shows any of it: one of the two lies above the other; ``*`` may be any name."""
        both = zip(pointer, self.place + self.part, strict=False)
        return all(mine == its or ANY in (mine, its) for mine, its in both)


def _uniques(root: str, operations: frozenset[str]) -> Iterator[_Unique]:
    """What the metadata of an object has that no other request has."""
    for name, because, part in (
        ("managedFields", "it holds the time of each write", (ANY, "time")),
        ("resourceVersion", "each write makes a new one", ()),
        ("uid", "each object has its own", ()),
        ("creationTimestamp", "each object has its own", ()),
    ):
        yield _Unique(place=(root, "metadata", name), because=because, operations=operations, part=part)


def _on_create(place: Pointer, because: str, *, pods: bool = False) -> _Unique:
    phase = None if pods else Phase.VALIDATING
    return _Unique(place=place, because=because, operations=frozenset({"CREATE"}), phase=phase, pods=pods)


_UNIQUE: Final = (
    # On DELETE there is no object, on CONNECT it is the options of the connection; only these two know an old one.
    *_uniques("object", frozenset({"CREATE", "UPDATE"})),
    *_uniques("oldObject", _WRITTEN),
    _Unique(
        place=("userInfo", "extra"),
        because="it holds the id of the client's credential, and each token has its own",
        operations=frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"}),
        part=("authentication.kubernetes.io/credential-id",),
    ),
    _on_create(("name",), _GENERATED),
    _on_create(("object", "metadata", "name"), _GENERATED),
    _on_create(("object", "spec", "volumes", ANY, "name"), _OWN_VOLUME, pods=True),
    _on_create(("object", "spec", "containers", ANY, "volumeMounts", ANY, "name"), _OWN_VOLUME, pods=True),
    _on_create(("object", "spec", "initContainers", ANY, "volumeMounts", ANY, "name"), _OWN_VOLUME, pods=True),
)


def named_uniques(policy: Policy) -> Iterator[str]:
    """Which inputs were named for what never repeats, why, and what to do: one message for each place of the table."""
    for unique in _UNIQUE:
        named = [format_pointer(pointer) for pointer in _shown(policy) if unique.is_named_by(pointer)]
        if named and unique.concerns(policy):
            yield (
                f"{field_errors.few(named)}: hardly ever repeats, since {unique.because}; with it, no verdict serves "
                "another request; remove it, unless that is what the policy judges"
            )


def spoiled_cache(policy: Policy) -> str | None:
    """Why the policy's cache will hardly ever hit, and what to do; None if nothing is known against it.

    Inputs that ``named_uniques`` reports are left out: they have been reported.
    """
    for pointer in _shown(policy):
        for unique in _UNIQUE:
            if unique.is_shown_by(pointer) and not unique.is_named_by(pointer) and unique.concerns(policy):
                place = format_pointer(unique.place)
                what = f"{quoted(format_pointer(pointer))} shows" if pointer else "without inputs the policy is shown"
                return (
                    f"this cache will hardly ever hit: {what} {place} too ({unique.because}); name in inputs what the "
                    "policy reads, and nothing besides"
                )
    return None


def _shown(policy: Policy) -> tuple[Pointer, ...]:
    """The places that the policy is shown; ``()`` alone where it is shown everything."""
    return ((),) if policy.inputs.places is None else policy.inputs.places.pointers


def _is_about_pods(rule: Rule) -> bool:
    resources = {"pods", "pods/*", "*", "*/*"}
    return not {"", ANY}.isdisjoint(rule.api_groups) and not resources.isdisjoint(rule.resources)
