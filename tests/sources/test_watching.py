"""Watching files: a change is taken up once it rests, and only a change."""

import os

import pytest

from gateway.sources.files import SourceError
from gateway.sources.watching import Source


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\n")
    return path


@pytest.fixture
def source(tmp_path, file):
    """The directory of the file, read once."""
    watched = Source([tmp_path])
    watched.read()
    return watched


def looks(source, number=4):
    """So many looks in a row."""
    return [source.changed() for _ in range(number)]


def test_what_rests_has_not_changed(source):
    """However often one looks."""
    assert looks(source) == [False] * 4


def test_a_change_is_seen_when_it_rests(source, file):
    """The first look meets it, the second finds it at rest; once read, it is no change any more."""
    file.write_text("a: 2\n")
    assert looks(source) == [False, True, True, True]
    assert [text.content for text in source.read()] == [b"a: 2\n"]
    assert looks(source) == [False] * 4


def test_a_file_that_is_being_written_is_not_taken_up(source, file):
    """As long as each look finds it different."""
    for number in range(5):
        with file.open("a") as writing:
            writing.write(f"b{number}: 1\n")
        assert not source.changed()
    assert looks(source, 1) == [True]


def test_a_change_that_is_undone_is_none(source, file):
    """Where a file is put back, nothing has changed."""
    away = file.with_suffix(".away")
    os.link(file, away)
    file.unlink()
    assert looks(source) == [False, True, True, True]
    away.rename(file)
    source.read()
    assert looks(source) == [False] * 4


@pytest.mark.parametrize("change", ["new", "gone", "renamed", "link", "permissions"])
def test_every_kind_of_change_is_seen(source, file, change):
    """New, missing, renamed and relinked files, and others' permissions."""
    match change:
        case "new":
            file.with_name("b.yaml").write_text("b: 1\n")
        case "gone":
            file.unlink()
        case "renamed":
            file.rename(file.with_name("b.yaml"))
        case "link":
            file.with_name("x").write_text("a: 1\n")
            file.unlink()
            file.symlink_to("x")
        case "permissions":
            file.chmod(0o600 if file.stat().st_mode & 0o77 else 0o644)
    assert looks(source, 2) == [False, True]


def test_a_swapped_config_map_is_a_change(tmp_path):
    """The link behind the link is followed, though the visible one stays as it is."""
    for version, text in (("..1", "a: 1\n"), ("..2", "a: 1\n")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "a.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    source = Source([tmp_path])
    source.read()
    (tmp_path / "..tmp").symlink_to("..2")
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    assert looks(source, 2) == [False, True]


def test_what_cannot_be_read_is_not_read_again_and_again(tmp_path, file):
    """A source that is gone is a change once; that it is still gone is none; that it is back is one."""
    source = Source([file])
    source.read()
    away = file.with_suffix(".away")
    file.rename(away)
    assert looks(source, 2) == [False, True]
    with pytest.raises(SourceError):
        source.read()
    assert looks(source) == [False] * 4
    away.rename(file)
    assert looks(source, 2) == [False, True]


def test_a_look_never_raises(tmp_path):
    """Whatever is named."""
    for path in (tmp_path / "none", tmp_path, tmp_path / "a\0b"):
        assert looks(Source([path]), 1) == [False]
