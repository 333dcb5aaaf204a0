"""The SDKs' sources, which are copied into a project: they are on no package index yet.

They are found beside this package (in a wheel, as ``sdks/LANG``) or in the checkout that this package is part of
(``workers/LANG``). A project gets what builds a worker: no tests, no samples, no build results.

A project depends on the versions with which its SDK was tested. So its pinned versions come from the SDK's files: the
``require`` lines of go.mod, package-lock.json, the versions in Cargo.toml and pom.xml. (Python's requirements.txt is a
template of its own; a test compares its versions.)
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct


class SdkError(Exception):
    """An SDK's sources are missing or unusable."""


class Sdk(Struct, frozen=True, kw_only=True):
    """What is copied of an SDK.

    Attributes:
        files: patterns of what is copied from the SDK's folder.
        excluded: patterns of what is not copied although ``files`` matches it.
        pins: the file that pins the SDK's dependencies, which is not copied; "": one of ``files``.
    """

    files: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    pins: str = ""


_ALWAYS: Final = ("LICENSE", "README.md")

SDKS: Final[Mapping[str, Sdk]] = {
    "go": Sdk(files=("go.mod", "go.sum", "*.go", "workerv1/*.go"), excluded=("*_test.go",)),
    "java": Sdk(files=("pom.xml", "sdk/pom.xml", "sdk/src/main/**/*")),
    "node": Sdk(files=("package.json", "src/**/*", "types/**/*", "proto/**/*"), pins="package-lock.json"),
    "python": Sdk(files=("pyproject.toml", "admission_worker/**/*"), excluded=("admission_worker/samples/**",)),
    "rust": Sdk(files=("Cargo.toml", "src/**/*")),
}

_NEVER: Final = {"__pycache__", "node_modules", "target", "bin", ".git", ".DS_Store"}


def sdk_folder(language: str) -> Path:
    """The folder of an SDK's sources.

    Raises:
        SdkError: neither beside this package nor in a checkout around it.
    """
    here = Path(__file__).resolve()
    places = here.parent / "sdks" / language, here.parents[2] / "workers" / language
    for place in places:
        if (place / SDKS[language].files[0]).is_file():
            return place
    raise SdkError(
        f"the sources of the {language} SDK are missing: no {SDKS[language].files[0]} in "
        f"{' or '.join(map(str, places))}; reinstall admission-gateway, or run it from a checkout"
    )


def sdk_files(language: str) -> dict[str, bytes]:
    """The files of an SDK that are copied: contents by path in its folder.

    Raises:
        SdkError: the sources are missing, or one cannot be read.
    """
    folder, sdk = sdk_folder(language), SDKS[language]
    try:
        found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in _chosen(folder, sdk)}
        if language == "node":
            found["package.json"] = _published(json.loads(found["package.json"]))
    except OSError as error:
        raise SdkError(f"{error.filename} of the {language} SDK cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SdkError(f"package.json of the {language} SDK in {folder} cannot be used: {error}") from error
    return found


def _chosen(folder: Path, sdk: Sdk) -> Iterator[Path]:
    found = {path for pattern in (*sdk.files, *_ALWAYS) for path in folder.glob(pattern) if path.is_file()}
    for path in sorted(found):
        inside = path.relative_to(folder)
        if _NEVER.isdisjoint(inside.parts) and not any(_within(inside, pattern) for pattern in sdk.excluded):
            yield path


def _within(path: Path, pattern: str) -> bool:
    """Whether a pattern matches a path: ``*_test.go`` by its name, ``samples/**`` by its folder."""
    if pattern.endswith("/**"):
        return Path(pattern.removesuffix("/**")) in path.parents
    return path.match(pattern)


def values(language: str) -> dict[str, str]:
    """The placeholders of templates that depend on the SDK, and their values.

    Raises:
        SdkError: the sources are missing, or lack a value.
    """
    folder = sdk_folder(language)
    try:
        match language:
            case "go":
                return _go_values((folder / "go.mod").read_text())
            case "rust":
                return _rust_values(tomllib.loads((folder / "Cargo.toml").read_text()))
            case "java":
                return _java_values((folder / "pom.xml").read_text())
            case _:
                return {}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise SdkError(
            f"the {language} SDK in {folder} does not declare its dependencies: {type(error).__name__}: {error}; "
            "reinstall admission-gateway, or run it from a complete checkout"
        ) from error


def made_files(language: str, name: str) -> dict[str, bytes]:
    """Files of a project that are made from its SDK's: the locks of a project with this name.

    Raises:
        SdkError: the sources are missing, or lack a value.
    """
    folder = sdk_folder(language)
    try:
        match language:
            case "go":
                lines = (folder / "go.sum").read_text().splitlines(keepends=True)
                return {"go.sum": "".join(line for line in lines if _GO_TOOL not in line).encode()}
            case "node":
                lock = json.loads((folder / SDKS["node"].pins).read_bytes())
                return {"package-lock.json": _node_lock(lock, name)}
            case _:
                return {}
    except (OSError, ValueError, KeyError) as error:
        raise SdkError(
            f"the {language} SDK in {folder} has no usable lock file: {type(error).__name__}: {error}; "
            "reinstall admission-gateway, or run it from a complete checkout"
        ) from error


_DEVELOPMENT_KEYS: Final = ("devDependencies", "scripts")


def _published(manifest: dict[str, Any]) -> bytes:
    """An npm package as it would be published: npm also installs devDependencies of a linked package."""
    return _json({key: value for key, value in manifest.items() if key not in _DEVELOPMENT_KEYS})


_GO_TOOL: Final = "/cmd/"
"""Modules of generators, which are not needed to build a worker."""


def _go_values(text: str) -> dict[str, str]:
    version = re.search(r"^go (\d+\.\d+)(\.\d+)?$", text, re.MULTILINE)
    required = re.findall(r"^\t(\S+ v\S+)(?: // indirect)?$", text, re.MULTILINE)
    if version is None or not required:
        raise ValueError("go.mod has no go or no require line")
    needed = [f"\t{module} // indirect" for module in sorted(required) if _GO_TOOL not in module]
    full = version.group().removeprefix("go ")
    return {"GO_VERSION": full, "GO_IMAGE": version.group(1), "GO_REQUIRES": "\n".join(needed)}


def _rust_values(manifest: dict[str, Any]) -> dict[str, str]:
    needed = {
        f"VERSION_{name.upper()}": manifest["dependencies"][name]["version"]
        for name in ("schemars", "serde", "serde_json")
    }
    return needed | {"RUST_VERSION": manifest["package"]["rust-version"]}


def _java_values(pom: str) -> dict[str, str]:
    junit = re.search(r"<junit\.version>(.+?)</junit\.version>", pom)
    version = re.search(r"<version>(.+?)</version>", pom)
    if junit is None or version is None:
        raise ValueError("pom.xml has no version of its own or none of JUnit")
    plugins = re.findall(r"<artifactId>(maven-[a-z]+-plugin)</artifactId>\s*<version>(.+?)</version>", pom)
    return {"SDK_VERSION": version.group(1), "VERSION_JUNIT": junit.group(1)} | {
        f"VERSION_{plugin.upper().replace('-', '_')}": number for plugin, number in plugins
    }


def _node_lock(lock: dict[str, Any], name: str) -> bytes:
    """The lock of a project that depends on the SDK in ``sdk/`` only: the SDK's own, without its devDependencies."""
    packages = lock["packages"]
    sdk = {key: value for key, value in packages[""].items() if key != "devDependencies"}
    project = f"{name}-policies"
    root = {
        "name": project,
        "version": "0.1.0",
        "dependencies": {"admission-worker": "file:sdk"},
        "engines": sdk.get("engines", {}),
    }
    needed = {
        place: {key: value for key, value in entry.items() if key != "devOptional"}
        for place, entry in packages.items()
        if place.startswith("node_modules/") and not {"dev", "devOptional", "extraneous"} & entry.keys()
    }
    made = {
        "name": project,
        "version": "0.1.0",
        "lockfileVersion": lock["lockfileVersion"],
        "requires": True,
        "packages": {
            "": root,
            "node_modules/admission-worker": {"resolved": "sdk", "link": True},
            **needed,
            "sdk": sdk,
        },
    }
    return _json(made)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
