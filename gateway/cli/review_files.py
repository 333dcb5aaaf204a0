"""The reviews in files: one AdmissionReview, several JSON texts one after another, or YAML with several documents.

JSON is passed on byte by byte, since a review's own bytes are what is judged; YAML becomes JSON as kubectl makes it.
A file with a mistake in it gives nothing: half a file of reviews may be none that anybody meant.
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
    """A file holds no reviews; ``str(error)`` says why, in one line, without its name."""


def read_reviews(name: str) -> list[bytes]:
    """The JSON texts in a file (``-``: standard input), at least one.

    Raises:
        FileError: it cannot be read, or holds something else.
    """
    content = _read(name)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FileError(f"not UTF-8: byte {error.start} {error.reason}") from None
    found = _json(text) if text.lstrip(_BLANK)[:1] in {"{", "["} else _yaml(name, content)
    if not found:
        raise FileError("there is no AdmissionReview in it")
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
        raise FileError(f"larger than {MAX_FILE_BYTES} bytes; split it into several")
    return content


def _json(text: str) -> list[bytes]:
    found = []
    position = _next(text, 0)
    while position < len(text):
        try:
            _, end = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise FileError(f"not JSON: line {error.lineno} column {error.colno}: {error.msg}") from None
        except RecursionError:
            raise FileError("not JSON that can be read: it nests too deep") from None
        except ValueError as error:  # a number of more than 4300 digits
            raise FileError(f"not JSON that can be read: {error}") from None
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
        raise FileError(f"not YAML: line {error.line}: {error}")
    return [_encoded(node) for node in nodes]


def _encoded(node: Node) -> bytes:
    try:
        return json.dumps(_plain(node), allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        raise FileError(f"line {node.line}: has no form in JSON: {error}") from None


def _plain(node: Node) -> Any:
    value = node.value
    if isinstance(value, Broken):
        raise FileError(f"line {node.line}: {value.message}")
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(element) for element in value] if isinstance(value, list) else value


def place(name: str, number: int, count: int) -> str:
    """What a review is called: its file, and its number in there where there are several."""
    shown = "<stdin>" if name == STDIN else name.encode(errors="replace").decode()
    return shown if count == 1 else f"{shown} ({number})"


def documents(name: str) -> Iterator[tuple[str, bytes]]:
    """Each review of a file with what it is called. Raises FileError."""
    found = read_reviews(name)
    return ((place(name, number, len(found)), body) for number, body in enumerate(found, 1))
