"""Files and objects of the cluster -> one Configuration: no object keeps the others from being loaded.

Files are one team's, and are loaded all or none. Objects of the cluster are many teams', so each stands for itself:

* An error in a policy or a Worker is that policy's fault, as it is of a file at a start.
* An error that makes the chain unknown leaves the object out: its last good text is loaded instead, if there is one.
  The definition in the API server keeps such objects away, all but one kind: an object with the name of one in a file.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.errors import ConfigurationError, summary
from gateway.policies.model import Configuration


class PartialLoad(Struct, frozen=True, kw_only=True):
    """What was loaded. ``texts`` are those that ``configuration`` was made of, ``refused`` the objects that are none of
    them, and why.

    ``file_errors``: those of the errors that are in files.
    """

    configuration: Configuration
    texts: tuple[SourceText, ...]
    refused: Mapping[SourceText, str]
    file_errors: tuple[ConfigurationError, ...]


def load_partially(
    files: Sequence[SourceText], objects: Iterable[SourceText], good: Mapping[str, SourceText]
) -> PartialLoad:
    """Load files and objects together.

    Args:
        files: the texts of files.
        objects: one text for each object of the cluster.
        good: the text of each object in the configuration in force, by its name.
    """
    chosen = {text.name: text for text in objects}
    names = frozenset(chosen)
    refused: dict[SourceText, str] = {}
    while True:
        texts = (*files, *chosen.values())
        configuration = load(texts)
        fatal = configuration.fatal_texts & chosen.keys()
        if not fatal:
            break
        for name in fatal:
            text, last = chosen.pop(name), good.get(name)
            refused[text] = summary([each for each in configuration.errors if each.place.file == name])
            if last is not None and last != text:
                chosen[name] = last
    return PartialLoad(
        configuration=configuration,
        texts=texts,
        refused=refused,
        file_errors=tuple(each for each in configuration.errors if each.place.file not in names),
    )
