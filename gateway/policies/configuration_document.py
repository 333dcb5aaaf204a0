"""A configuration document, ours or a native one: a name, and policies in their order.

An error in the document itself makes the chain unknown, and so refuses the whole source; an error within one
entry is that policy's alone. Hence two lists of findings: the document's, and one for each entry.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.gotypes.places import Place
from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.native_types import CONFIGURATIONS
from gateway.policies.decoding.strict import decode
from gateway.policies.errors import Findings
from gateway.policies.fields.native import read_native
from gateway.policies.fields.policy import OwnTarget, Workers
from gateway.policies.fields.versions import NATIVE, OWN
from gateway.policies.fields.webhook import read_webhook, slots
from gateway.policies.metadata import read_name
from gateway.policies.model import Phase, Policy
from gateway.policies.workers.targets import Worker

_DOCUMENT: Final = ("apiVersion", "kind", "metadata", "policies", "status")
"""``status`` is what the gateways wrote, as `kubectl get -o yaml` prints it; it is not looked at."""


class ChainDocument(Struct, frozen=True, kw_only=True):
    """A configuration document: its phase, its kind, its native version ("" if it is ours), and what stands in it."""

    phase: Phase
    kind: str
    version: str
    document: Field

    def decoded(self) -> "ChainDocument":
        """The same, as its Go type takes it; ours stay as they are."""
        if not self.version:
            return self
        return replace(self, document=decode(self.document, CONFIGURATIONS[self.phase, self.version], Place()))

    def read_name(self) -> str | None:
        """The configuration's name, which decides its place in the chain; errors around it are reported."""
        if not self.version:
            self.document.mapping(_DOCUMENT)
        return read_name(self.document)

    def read_policies(
        self, name: str, workers: Workers, warnings: Findings
    ) -> Iterator[tuple[Policy, Worker | None, Findings]]:
        """The policies in their order, each with the worker that it defines and the errors in it.

        What is no list of policies at all is reported to the document's findings, and gives none.
        """
        if self.version:
            yield from self._native(name, warnings)
            return
        entries = self._entries("policies")
        for slot, entry in zip(slots(entries, self.phase, name, unique=True, word="policies"), entries, strict=True):
            target = OwnTarget(phase=self.phase, workers=workers, warnings=warnings)
            policy = read_webhook(entry, slot, OWN, target, warnings)
            yield policy, None, [*entry.findings, *target.asides]

    def _native(self, name: str, warnings: Findings) -> Iterator[tuple[Policy, Worker | None, Findings]]:
        entries = self._entries("webhooks")
        unique = NATIVE[self.version].has_unique_names
        for slot, entry in zip(slots(entries, self.phase, name, unique=unique, word="webhooks"), entries, strict=True):
            policy, worker = read_native(entry, slot, self.kind, self.version, warnings)
            yield policy, worker, entry.findings

    def _entries(self, member: str) -> list[Field]:
        """The elements of the list, each with findings of its own."""
        field = self.document.get(member)
        if field.absent and not self.version:
            field.refuse(field_errors.required("must be a list; write [] if there are no policies"))
        return [replace(item, findings=[]) for item in field.items() or []]
