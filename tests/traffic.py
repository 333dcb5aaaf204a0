"""The recorded traffic of a real kube-apiserver v1.36.3, as it went over the wire."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "recordings"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One recorded POST: file name without suffix, phase, target with ?timeout=, headers in order, body."""

    name: str
    phase: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@cache
def recordings() -> tuple[Recording, ...]:
    """All of them, in order of name."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.json")))


def recording(name: str) -> Recording:
    """One by name, such as "pod-create.0m"."""
    return next(each for each in recordings() if each.name == name)


def _read(path: Path) -> Recording:
    content = json.loads(path.read_text())
    return Recording(
        name=path.stem,
        phase=content["phase"],
        target=content["target"],
        headers=tuple((name, value) for name, value in content["headers"]),
        body=content["body"].encode(),
    )
