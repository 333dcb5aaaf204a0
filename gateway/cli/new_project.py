"""Fills in the templates in ``projects/`` for a new worker's project.

=======================  ==============================================================================================
in ``projects/``         content
=======================  ==============================================================================================
``common/…``             templates of all projects, and ``LANG/…`` those of one language; each file ends in ``.tmpl``,
                         so that no tool processes it
``LANG/fragments/…``     parts of the common templates that depend on the language: ``layout.md`` replaces ``@LAYOUT@``
``@NAME@``               a placeholder: the project's name; others have values from the SDK's files
=======================  ==============================================================================================
"""

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.cli.commands.new_worker import LANGUAGES
from gateway.cli.sdk_sources import SDKS, SdkError, made_files, sdk_files, values

_TEMPLATES: Final = Path(__file__).parent / "projects"
_SUFFIX: Final = ".tmpl"
_PLACEHOLDER: Final = re.compile(r"@([A-Z][A-Z0-9_]*)@")

assert LANGUAGES.keys() == SDKS.keys()  # noqa: S101 - two tables with the same keys


class Project(Struct, frozen=True, kw_only=True):
    """A project that is not written yet.

    Attributes:
        own: the author's files: contents by path.
        sdk: the copy of the SDK: contents by path.
    """

    own: dict[str, bytes]
    sdk: dict[str, bytes]


def new_project(language: str, name: str, namespace: str) -> Project:
    """The files of a worker's project.

    Args:
        language: one of LANGUAGES.
        name: of the worker, its image and its objects in the cluster.
        namespace: of these objects.

    Raises:
        SdkError: the SDK's sources are missing, or lack a value that the templates use.
    """
    fragments = _fragments(language)
    words = fragments["COMMAND"].split()
    known = fragments | values(language)
    known |= {
        "NAME": name,
        "NAMESPACE": namespace,
        "LANGUAGE": LANGUAGES[language],
        "COMMAND_LIST": ", ".join(words),
    }
    try:
        own = {path: _filled(text, known).encode() for path, text in _templates(language).items()}
    except KeyError as error:
        raise SdkError(
            f"the sources of the {language} SDK have no value for the placeholder {error}; reinstall "
            "admission-gateway, or run it from a complete checkout"
        ) from error
    sdk = {f"sdk/{path}": content for path, content in sdk_files(language).items()}
    return Project(own=own | made_files(language, name), sdk=sdk)


def _templates(language: str) -> dict[str, str]:
    """The templates of a language, by the path of the file in the project."""
    return {
        path.relative_to(folder).as_posix().removesuffix(_SUFFIX): path.read_text(encoding="utf-8")
        for folder in (_TEMPLATES / "common", _TEMPLATES / language)
        for path in sorted(folder.rglob(f"*{_SUFFIX}"))
    }


def _fragments(language: str) -> dict[str, str]:
    folder = _TEMPLATES / language / "fragments"
    return {path.stem.upper(): path.read_text(encoding="utf-8").rstrip("\n") for path in sorted(folder.iterdir())}


def _filled(text: str, known: dict[str, str]) -> str:
    # Fragments contain placeholders, but none whose value is a fragment.
    for _ in range(2):
        text = _PLACEHOLDER.sub(lambda found: known[found.group(1)], text)
    return text
