"""The packages that the locks pin, of all languages.

===================  =======================================================================================
file                 what it pins
===================  =======================================================================================
requirements/*.txt   all Python packages, with hashes; what is not in run.txt is not shipped
package-lock.json    all packages of npm, with hashes; those with "dev" are not shipped
go.mod, go.sum       all modules that a build needs, with hashes in go.sum
pom.xml              direct dependencies and plugins; Maven has no lock, only the hashes in workers/java/.mvn
Cargo.toml           direct dependencies; a library has no Cargo.lock, so what these need is not known here
NOTICE               packages of npm whose files are in the tree, unchanged
===================  =======================================================================================

Container images are in the Dockerfiles and docker-compose.yml.
"""

import json
import re
import tomllib
import xml.etree.ElementTree as ET  # the project's own files
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).parents[2]

REQUIREMENTS: Final = (
    "requirements/run.txt",
    "requirements/dev.txt",
    "requirements/fuzz.txt",
    "requirements/audit.txt",
)

NPM: Final = ("workers/node/package-lock.json", "tests/browser/package-lock.json")

GO: Final = (
    "workers/go/go.mod",
    "workers/go/examples/exporting/go.mod",
    "workers/go/examples/typed/go.mod",
    "deploy/demo/collector/go.mod",
    "deploy/demo/prometheus/go.mod",
    "tests/deploy/compose/go.mod",
    "tests/deploy/helm/go.mod",
    "tests/e2e/apiserver/go.mod",
    "tests/migrate/controller-runtime/go.mod",
    "tests/webhooks/agnhost/go.mod",
)

MAVEN: Final = (
    "workers/java/pom.xml",
    "workers/java/sdk/pom.xml",
    "workers/java/samples/pom.xml",
    "workers/java/exporting/pom.xml",
)

CARGO: Final = ("workers/rust/Cargo.toml", "workers/rust/samples/Cargo.toml", "workers/rust/generator/Cargo.toml")

VENDORED: Final = ("NOTICE",)

LOCKS: Final = (*REQUIREMENTS, *NPM, *GO, *MAVEN, *CARGO, *VENDORED)

SHIPPED: Final = frozenset(
    {"requirements/run.txt", "workers/node/package-lock.json", "workers/go/go.mod", *MAVEN[:3], *CARGO[:2], *VENDORED}
)
"""The locks of what runs in an image of the gateway or of a sample worker."""

OURS: Final = "dev.admission-gateway"

_REQUIREMENT: Final = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", re.MULTILINE)
_REQUIRE: Final = re.compile(r"^(?:require )?\s*(\S+) (v\S+)(?: // indirect)?$", re.MULTILINE)
_REPLACED: Final = re.compile(r"^(?:replace )?\s*(\S+)(?: v\S+)? => (\S+)(?: (v\S+))?$", re.MULTILINE)
_NOTICED: Final = re.compile(r"npm package ([\w@/.-]+)@([\d.]+\d)")
_POM: Final = "{http://maven.apache.org/POM/4.0.0}"


class Package(Struct, frozen=True, kw_only=True, order=True):
    """A package at one version. ``kind`` is purl's type: pypi, npm, golang, maven, cargo."""

    kind: str
    name: str
    version: str
    lock: str
    is_shipped: bool

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:{self.kind}/{self.name.replace('@', '%40')}@{self.version}"


def packages(root: Path = ROOT) -> list[Package]:
    """What each lock pins, in a stable order.

    Raises:
        ValueError: a lock has an entry without an exact version.
    """
    found: set[Package] = set()
    readers = {REQUIREMENTS: _pypi, NPM: _npm, GO: _golang, MAVEN: _maven, CARGO: _cargo, VENDORED: _vendored}
    for names, read in readers.items():
        for lock in names:
            found.update(read(root, lock))
    return sorted(found)


def requirements(text: str) -> list[tuple[str, str]]:
    """Name and version of each entry of a requirements file."""
    # PEP 503's form.
    return [(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in _REQUIREMENT.findall(text)]


def versions(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The versions by name. A name may have several: for other platforms, or versions of Python."""
    made: dict[str, str] = {}
    for name, version in sorted(found):
        made[name] = f"{made[name]}, {version}" if name in made else version
    return made


def _pypi(root: Path, lock: str) -> Iterator[Package]:
    for name, version in requirements((root / lock).read_text()):
        yield _package("pypi", name, version, lock)


def _npm(root: Path, lock: str) -> Iterator[Package]:
    for path, package in json.loads((root / lock).read_text())["packages"].items():
        if path and not package.get("link"):
            name = path.rpartition("node_modules/")[2]
            yield _package("npm", name, package["version"], lock, is_shipped=not package.get("dev"))


def _golang(root: Path, lock: str) -> Iterator[Package]:
    text = (root / lock).read_text()
    replaced = {name: (target, version) for name, target, version in _REPLACED.findall(text)}
    for name, version in _REQUIRE.findall(text):
        target, other = replaced.get(name, (name, version))
        if not target.startswith("."):
            yield _package("golang", target, other or version, lock)


def _maven(root: Path, lock: str) -> Iterator[Package]:
    parent = ET.parse(root / MAVEN[0]).getroot()  # noqa: S314 - the project's own
    properties = {each.tag.removeprefix(_POM): each.text or "" for each in parent.iterfind(f"{_POM}properties/*")}
    document = parent if lock == MAVEN[0] else ET.parse(root / lock).getroot()  # noqa: S314
    for kind in ("dependency", "plugin", "extension"):
        for element in document.iter(f"{_POM}{kind}"):
            group = element.findtext(f"{_POM}groupId", "org.apache.maven.plugins")
            name, version = element.findtext(f"{_POM}artifactId", ""), element.findtext(f"{_POM}version")
            if version is not None and group != OURS:
                shipped = kind == "dependency" and "junit" not in group and element.findtext(f"{_POM}scope") != "test"
                exact = re.sub(r"\$\{([\w.]+)\}", lambda match: properties[match[1]], version)
                yield _package("maven", f"{group}/{name}", exact, lock, is_shipped=shipped)


def _cargo(root: Path, lock: str) -> Iterator[Package]:
    manifest = tomllib.loads((root / lock).read_text())
    for section in ("dependencies", "dev-dependencies"):
        for name, wanted in manifest.get(section, {}).items():
            version = wanted if isinstance(wanted, str) else wanted.get("version")
            if version is None:
                continue  # a path
            if not version.startswith("="):
                raise ValueError(f"{lock}: {name}: expected an exact version, such as =1.2.3, found {version}")
            yield _package("cargo", name, version[1:], lock, is_shipped=section == "dependencies")


def _vendored(root: Path, lock: str) -> Iterator[Package]:
    for name, version in _NOTICED.findall((root / lock).read_text()):
        yield _package("npm", name, version, lock)


def _package(kind: str, name: str, version: str, lock: str, *, is_shipped: bool = True) -> Package:
    return Package(kind=kind, name=name, version=version, lock=lock, is_shipped=lock in SHIPPED and is_shipped)
