"""Policy calls: how the kit builds them, and the ordinary calls.

Ordinary calls come from a file (``--calls``) and from the probe policies. Each other policy is called with the settings
``{}`` and a small Pod.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from worker_conformance.proto.admission.worker.v1 import worker_pb2

MUTATING, VALIDATING = worker_pb2.PHASE_MUTATING, worker_pb2.PHASE_VALIDATING

PHASES: Mapping[str, worker_pb2.Phase] = {"mutating": MUTATING, "validating": VALIDATING}

POD: Mapping[str, Any] = {
    "kind": {"group": "", "version": "v1", "kind": "Pod"},
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
    "requestResource": {"group": "", "version": "v1", "resource": "pods"},
    "name": "web-0",
    "namespace": "shop",
    "operation": "CREATE",
    "userInfo": {"username": "jane@example.com", "groups": ["system:authenticated"]},
    "object": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]},
    },
    "oldObject": None,
    "dryRun": False,
    "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
}
"""An AdmissionRequest without its uid: the document of a policy without inputs."""


def text(value: Any) -> bytes:
    """JSON text of a value; bytes stay as they are."""
    return value if isinstance(value, bytes) else msgspec.json.encode(value)


def policy_call(
    policy: str,
    *,
    phase: worker_pb2.Phase = VALIDATING,
    settings: Any = b"{}",
    document: Any = POD,
    index: int | None = None,
    timeout: float | None = None,
    **fields: Any,
) -> worker_pb2.PolicyCall:
    """A ``PolicyCall``.

    Args:
        policy: the policy's name.
        phase: the phase of the call.
        settings: as bytes, or as a value.
        document: likewise; None: no document.
        index: the document's index in its message, instead of the document.
        timeout: in seconds; None: unset.
        **fields: other fields of the message.
    """
    call = worker_pb2.PolicyCall(policy=policy, phase=phase, settings=text(settings), **fields)
    if index is not None:
        call.document_index = index
    elif document is not None:
        call.document = text(document)
    if timeout is not None:
        call.timeout.FromNanoseconds(int(timeout * 1e9))
    return call


def probe(name: str, settings: Any = b"{}", document: Any = POD, **fields: Any) -> worker_pb2.PolicyCall:
    """A call of the probe policy ``probe-NAME``, in its phase."""
    phase = MUTATING if name in {"answer", "label"} else VALIDATING
    return policy_call(f"probe-{name}", phase=phase, settings=settings, document=document, **fields)


def sleep(seconds: float, token: str = "", **fields: Any) -> worker_pb2.PolicyCall:
    """A call that probe-sleep answers after this time."""
    return probe("sleep", {"seconds": seconds, "token": token}, {}, **fields)


def echo(document: Any, **fields: Any) -> worker_pb2.PolicyCall:
    """A call that probe-echo answers with its document."""
    return probe("echo", document=document, **fields)


@dataclass(frozen=True, kw_only=True, slots=True)
class OrdinaryCall:
    """A call whose verdict is a function of it.

    Args:
        label: its name in a report.
        policy: the policy's name.
        phase: the phase of the call.
        settings: JSON text.
        document: the whole document, whatever the policy claims.
        chosen: it comes from ``--calls``.
    """

    label: str
    policy: str
    phase: worker_pb2.Phase
    settings: bytes
    document: Mapping[str, Any]
    chosen: bool = False

    def call(self, document: Mapping[str, Any] | None = None) -> worker_pb2.PolicyCall:
        """The message, with this or another document."""
        chosen = self.document if document is None else document
        return policy_call(self.policy, phase=self.phase, settings=self.settings, document=dict(chosen))


def first_phase(policy: worker_pb2.PolicyDescription) -> worker_pb2.Phase:
    """The first phase of a policy; any for a policy without phases."""
    return policy.phases[0] if policy.phases else VALIDATING


ARMS = ("allow", "nothing", "deny", "deny-plainly", "patch", "merge", "mutated", "fail")

_OF_PROBES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "probe-answer": tuple({"arm": arm} for arm in ARMS),
    "probe-label": ({},),
    "probe-settings": ({"odd": 3},),
    "probe-version": ({},),
    "probe-misuse": ({},),
    "probe-echo": ({},),
}
"""Settings with which the verdict of a probe policy is a function of its document."""


def of_probes(description: worker_pb2.DescribeResponse) -> Iterator[OrdinaryCall]:
    """Calls of the probe policies that the worker has."""
    for policy in description.policies:
        for settings in _OF_PROBES.get(policy.name, ()):
            label = " ".join([policy.name, *map(str, settings.values())])
            yield _made(label, policy.name, first_phase(policy), settings)


def of_others(description: worker_pb2.DescribeResponse, called: set[str]) -> Iterator[OrdinaryCall]:
    """A call in each phase of each policy that is not in ``called`` and is not a probe policy."""
    for policy in description.policies:
        if policy.name not in called and not policy.name.startswith("probe-"):
            for phase in policy.phases:
                yield _made(f"{policy.name} with {{}} and a Pod", policy.name, phase, {})


def _made(label: str, policy: str, phase: worker_pb2.Phase, settings: Mapping[str, Any]) -> OrdinaryCall:
    return OrdinaryCall(label=label, policy=policy, phase=phase, settings=text(dict(settings)), document=POD)
