"""All texts of a source -> one Configuration, with all its errors at once. "Not knowing is not allowing":

* What makes the chain or its order unknown is fatal: a text that cannot be read, an object of an unknown kind, a
  configuration that has no name, no list of policies, or an unknown field of its own, two configurations of one name,
  two Workers of one name. Such a Configuration must not be served. What makes the snapshots of hooks unknown is fatal
  too.
* An error within one policy is that policy's fault; the policy stays in the chain.
* A Worker with an error is left out, and each policy that names it has a fault that says so.
* A Namespace with an error, or one that is there twice, is left out: its labels are unknown, not empty, and a policy
  whose namespaceSelector needs them fails (``NAMESPACE_UNKNOWN``).

Chain order is Kubernetes': by configuration name, then by place in the list. The order of the texts means nothing; of
two objects of one name, that of a file counts, not that of the cluster.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from gateway.policies import field_errors
from gateway.policies.configuration_document import ChainDocument
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.texts import SourceText
from gateway.policies.errors import Findings, Place, summary
from gateway.policies.fields.policy import Workers
from gateway.policies.hook_snapshots import with_snapshots
from gateway.policies.lint.warnings import warnings
from gateway.policies.metadata import read_namespace
from gateway.policies.model import Configuration, Phase, Policy
from gateway.policies.objects import (
    CONFIGURATION_KINDS,
    NAMESPACE,
    NATIVE_KINDS,
    WORKER,
    Section,
    SourceObject,
    read_objects,
)
from gateway.policies.workers.targets import Worker
from gateway.policies.workers.worker import read_worker

_PHASES = CONFIGURATION_KINDS | NATIVE_KINDS


MAX_POLICIES: Final = 5_000
"""Policies of one phase, and Workers. To switch to a configuration takes 12 µs for each in the loop that serves: 60 ms.
The largest clusters known have some hundred webhooks; a page of metrics has 4 KB for each policy."""


def load(texts: Sequence[SourceText]) -> Configuration:
    """The configuration that these texts make together.

    Never raises: whatever is wrong stands in ``errors``, in the ``fault`` of a policy, and in ``fatal``. Errors come by
    file, object and, within one, in the order in which Kubernetes finds them. No texts at all are a complete
    configuration without policies; texts without any object are not.
    """
    hints: Findings = []
    found = read_objects(sorted(texts, key=lambda text: (text.in_cluster, text.name, text.content)), hints)
    objects, sections = found.known, found.sections
    own = with_snapshots(_workers(objects), found)
    namespaces = _namespaces(objects)
    chains = {phase: _Chain() for phase in Phase}
    for phase, chain in chains.items():
        chain.read(objects, phase, own, hints)
    sections.sort(key=lambda section: (section.file, section.line))
    fatal = frozenset(section.file for section in sections if section.fatal)
    configuration = Configuration(
        workers={**own.sound, **chains[Phase.MUTATING].workers, **chains[Phase.VALIDATING].workers},
        mutating=tuple(chains[Phase.MUTATING].policies),
        validating=tuple(chains[Phase.VALIDATING].policies),
        namespaces=namespaces,
        errors=tuple(error for section in sections for error in (*section.fatal, *section.faults)),
        fatal=bool(fatal),
        fatal_texts=fatal,
    )
    return replace(configuration, warnings=(*hints, *warnings(configuration)))


def _workers(objects: Iterable[SourceObject]) -> Workers:
    sound: dict[str, Worker] = {}
    broken: dict[str, str] = {}
    first: dict[str, Place] = {}
    for item in objects:
        if item.kind != WORKER:
            continue
        document = replace(item.document, findings=[])
        name, worker = read_worker(document, item.directory, in_cluster=item.in_cluster)
        item.section.faults.extend(document.findings)
        if name is None:
            continue
        if name in first:
            _refuse_duplicate(document, name, item.section.fatal, first[name])
            continue
        first[name] = document.place
        if len(first) > MAX_POLICIES:
            _refuse_more(document, "Workers", item.section.fatal)
            break
        if worker is None:
            broken[name] = f"{summary(document.findings)} (in {document.place})"
        else:
            sound[name] = worker
    return Workers(sound=sound, broken=broken)


def _namespaces(objects: Iterable[SourceObject]) -> dict[str, dict[str, str]]:
    known: dict[str, dict[str, str] | None] = {}
    first: dict[str, Place] = {}
    for item in objects:
        if item.kind != NAMESPACE:
            continue
        document = replace(item.document, findings=item.section.faults)
        name, labels = read_namespace(document)
        if name is None:
            continue
        if name in known:
            _refuse_duplicate(document, name, document.findings, first[name])
            labels = None
        known[name] = labels
        first.setdefault(name, document.place)
    return {name: labels for name, labels in known.items() if labels is not None}


class _Chain(Struct, kw_only=True):
    """The policies of one phase in chain order, and the workers that native ones define."""

    policies: list[Policy] = field(default_factory=list)
    workers: dict[str, Worker] = field(default_factory=dict)

    def read(self, objects: Iterable[SourceObject], phase: Phase, workers: Workers, hints: Findings) -> None:
        """A configuration without a name is read only for its errors."""
        named: dict[str, tuple[ChainDocument, Section]] = {}
        nameless: list[tuple[ChainDocument, Section]] = []
        for item in objects:
            if _PHASES.get(item.kind) is not phase:
                continue
            document = ChainDocument(phase=phase, kind=item.kind, version=item.version, document=item.document)
            document = document.decoded()
            name = document.read_name()
            if name is None:
                nameless.append((document, item.section))
            elif name in named:
                _refuse_duplicate(document.document, name, item.section.fatal, named[name][0].document.place)
                nameless.append((document, item.section))
            else:
                named[name] = document, item.section
        for name in sorted(named):
            self._add(*named[name], name, workers, hints)
        for document, section in nameless:
            for _ in _read(document, section, "", workers, hints):
                pass

    def _add(self, document: ChainDocument, section: Section, name: str, workers: Workers, hints: Findings) -> None:
        for policy, worker in _read(document, section, name, workers, hints):
            if len(self.policies) == MAX_POLICIES:
                _refuse_more(document.document, f"{document.phase.value} policies", section.fatal)
                return
            self.policies.append(policy)
            if worker is not None:
                self.workers[worker.name] = worker


def _read(
    document: ChainDocument, section: Section, name: str, workers: Workers, hints: Findings
) -> Iterator[tuple[Policy, Worker | None]]:
    for policy, worker, errors in document.read_policies(name, workers, hints):
        section.faults.extend(errors)
        yield policy, worker


def _refuse_more(document: Field, what: str, findings: Findings) -> None:
    message = f"the configuration may have at most {MAX_POLICIES} {what}, and with this object has more"
    replace(document, findings=findings).refuse(message, "serve the others by another gateway")


def _refuse_duplicate(document: Field, name: str, findings: Findings, first: Place) -> None:
    field = replace(document.get("metadata").get("name"), findings=findings)
    field.refuse(field_errors.duplicate(name), f"the first is in {first}")
