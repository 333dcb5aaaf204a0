"""Files of recordings: sealed, bounded, and readable after a kill, a full disk, a lost key or a hostile hand."""

import base64
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.redis.sealing import SealKeys
from gateway.serving.recording_segments import SegmentSink, read_segment, segments_in
from gateway.telemetry.background_writer import WriteError

ROOT = Path(__file__).parents[2]


def key_file(path, *keys):
    path.write_text("".join(base64.b64encode(key * 32).decode() + "\n" for key in keys))
    return path


@pytest.fixture
def keys(tmp_path):
    return SealKeys(key_file(tmp_path / "keys", b"k"))


def recorded(directory, keys):
    """All recordings of a directory, and how many are torn and unreadable."""
    found = [read_segment(path, keys) for path in segments_in(directory)]
    texts = [text for each in found for text in each.recordings]
    return texts, sum(each.torn for each in found), sum(each.unreadable for each in found)


def test_what_is_written_is_read(tmp_path, keys):
    """In order, by the owner only, and unreadable without the key."""
    sink = SegmentSink(tmp_path, keys)
    sink.write([b"one", b"two"])
    sink.write([b"three"])
    assert recorded(tmp_path, keys) == ([b"one", b"two", b"three"], 0, 0)
    sink.close()
    (path,) = segments_in(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"three" not in path.read_bytes()
    assert recorded(tmp_path, SealKeys(key_file(tmp_path / "other", b"o"))) == ([], 0, 3)


def test_segments_are_bounded(tmp_path, keys, monkeypatch):
    """In bytes, in records and in number; the oldest go first."""
    monkeypatch.setattr("gateway.serving.recording_segments.SEGMENT_RECORDS", 5)
    sink = SegmentSink(tmp_path, keys, segment_bytes=1000, segments=3)
    sizes = [10] * 20 + [400] * 10 + [5000]
    for number, size in enumerate(sizes):
        sink.write([b"%04d" % number + bytes(size)])
    sink.close()
    texts, torn, unreadable = recorded(tmp_path, keys)
    assert [int(text[:4]) for text in texts] == list(range(31 - len(texts), 31))
    assert (len(segments_in(tmp_path)), torn, unreadable) == (3, 0, 0)


def test_a_key_can_be_replaced(tmp_path):
    """The first key of the file seals the next segment; both open."""
    path = key_file(tmp_path / "keys", b"a")
    keys = SealKeys(path)
    for number, content in enumerate([(b"a",), (b"b", b"a")]):
        key_file(path, *content)
        sink = SegmentSink(tmp_path, keys)
        sink.write([b"%d" % number])
        sink.close()
    assert sorted(recorded(tmp_path, keys)[0]) == [b"0", b"1"]
    key_file(path, b"b")
    assert recorded(tmp_path, SealKeys(path)) == ([b"1"], 0, 1)


def test_a_deleted_segment_is_followed_by_another(tmp_path, keys):
    """As when another process deletes the oldest."""
    sink = SegmentSink(tmp_path, keys)
    sink.write([b"one"])
    segments_in(tmp_path)[0].unlink()
    sink.write([b"two"])
    sink.close()
    assert recorded(tmp_path, keys) == ([b"two"], 0, 0)


def test_what_cannot_be_written_is_an_error(tmp_path, keys):
    """A missing directory; a key file that is gone stays what it was."""
    with pytest.raises(WriteError, match="No such file or directory"):
        SegmentSink(tmp_path / "missing", keys).write([b"one"])
    (tmp_path / "keys").unlink()
    sink = SegmentSink(tmp_path, keys)
    sink.write([b"one"])
    sink.close()
    assert recorded(tmp_path, keys)[0] == [b"one"]
    with pytest.raises(WriteError, match="keys: No such file"):
        SegmentSink(tmp_path, SealKeys(tmp_path / "keys")).write([b"one"])


@pytest.fixture(scope="module")
def segment(tmp_path_factory):
    """The bytes of a segment of three recordings, and the keys."""
    directory = tmp_path_factory.mktemp("segment")
    keys = SealKeys(key_file(directory / "keys", b"k"))
    sink = SegmentSink(directory, keys)
    sink.write([b"first", b"second", b"third"])
    sink.close()
    return directory, segments_in(directory)[0].read_bytes(), keys


@given(st.data())
def test_a_cut_segment_has_the_recordings_before_the_cut(segment, data):
    """Wherever a kill or a power failure ends the file."""
    directory, content, keys = segment
    path = directory / "cut"
    end = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:end])
    found = read_segment(path, keys)
    expected = [b"first", b"second", b"third"]
    assert list(found.recordings) == expected[: len(found.recordings)]
    assert found.unreadable == 0
    assert found.torn == (end not in {0, *_ends(content)})


def _ends(content):
    """Where the segment's head and its records end."""
    position = 46
    yield position
    while position < len(content):
        position += 4 + int.from_bytes(content[position : position + 4])
        yield position


@given(st.data())
def test_an_altered_segment_never_shows_another_recording(segment, data):
    """Bytes that were changed, records that were swapped: what is read was written at that place."""
    directory, content, keys = segment
    path = directory / "altered"
    place = data.draw(st.integers(0, len(content) - 1))
    altered = bytearray(content)
    altered[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(altered)
    if place < len(b"admission-gateway recording 1\n"):
        with pytest.raises(ValueError, match="not a file of recordings"):
            read_segment(path, keys)
        return
    found = read_segment(path, keys)
    assert set(found.recordings) < {b"first", b"second", b"third"}
    assert found.torn + found.unreadable > 0


def test_swapped_records_do_not_open(segment):
    """A record belongs to its place in its segment."""
    directory, content, keys = segment
    head, first, second, _ = _ends(content)
    path = directory / "swapped"
    path.write_bytes(content[:head] + content[first:second] + content[head:first] + content[second:])
    found = read_segment(path, keys)
    assert (found.recordings, found.unreadable) == ((b"third",), 2)


def test_another_file_is_no_segment(tmp_path, keys):
    """It is named as such."""
    (tmp_path / "x").write_text("hello")
    with pytest.raises(ValueError, match="not a file of recordings"):
        read_segment(tmp_path / "x", keys)


WRITER = """
    import sys
    from pathlib import Path
    from gateway.redis.sealing import SealKeys
    from gateway.serving.recording_segments import SegmentSink
    sink = SegmentSink(Path(sys.argv[1]), SealKeys(Path(sys.argv[1], "keys")), segment_bytes=500_000)
    number = 0
    while True:
        sink.write([b"%08d" % number + bytes(10_000)])
        number += 1
        if number == 20:
            print("writing", file=sys.stderr, flush=True)
"""


@pytest.mark.integration
def test_a_killed_process_loses_one_recording_at_most(tmp_path, keys):
    """Killed while it writes: what it had written can be read, and a next process goes on in a segment of its own."""
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), tmp_path], stderr=subprocess.PIPE, cwd=ROOT
    )
    with writer:
        assert writer.stderr.readline() == b"writing\n"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    texts, torn, unreadable = recorded(tmp_path, keys)
    numbers = sorted(int(text[:8]) for text in texts)
    assert numbers == list(range(numbers[-1] + 1 - len(numbers), numbers[-1] + 1))
    assert len(numbers) >= 20
    assert (torn in {0, 1}, unreadable) == (True, 0)
    sink = SegmentSink(tmp_path, keys)
    sink.write([b"next"])
    sink.close()
    assert b"next" in recorded(tmp_path, keys)[0]


LIMITED = """
    import resource, sys
    from pathlib import Path
    from gateway.redis.sealing import SealKeys
    from gateway.serving.recording_segments import SegmentSink
    from gateway.telemetry.background_writer import WriteError
    sink = SegmentSink(Path(sys.argv[1]), SealKeys(Path(sys.argv[1], "keys")))
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
    for expected in (4, 0):
        try:
            sink.write([b"x" * 1000] * 10)
        except WriteError as error:
            assert (error.written, "File too large" in str(error)) == (expected, True), (error.written, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    sink.write([b"last"])
"""


@pytest.mark.integration
def test_a_full_disk_leaves_nothing_torn(tmp_path, keys):
    """What does not fit is removed; when there is room again, the segment goes on."""
    subprocess.run([sys.executable, "-c", textwrap.dedent(LIMITED), tmp_path], check=True, cwd=ROOT, timeout=60)
    assert recorded(tmp_path, keys) == ([b"x" * 1000] * 4 + [b"last"], 0, 0)
    assert len(segments_in(tmp_path)) == 1
