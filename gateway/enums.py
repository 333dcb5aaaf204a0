"""Enumerations of words: metrics, messages and keys use their members as the texts that they are."""

import enum


class StrEnum(enum.StrEnum):
    """An enumeration of texts, each of which has the hash of its text.

    ``Enum.__hash__`` is a Python function, and reviews look up members in tables and use them in keys: it took longer
    than the look-up.
    """

    __hash__ = str.__hash__
