"""The configuration for commands that do not serve: all texts of a source, loaded once."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gateway.policies.configuration import load
from gateway.policies.model import Configuration
from gateway.sources.files import STDIN, read, read_stream

if TYPE_CHECKING:
    from gateway.policies.decoding.texts import SourceText
    from gateway.sources.watching import HookSource


def load_configuration(
    paths: Sequence[Path], *, stdin: BinaryIO | None = None, hooks: "HookSource | None" = None
) -> Configuration:
    """What the files, directories and hooks say together; ``-`` is ``stdin``, if that may be read.

    Raises:
        SourceError: something cannot be read. Errors *in* the files are in the Configuration's ``errors``.
    """
    texts: list[SourceText] = []
    others = [path for path in paths if stdin is None or path != STDIN]
    if others or not (len(others) < len(paths) or hooks is not None):
        texts += read(others)
    if stdin is not None and STDIN in paths:
        texts.append(read_stream(stdin))
    if hooks is not None:
        texts.append(hooks.read_now()[0])
    return load(texts)
