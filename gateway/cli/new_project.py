"""What a new worker's project consists of: the templates in ``projects/``, with their placeholders filled in.

=======================  ==============================================================================================
in ``projects/``         is
=======================  ==============================================================================================
``common/…``             what all projects have, and ``LANG/…`` what those in one language have besides; each file
                         ends in ``.tmpl``, so that no tool takes it for what it is not yet
``LANG/fragments/…``     what the common files say differently in each language: ``layout.md`` stands where they say
                         ``@LAYOUT@``
``@NAME@``               a placeholder: the project's name; others say what the SDK's own files do
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

assert LANGUAGES.keys() == SDKS.keys()  # noqa: S101 - two tables about the same things


class Project(Struct, frozen=True, kw_only=True):
    """A project that is not written yet.

    Attributes:
        own: the author's files: contents by path.
        sdk: the copy of the SDK, likewise.
    """

    own: dict[str, bytes]
    sdk: dict[str, bytes]


def new_project(language: str, name: str, namespace: str) -> Project:
    """The files of a worker's project.

    Args:
        language: one of LANGUAGES.
        name: of the worker, of its image and of its objects in the cluster.
        namespace: in which it will run.

    Raises:
        SdkError: the SDK's sources are not there, or do not say what the templates call of them.
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
            f"nothing in the sources of the {language} SDK says what stands for {error} in a project; install "
            "admission-gateway again, or run it from a sound checkout"
        ) from error
    sdk = {f"sdk/{path}": content for path, content in sdk_files(language).items()}
    return Project(own=own | made_files(language, name), sdk=sdk)


def _templates(language: str) -> dict[str, str]:
    """The templates of a language, by the path of what becomes of them."""
    return {
        path.relative_to(folder).as_posix().removesuffix(_SUFFIX): path.read_text(encoding="utf-8")
        for folder in (_TEMPLATES / "common", _TEMPLATES / language)
        for path in sorted(folder.rglob(f"*{_SUFFIX}"))
    }


def _fragments(language: str) -> dict[str, str]:
    folder = _TEMPLATES / language / "fragments"
    return {path.stem.upper(): path.read_text(encoding="utf-8").rstrip("\n") for path in sorted(folder.iterdir())}


def _filled(text: str, known: dict[str, str]) -> str:
    # Fragments have placeholders themselves, but none that a fragment fills.
    for _ in range(2):
        text = _PLACEHOLDER.sub(lambda found: known[found.group(1)], text)
    return text
