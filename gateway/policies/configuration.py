"""All texts of a source -> one Configuration, with all its mistakes at once. "Not knowing is not allowing":

* Whatever leaves open who is in the chain, or in which order, is fatal: a text that cannot be read, an object of an
  unknown kind, a configuration that has no name, no list of policies, or a field of its own that nobody knows, two
  configurations of one name, two Workers of one name. Such a Configuration must not be served.
* A mistake within one policy is that policy's fault; it stands in the chain all the same.
* A Worker with a mistake is left out, and each policy that names it has a fault which says so.
* A Namespace with a mistake, or one that is there twice, is left out: its labels are unknown, not empty, and a policy
  whose namespaceSelector needs them fails (``NAMESPACE_UNKNOWN``).

Chain order is Kubernetes': by configuration name, then by place in the list. The order of the texts means nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from gateway.policies import wording
from gateway.policies.advice import warnings
from gateway.policies.chain import read_configuration_name, read_policies
from gateway.policies.document import SourceText
from gateway.policies.fields import Field, Findings, summary
from gateway.policies.model import Configuration, ConfigurationError, Phase, Policy, Worker
from gateway.policies.namespace import read_namespace
from gateway.policies.objects import CONFIGURATION_KINDS, NAMESPACE, WORKER, SourceObject, read_objects
from gateway.policies.policy import Workers
from gateway.policies.worker import read_worker


def load(texts: Sequence[SourceText]) -> Configuration:
    """The configuration that these texts make together.

    Never raises: whatever is wrong stands in ``errors`` (sorted by file and line), in the ``fault`` of a policy, and in
    ``fatal``. No texts at all are a complete configuration without policies; texts without any object are not.
    """
    findings = _Findings()
    objects = read_objects(sorted(texts, key=lambda text: (text.name, text.content)), findings.fatal, findings.warnings)
    workers = _workers(objects, findings)
    namespaces = _namespaces(objects, findings)
    mutating = tuple(_chain(objects, Phase.MUTATING, workers, findings))
    validating = tuple(_chain(objects, Phase.VALIDATING, workers, findings))
    configuration = Configuration(
        workers=workers.sound,
        mutating=mutating,
        validating=validating,
        namespaces=namespaces,
        errors=tuple(sorted(findings.fatal + findings.faults, key=_position)),
        fatal=bool(findings.fatal),
    )
    return replace(configuration, warnings=(*findings.warnings, *warnings(configuration)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Findings:
    """Mistakes that leave the chain unknown, mistakes that do not, and warnings."""

    fatal: Findings = field(default_factory=list)
    faults: Findings = field(default_factory=list)
    warnings: Findings = field(default_factory=list)


def _position(error: ConfigurationError) -> tuple[str, int]:
    return error.place.file, error.place.line


def _workers(objects: Sequence[SourceObject], findings: _Findings) -> Workers:
    sound: dict[str, Worker] = {}
    broken: dict[str, str] = {}
    for item in objects:
        if item.kind != WORKER:
            continue
        document = replace(item.document, findings=[])
        name, worker = read_worker(document, item.directory)
        findings.faults.extend(document.findings)
        if name is None:
            continue
        if name in sound or name in broken:
            _refuse_duplicate(document, name, findings.fatal)
        elif worker is None:
            broken[name] = f"{summary(document.findings)} (in {document.place})"
        else:
            sound[name] = worker
    return Workers(sound=sound, broken=broken)


def _namespaces(objects: Sequence[SourceObject], findings: _Findings) -> dict[str, dict[str, str]]:
    known: dict[str, dict[str, str] | None] = {}
    for item in objects:
        if item.kind != NAMESPACE:
            continue
        document = replace(item.document, findings=findings.faults)
        name, labels = read_namespace(document)
        if name is None:
            continue
        if name in known:
            _refuse_duplicate(document, name, findings.faults)
            labels = None
        known[name] = labels
    return {name: labels for name, labels in known.items() if labels is not None}


def _chain(objects: Sequence[SourceObject], phase: Phase, workers: Workers, findings: _Findings) -> Iterator[Policy]:
    """The policies of one phase in chain order. A configuration without a name is read for its mistakes only."""
    configurations: dict[str, Field] = {}
    nameless: list[Field] = []
    for item in objects:
        if CONFIGURATION_KINDS.get(item.kind) is not phase:
            continue
        document = replace(item.document, findings=findings.fatal)
        name = read_configuration_name(document)
        if name is None:
            nameless.append(document)
        elif name in configurations:
            _refuse_duplicate(document, name, findings.fatal)
            nameless.append(document)
        else:
            configurations[name] = document
    for name in sorted(configurations):
        yield from _policies(configurations[name], phase, name, workers, findings)
    for document in nameless:
        for _ in _policies(document, phase, "", workers, findings):
            pass


def _policies(document: Field, phase: Phase, name: str, workers: Workers, findings: _Findings) -> Iterator[Policy]:
    for policy, entry in read_policies(document.get("policies"), phase, name, workers):
        findings.faults.extend(entry.findings)
        yield policy


def _refuse_duplicate(document: Field, name: str, findings: Findings) -> None:
    replace(document.get("metadata").get("name"), findings=findings).refuse(wording.duplicate(name))
