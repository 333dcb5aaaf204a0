"""The file of ``--asks``: what one's own policies are asked, as YAML or JSON.

A list; each entry is one ask::

    - policy: required-label
      phase: validating
      settings: {key: team}
      request: {operation: CREATE, object: {metadata: {labels: {}}}}

``request`` is an AdmissionRequest, as far as it matters; its ``uid`` is left out, as the gateway does.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from worker_conformance.findings import StartError
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.questions import PHASES, OrdinaryAsk, text


class Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One entry of the file.

    Attributes:
        policy: the policy's name, as it is described.
        phase: ``mutating`` or ``validating``.
        request: an AdmissionRequest.
        settings: the policy's; none: ``{}``.
    """

    policy: str
    phase: Literal["mutating", "validating"]
    request: dict[str, Any]
    settings: dict[str, Any] = {}


class _Loader(yaml.SafeLoader):
    """YAML as JSON knows it: a date is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path) -> tuple[OrdinaryAsk, ...]:
    """The asks of a file.

    Raises:
        StartError: it cannot be read, or is no list of asks; with the place of the first mistake.
    """
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - it is a SafeLoader
        entries = msgspec.convert(found, list[Entry])
        return tuple(_ask(path, place, entry) for place, entry in enumerate(entries))
    except (OSError, UnicodeDecodeError) as error:
        message = f"--asks {path}: {getattr(error, 'strerror', None) or error}"
    except yaml.YAMLError as error:
        message = f"--asks {path}: neither YAML nor JSON: {' '.join(str(error).split())}"
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        message = f"--asks {path}: must be a list of {{policy, phase, settings, request}}: {error}"
    raise StartError(message)


def check_held(asks: tuple[OrdinaryAsk, ...], description: worker_pb2.DescribeResponse) -> None:
    """See that the worker holds what the file asks.

    Raises:
        StartError: it does not describe a policy, or not for the phase.
    """
    held = {policy.name: set(policy.phases) for policy in description.policies}
    for ask in asks:
        if ask.phase not in held.get(ask.policy, set()):
            names = ", ".join(sorted(held)) or "none"
            phase = worker_pb2.Phase.Name(ask.phase)
            message = f"--asks: {ask.label}: the worker describes no policy {ask.policy!r} for {phase}; it has: {names}"
            raise StartError(message)


def _ask(path: Path, place: int, entry: Entry) -> OrdinaryAsk:
    return OrdinaryAsk(
        label=f"{path.name}[{place}] {entry.policy}",
        policy=entry.policy,
        phase=PHASES[entry.phase],
        settings=text(entry.settings),
        document=msgspec.json.decode(text({key: value for key, value in entry.request.items() if key != "uid"})),
        chosen=True,
    )
