"""The configuration of a hook, as its ``--config`` prints it. Values only."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from gateway.policies.model import Phase, Selector


class FieldRequirement(Struct, frozen=True, kw_only=True):
    """One expression of a fieldSelector: the value at a path such as ``metadata.name`` equals this one, or does not."""

    field: str
    value: str
    equals: bool = True


class ObjectBinding(Struct, frozen=True, kw_only=True):
    """One element of ``kubernetes``: selects the objects of a snapshot, and what is included of each.

    ``api_version`` may be "" (any). ``kind`` is a kind or its plural, in any letter case. Empty ``names`` and
    ``namespaces`` select all; so do ``labels`` and ``namespace_labels`` of None. ``jq_filter`` may be "".
    ``keeps_objects``: the snapshot contains the objects themselves, not only the results of the filter.
    """

    name: str
    kind: str
    api_version: str = ""
    names: tuple[str, ...] = ()
    labels: Selector | None = None
    fields: tuple[FieldRequirement, ...] = ()
    namespaces: tuple[str, ...] = ()
    namespace_labels: Selector | None = None
    jq_filter: str = ""
    group: str = ""
    keeps_objects: bool = True


class AdmissionBinding(Struct, frozen=True, kw_only=True):
    """One element of ``kubernetesValidating`` or ``kubernetesMutating``.

    ``snapshots_from`` names bindings of ``kubernetes``: those it includes, and all of its group; None: it includes no
    snapshots. ``webhook`` has the fields of a webhook of admissionregistration.k8s.io/v1 with which it is registered,
    as JSON, with shell-operator's defaults; fields that it does not set are absent.
    """

    name: str
    phase: Phase
    webhook: Mapping[str, Any]
    group: str = ""
    snapshots_from: tuple[str, ...] | None = None


class HookConfiguration(Struct, frozen=True, kw_only=True):
    """The configuration of one hook. ``version`` is its configVersion; v0 has no admission bindings."""

    version: str
    objects: tuple[ObjectBinding, ...] = ()
    mutating: tuple[AdmissionBinding, ...] = ()
    validating: tuple[AdmissionBinding, ...] = ()
    conversions: tuple[str, ...] = ()
    """The names of the bindings of ``kubernetesCustomResourceConversion``."""

    def bindings(self, phase: Phase) -> tuple[AdmissionBinding, ...]:
        """The admission bindings of one phase."""
        return self.mutating if phase is Phase.MUTATING else self.validating
