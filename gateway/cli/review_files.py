"""Reads AdmissionReviews from files: one or several JSON texts, or YAML documents.

JSON is passed on unchanged, since the gateway decides a review's bytes; YAML becomes JSON as in kubectl. A file with an
error yields no review: a part of it may not be what its author intended.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gateway.policies.decoding.nodes import Broken, Node
from gateway.policies.decoding.texts import SourceText, read_documents

STDIN: Final = "-"

MAX_FILE_BYTES: Final = 256 * 1024 * 1024
"""A dozen reviews of the largest size that the gateway takes."""

_BLANK: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder()


class FileError(Exception):
    """A file cannot be used; ``str(error)`` states why, in one line, without its name."""


def read_reviews(name: str) -> list[bytes]:
    """The JSON texts in a file (``-``: standard input), at least one.

    Raises:
        FileError: it cannot be read, or contains something else.
    """
    content = _read(name)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FileError(f"invalid UTF-8: byte {error.start}: {error.reason}") from None
    found = _json(text) if text.lstrip(_BLANK)[:1] in {"{", "["} else _yaml(name, content)
    if not found:
        raise FileError("contains no AdmissionReview")
    return found


def _read(name: str) -> bytes:
    try:
        if name == STDIN:
            content = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        observed = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileError(f"cannot be read: {observed}; check the path and its permissions") from None
    if len(content) > MAX_FILE_BYTES:
        raise FileError(f"larger than {MAX_FILE_BYTES} bytes; split the file")
    return content


def _json(text: str) -> list[bytes]:
    found = []
    position = _next(text, 0)
    while position < len(text):
        try:
            _, end = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise FileError(f"invalid JSON: line {error.lineno} column {error.colno}: {error.msg}") from None
        except RecursionError:
            raise FileError("invalid JSON: nested too deeply") from None
        except ValueError as error:  # a number of more than 4300 digits
            raise FileError(f"invalid JSON: {error}") from None
        found.append(text[position:end].encode())
        position = _next(text, end)
    return found


def _next(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANK:
        position += 1
    return position


def _yaml(name: str, content: bytes) -> list[bytes]:
    nodes, error = read_documents(SourceText(name=name, content=content))
    if error is not None:
        raise FileError(f"invalid YAML: line {error.line}: {error}")
    return [_encoded(node) for node in nodes]


def _encoded(node: Node) -> bytes:
    try:
        return json.dumps(_plain(node), allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        raise FileError(f"line {node.line}: cannot be converted to JSON: {error}") from None


def _plain(node: Node) -> Any:
    value = node.value
    if isinstance(value, Broken):
        raise FileError(f"line {node.line}: {value.message}")
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(element) for element in value] if isinstance(value, list) else value


def review_name(name: str, number: int, count: int) -> str:
    """The name of a review: its file, and if the file has several, its number."""
    file = "<stdin>" if name == STDIN else name.encode(errors="replace").decode()
    return file if count == 1 else f"{file} ({number})"


def documents(name: str) -> Iterator[tuple[str, bytes]]:
    """Each review of a file with its name. Raises FileError."""
    found = read_reviews(name)
    return ((review_name(name, number, len(found)), body) for number, body in enumerate(found, 1))
