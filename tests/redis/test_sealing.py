"""Only what was sealed with our key for this very context opens; keys come from a file that may change."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from gateway.redis.key_files import KEYS
from gateway.redis.sealing import SEAL_BYTES, Context, SealKey, SealKeys

KEY = SealKey(b"k" * 32)
OTHER = SealKey(b"o" * 32)
HERE = Context(b"purpose", b"place", b"beside")
CONTEXTS = st.builds(
    Context, *(st.sampled_from([b"", b"a", b"b", b"a\0b"]) for _ in range(2)), st.sampled_from([b"", b"8bytes.."])
)


def line(byte: bytes) -> str:
    return base64.b64encode(byte * 32).decode() + "\n"


@pytest.mark.property
@given(content=st.binary(max_size=300), context=CONTEXTS)
def test_opens_what_it_sealed(content, context):
    """Sealed and opened for the same context, a content is the same, a seal longer; it stands in none of the bytes, and
    no two are alike.
    """
    sealed = KEY.seal(context, content)
    assert KEY.open(context, sealed) == content
    assert len(sealed) == len(content) + SEAL_BYTES
    assert sealed != KEY.seal(context, content)
    assert len(content) < 4 or content not in sealed


@pytest.mark.property
@given(content=st.binary(max_size=50), data=st.data())
def test_any_alteration_is_found(content, data):
    """A byte changed, added or cut off, or another key: it does not open."""
    sealed = KEY.seal(HERE, content)
    at = data.draw(st.integers(0, len(sealed) - 1))
    flipped = bytearray(sealed)
    flipped[at] ^= data.draw(st.integers(1, 255))
    assert KEY.open(HERE, bytes(flipped)) is None
    assert KEY.open(HERE, sealed[:at]) is None
    assert KEY.open(HERE, sealed + b"\0") is None
    assert OTHER.open(HERE, sealed) is None


@pytest.mark.property
@given(here=CONTEXTS, there=CONTEXTS)
def test_what_is_moved_does_not_open(here, there):
    """Another purpose, place, or other bytes beside it: any one of them is enough."""
    assert (KEY.open(there, KEY.seal(here, b"x")) is not None) == (here == there)


@pytest.mark.property
@given(st.binary(max_size=100))
def test_any_bytes(content):
    """Arbitrary bytes do not open, and raise nothing."""
    for sealed in (content, b"\x01" + content):
        assert KEY.open(HERE, sealed) is None


def test_each_hour_has_its_own_key():
    """So no key seals 2^32 messages; what was sealed in another hour opens all the same."""
    early, late = (SealKey(b"k" * 32, lambda now=now: now).seal(HERE, b"x") for now in (0.0, 4195.0))
    assert early[:5] != late[:5]
    assert KEY.open(HERE, early) == KEY.open(HERE, late) == b"x"
    assert KEY.open(HERE, late[:5] + early[5:]) is None


def test_digests_reveal_nothing():
    """They differ for each key, purpose and content."""
    assert (
        len(
            {
                key.digest(purpose, content)
                for key in (KEY, OTHER)
                for purpose in (b"p", b"q")
                for content in (b"", b"c")
            }
        )
        == 8
    )


def test_a_file(tmp_path):
    """One key a line; comments and empty lines say nothing; the first key seals."""
    file = tmp_path / "keys"
    file.write_text(f"# a comment\n\n{line(b'a')}  {line(b'b')}")
    keys = SealKeys(file)
    assert keys.why == ""
    assert keys.fingerprints == tuple(SealKey(each * 32).fingerprint for each in (b"a", b"b"))
    assert SealKey(b"a" * 32).open(HERE, keys.seal(HERE, b"x")) == b"x"
    assert keys.open(HERE, SealKey(b"b" * 32).seal(HERE, b"x")) == b"x"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "it contains no key"),
        ("# nothing\n", "it contains no key"),
        ("hunter2hunter2\n", "line 1: expected base64 of 32 bytes"),
        (base64.b64encode(b"x" * 31).decode(), "found 44 characters of 31 bytes"),
        (line(b"a") + "!" * 44, "line 2: expected base64"),
        (line(b"a") + line(b"a"), "twice"),
        ("".join(line(bytes([number])) for number in range(KEYS + 1)), "5 keys, expected at most 4"),
        ("#" * 100_000, "longer than 65536 bytes"),
        ("\x00\xff", "line 1: expected base64"),
    ],
)
def test_an_invalid_key_file_is_rejected(tmp_path, content, error):
    """An invalid file is rejected with its name, the line and what to do, and without its content."""
    file = tmp_path / "keys"
    file.write_text(content)
    keys = SealKeys(file)
    assert error in keys.why
    assert str(file) in keys.why
    assert "hunter2" not in keys.why
    with pytest.raises(ValueError, match=error):
        keys.seal(HERE, b"x")


def test_a_file_that_cannot_be_read(tmp_path):
    """A missing file and a directory are refused in the operating system's words."""
    assert "No such file" in SealKeys(tmp_path / "missing").why
    assert "Is a directory" in SealKeys(tmp_path).why


def test_a_file_that_comes_later(tmp_path):
    """The first keys are waited for: as soon as the file is there, what it holds is used."""
    file = tmp_path / "keys"
    keys = SealKeys(file)
    assert keys.open(HERE, KEY.seal(HERE, b"x")) is None
    file.write_text(line(b"k"))
    assert keys.refresh()
    assert keys.why == ""
    assert keys.open(HERE, KEY.seal(HERE, b"x")) == b"x"


def test_rotation(tmp_path):
    """With each step of a rotation, what was sealed one step before still opens."""
    file = tmp_path / "keys"
    file.write_text(line(b"a"))
    keys = SealKeys(file)
    for step in (line(b"a") + line(b"b"), line(b"b") + line(b"a"), line(b"b")):
        before = keys.seal(HERE, b"content")
        file.write_text(step)
        assert keys.refresh()
        assert keys.open(HERE, before) == b"content"
        assert keys.open(HERE, keys.seal(HERE, b"content")) == b"content"
    assert keys.open(HERE, SealKey(b"a" * 32).seal(HERE, b"content")) is None
    assert not keys.refresh()


def test_a_broken_file_changes_nothing(tmp_path):
    """A new file that cannot be used leaves the keys as they were, and is logged."""
    file = tmp_path / "keys"
    file.write_text(line(b"a"))
    keys = SealKeys(file)
    before = keys.keys
    with capture_logs() as logs:
        file.write_text("oops")
        assert not keys.refresh()
        file.unlink()
        assert not keys.refresh()
    assert keys.keys is before
    assert keys.why == ""
    assert [entry["log_level"] for entry in logs] == ["error", "error"]


def test_without_keys_in_use_the_log_does_not_say_that_they_stay(tmp_path):
    """``why`` has the error, which the caller reports: once."""
    with capture_logs() as logged:
        keys = SealKeys(tmp_path / "missing")
        keys.refresh()
    assert "No such file" in keys.why
    assert logged == []


def test_what_the_log_says_of_keys(tmp_path):
    """At the start, after a change and once a broken file is whole again: how many, and a fingerprint of each."""
    file = tmp_path / "keys"
    with capture_logs() as logs:
        file.write_text(line(b"a"))
        keys = SealKeys(file)
        file.write_text("oops")
        keys.refresh()
        file.write_text(line(b"a"))
        assert not keys.refresh()
        assert not keys.refresh()
        file.write_text(line(b"b") + line(b"a"))
        assert keys.refresh()
    read = [entry for entry in logs if entry["event"] == "seal keys read"]
    assert [entry["keys"] for entry in read] == [1, 1, 2]
    (old,), again, (new, last) = (entry["fingerprints"] for entry in read)
    assert [old] == again == [last]
    assert new != old
    assert len(old) == 8
    assert line(b"a").strip() not in str(logs)


def test_without_a_file():
    """Without a file each process has a key of its own."""
    first, second = SealKeys(None), SealKeys(None)
    assert second.open(HERE, first.seal(HERE, b"x")) is None
    assert not first.refresh()
