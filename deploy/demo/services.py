"""The services of docker-compose.yml, as far as processes need them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Service:
    """One service: the words that its container runs, with what, and where it listens.

    ``mounts``: paths in the container and what is there, a path from the repository's root or the name of a volume.
    ``runs_once``: others wait until it has ended.
    """

    name: str
    image: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str]
    ports: tuple[int, ...]
    mounts: dict[str, str]
    tmpfs: tuple[str, ...]
    runs_once: bool


def read(path: Path = ROOT / "docker-compose.yml") -> list[Service]:
    """The services of the file, those that run once first."""
    document = yaml.safe_load(path.read_text())
    found = [_service(name, content) for name, content in document["services"].items()]
    return sorted(found, key=lambda service: not service.runs_once)


def _service(name: str, content: dict[str, Any]) -> Service:
    published = [each.rpartition(":")[2] for each in content.get("ports", ())]
    return Service(
        name=name,
        image=content["image"].partition(":")[0],
        entrypoint=tuple(content.get("entrypoint", ())),
        command=tuple(content.get("command", ())),
        environment=content.get("environment", {}),
        ports=tuple(sorted({int(port) for port in (*content.get("expose", ()), *published)})),
        mounts={target: source for source, target, *_ in (each.split(":") for each in content.get("volumes", ()))},
        tmpfs=tuple(content.get("tmpfs", ())),
        runs_once=content.get("restart") == "no",
    )
