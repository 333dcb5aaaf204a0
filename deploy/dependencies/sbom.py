"""A CycloneDX 1.6 bill of materials, made from the locks: ``make sbom``.

The same locks make the same bytes: there is no time in it, and its serial number is a digest. ``scope`` is "required"
for what an image of the gateway or of a sample worker has, "excluded" for what only builds and tests need.
``compositions`` say that it is incomplete: of Rust's and Java's packages, which have no lock, those that they need are
not listed.

Written here and not by a library: none reads all five formats, and what remains is this document.
"""

import json
import sys
import tomllib
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from deploy.dependencies.locks import ROOT, Package, packages

LOCK_PROPERTY: Final = "admission-gateway:lock"


def bill(found: Iterable[Package], *, name: str, version: str) -> dict[str, Any]:
    """The document, ready for JSON, of a project of this name and version."""
    components = [_component(purl, list(each)) for purl, each in groupby(sorted(found, key=_purl), _purl)]
    about = {"type": "application", "bom-ref": name, "name": name, "version": version}
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": about},
        "components": components,
        "compositions": [{"aggregate": "incomplete", "assemblies": [name]}],
    }
    return content | {"serialNumber": uuid5(NAMESPACE_URL, json.dumps(content)).urn}


def project_bill(root: Path = ROOT) -> dict[str, Any]:
    """That of this project."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return bill(packages(root), name=project["name"], version=project["version"])


def _purl(package: Package) -> str:
    return package.purl


def _component(purl: str, of_locks: list[Package]) -> dict[str, Any]:
    first = of_locks[0]
    scope, _, name = first.name.rpartition("/") if first.kind in {"maven", "npm"} else ("", "", first.name)
    return {
        "type": "library",
        "bom-ref": purl,
        **({"group": scope} if scope else {}),
        "name": name,
        "version": first.version,
        "scope": "required" if any(each.is_shipped for each in of_locks) else "excluded",
        "purl": purl,
        "properties": [{"name": LOCK_PROPERTY, "value": lock} for lock in sorted({each.lock for each in of_locks})],
    }


def main(target: Path) -> None:
    """Write the document."""
    document = project_bill()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n")
    required = sum(each["scope"] == "required" for each in document["components"])
    print(f"{target}: {len(document['components'])} packages, of which {required} are shipped")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
