"""Only what was sealed with our key under this very name opens; keys come from a file that may change."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from gateway.caching.sealing import PREFIX, SealKey, SealKeys
from gateway.redis.key_files import KEYS

KEY = SealKey(b"k" * 32)
OTHER = SealKey(b"o" * 32)
QUESTION = b"m" * 16 + b"q" * 32


def line(byte: bytes) -> str:
    return base64.b64encode(byte * 32).decode() + "\n"


@pytest.mark.property
@given(st.binary(max_size=300))
def test_opens_what_it_sealed(content):
    """Sealed and opened under the same name, a content is the same; it stands in none of the bytes, and no two are
    alike.
    """
    sealed = KEY.seal("n", content)
    assert KEY.open("n", sealed) == content
    assert sealed != KEY.seal("n", content)
    assert len(content) < 4 or content not in sealed


@pytest.mark.property
@given(st.binary(max_size=50), st.data())
def test_any_alteration_is_found(content, data):
    """A byte changed, added, cut off or moved to another name or key: it does not open."""
    sealed = KEY.seal("n", content)
    at = data.draw(st.integers(0, len(sealed) - 1))
    flipped = bytearray(sealed)
    flipped[at] ^= data.draw(st.integers(1, 255))
    assert KEY.open("n", bytes(flipped)) is None
    assert KEY.open("n", sealed[:at]) is None
    assert KEY.open("n", sealed + b"\0") is None
    assert KEY.open("m", sealed) is None
    assert OTHER.open("n", sealed) is None


@pytest.mark.property
@given(st.binary(max_size=100))
def test_any_bytes(sealed):
    """Bytes of somebody else do not open, and raise nothing."""
    assert KEY.open("n", sealed) is None


def test_names_tell_nothing():
    """A name has neither the policy's mark nor the question, and differs for each key, question and policy."""
    names = {
        key.name(question)
        for key in (KEY, OTHER)
        for question in (QUESTION, b"n" * 16 + b"q" * 32, b"m" * 16 + b"r" * 32)
    }
    assert len(names) == 6
    assert all(name.startswith(PREFIX) and len(name) < 100 for name in names)
    assert KEY.name(QUESTION).startswith(KEY.entries(QUESTION[:16]).removesuffix("*"))
    assert not KEY.marker(QUESTION[:16]).startswith(KEY.entries(QUESTION[:16]).removesuffix("*"))


def test_a_file(tmp_path):
    """One key a line; comments and empty lines say nothing; the first key seals."""
    file = tmp_path / "keys"
    file.write_text(f"# a comment\n\n{line(b'a')}  {line(b'b')}")
    keys = SealKeys.from_file(file).keys
    assert [key.name(QUESTION) for key in keys] == [
        SealKey(b"a" * 32).name(QUESTION),
        SealKey(b"b" * 32).name(QUESTION),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no key in it"),
        ("# nothing\n", "no key in it"),
        ("hunter2hunter2\n", "line 1: expected base64 of 32 bytes"),
        (base64.b64encode(b"x" * 31).decode(), "found 44 characters of 31 bytes"),
        (line(b"a") + "!" * 44, "line 2: expected base64"),
        (line(b"a") + line(b"a"), "twice"),
        ("".join(line(bytes([number])) for number in range(KEYS + 1)), "5 keys, expected at most 4"),
        ("#" * 100_000, "longer than 65536 bytes"),
        ("\x00\xff", "line 1: expected base64"),
    ],
)
def test_a_file_that_is_none(tmp_path, content, said):
    """A file with a mistake is refused with its name, the line and what to do, and no word of what stands there."""
    file = tmp_path / "keys"
    file.write_text(content)
    with pytest.raises(ValueError, match=said) as error:
        SealKeys.from_file(file)
    assert str(file) in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_file_that_cannot_be_read(tmp_path):
    """A missing file and a directory are refused in the operating system's words."""
    with pytest.raises(ValueError, match="No such file"):
        SealKeys.from_file(tmp_path / "missing")
    with pytest.raises(ValueError, match="Is a directory"):
        SealKeys.from_file(tmp_path)


def test_rotation(tmp_path):
    """With each step of a rotation, what was sealed one step before still opens."""
    file = tmp_path / "keys"
    file.write_text(line(b"a"))
    keys = SealKeys.from_file(file)

    def seal() -> tuple[str, bytes]:
        name = keys.keys[0].name(QUESTION)
        return name, keys.keys[0].seal(name, b"content")

    def opens(name: str, sealed: bytes) -> bool:
        return any(key.name(QUESTION) == name and key.open(name, sealed) == b"content" for key in keys.keys)

    for step in (line(b"a") + line(b"b"), line(b"b") + line(b"a"), line(b"b")):
        before = seal()
        file.write_text(step)
        assert keys.refresh()
        assert opens(*before) or step == line(b"b")
        assert opens(*seal())
    assert not keys.refresh()


def test_a_broken_file_changes_nothing(tmp_path):
    """A new file that cannot be used leaves the keys as they were, and the log says so."""
    file = tmp_path / "keys"
    file.write_text(line(b"a"))
    keys = SealKeys.from_file(file)
    before = keys.keys
    with capture_logs() as logs:
        file.write_text("oops")
        assert not keys.refresh()
        file.unlink()
        assert not keys.refresh()
    assert keys.keys is before
    assert [entry["log_level"] for entry in logs] == ["error", "error"]


def test_what_the_log_says_of_keys(tmp_path):
    """At the start, after a change and once a broken file is whole again: how many, and a fingerprint of each."""
    file = tmp_path / "keys"
    with capture_logs() as logs:
        file.write_text(line(b"a"))
        keys = SealKeys.from_file(file)
        file.write_text("oops")
        keys.refresh()
        file.write_text(line(b"a"))
        assert not keys.refresh()
        assert not keys.refresh()
        file.write_text(line(b"b") + line(b"a"))
        assert keys.refresh()
    told = [entry for entry in logs if entry["event"] == "seal keys read"]
    assert [entry["keys"] for entry in told] == [1, 1, 2]
    (old,), again, (new, last) = (entry["fingerprints"] for entry in told)
    assert [old] == again == [last]
    assert new != old
    assert len(old) == 8
    assert line(b"a").strip() not in str(logs)


def test_without_a_file():
    """Without a file each process has a key of its own, and says loudly what that means."""
    with capture_logs() as logs:
        first, second = SealKeys.random(), SealKeys.random()
    assert first.keys[0].name(QUESTION) != second.keys[0].name(QUESTION)
    assert "--seal-key-file" in logs[0]["event"]
    assert not first.refresh()
