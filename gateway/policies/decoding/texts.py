"""One file's bytes -> the documents in it. Kubernetes' texts are UTF-8; YAML with several documents, or JSON."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from gateway.policies.decoding.json_text import read_json
from gateway.policies.decoding.nodes import Node, TextError
from gateway.policies.decoding.yaml_text import read_yaml
from gateway.policies.errors import ConfigurationError


class SourceText(Struct, frozen=True, kw_only=True):
    """One file as it was found: its name for messages, its bytes, and where its workers' commands are started.

    A text that a source has made of something else brings what was wrong with that: ``errors``, each of them fatal,
    and ``warnings``, which are warnings. ``in_cluster``: it is one object of the cluster.
    """

    name: str
    content: bytes
    directory: str = ""
    in_cluster: bool = False
    errors: tuple[ConfigurationError, ...] = ()
    warnings: tuple[ConfigurationError, ...] = ()


def read_documents(source: SourceText) -> tuple[list[Node], TextError | None]:
    """The documents that can be read, empty ones left out, and what stopped the reading (None: nothing did)."""
    try:
        text = _decode(source.content)
    except TextError as error:
        return [], error
    if not text.lstrip(" \t\r\n").startswith("{") and not source.name.lower().endswith(".json"):
        return _collect(read_yaml, text)
    as_json = _collect(read_json, text)
    if as_json[1] is None or source.name.lower().endswith(".json"):
        return as_json
    # "{" begins YAML in flow style as well. Of two errors, the later one is the more precise.
    as_yaml = _collect(read_yaml, text)
    return as_json if as_yaml[1] is not None and as_yaml[1].line < as_json[1].line else as_yaml


def _collect(read: Callable[[str], Iterator[Node]], text: str) -> tuple[list[Node], TextError | None]:
    nodes: list[Node] = []
    try:
        for node in read(text):
            if node.value is not None:
                nodes.append(node)  # noqa: PERF401 - what came before an error is kept
    except TextError as error:
        return nodes, error
    return nodes, None


def _decode(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TextError(1, "the text is UTF-16; save it as UTF-8")
    if content.startswith(b"\xef\xbb\xbf"):
        raise TextError(1, "the text begins with a byte order mark; save it as UTF-8 without one")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise TextError(line, f"not UTF-8: byte 0x{byte:02x} at offset {error.start}: {error.reason}") from error
