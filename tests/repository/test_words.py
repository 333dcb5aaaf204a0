"""Names are made of the glossary's words, and say one thing within a room."""

import pytest

from tests.repository.words import ROOT, findings


def made(folder, **modules):
    """A package of these modules, by name with ``__`` for a slash."""
    for name, text in modules.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_every_name_is_allowed():
    """No name of the gateway contains a forbidden word, and no public class name stands twice within a room."""
    assert findings(ROOT / "gateway") == []


@pytest.mark.parametrize(
    "text",
    [
        "class Fleet: ...",
        "class _CrowdReader: ...",
        "def tell_errors(): ...",
        "def report(mistake): ...",
        "told_at = 1",
        "class Report:\n    def __init__(self):\n        self._strays = 1",
        'FLAG = "--patrol-share"',
        'METRIC = "stray_answers_total"',
    ],
)
def test_a_forbidden_word_is_found(tmp_path, text):
    """In a class, a function, a parameter, a variable, an attribute, a flag and a metric."""
    (found,) = findings(made(tmp_path, room__module=text))
    assert found.startswith("room/module.py:")
    assert "a name must not contain" in found


def test_the_name_of_a_module_counts(tmp_path):
    """A module is named by the glossary too."""
    (found,) = findings(made(tmp_path, room__acquaintance=""))
    assert "acquaintance" in found


@pytest.mark.parametrize("text", ["class Heartbeat: ...", "class Handshake: ...", "class Report: ...\n'they told me'"])
def test_other_words_and_sentences_are_free(tmp_path, text):
    """A word counts as a whole, and only in names."""
    assert findings(made(tmp_path, room__module=text)) == []


def test_a_class_name_that_stands_twice_in_a_room_is_found(tmp_path):
    """Whoever imports it must know which one it is."""
    (found,) = findings(made(tmp_path, room__one="class Entry: ...", room__two="class Entry: ..."))
    assert found == "room/one.py: class Entry stands in room/two.py too; give one a name of its own"


def test_parallel_packages_other_rooms_and_private_classes_are_free(tmp_path):
    """The same module of parallel packages may hold the same thing; a private name is nobody else's."""
    text = "class Worker: ...\nclass _Entry: ..."
    package = made(tmp_path, room__grpc__worker=text, room__queue__worker=text, other__worker=text, room__one=text[17:])
    assert findings(package) == []
