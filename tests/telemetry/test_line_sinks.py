"""Files of the decision log: bounded, whole lines only, whatever the disk does and whoever else moves them."""

import json
import os
import resource
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from gateway.telemetry.background_writer import WriteError
from gateway.telemetry.line_sinks import DescriptorSink, FileSink

ROOT = Path(__file__).parents[2]


def line(number, size=100):
    """A line of exactly ``size`` bytes."""
    text = json.dumps({"number": number})
    return text[:-1].encode() + b" " * (size - len(text) - 1) + b"}\n"


def numbers(*paths):
    """Those in these files, each line whole."""
    return [json.loads(text)["number"] for path in paths if path.exists() for text in path.read_text().splitlines()]


def test_files_are_bounded_in_size_and_number(tmp_path):
    """The oldest are deleted; what is left are the newest lines, in order."""
    sink = FileSink(tmp_path / "log", file_bytes=1000, files=3)
    for number in range(1000):
        sink.write([line(number)])
    sink.close()
    files = [tmp_path / name for name in ("log.2", "log.1", "log")]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert [each.stat().st_size for each in files] == [1000, 1000, 1000]
    assert numbers(*files) == list(range(970, 1000))
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o640


def test_a_batch_larger_than_a_file_has_one_of_its_own(tmp_path):
    """Nothing is lost for being large."""
    sink = FileSink(tmp_path / "log", file_bytes=1000, files=3)
    sink.write([line(0)])
    sink.write([line(number) for number in range(1, 50)])
    sink.write([line(50)])
    sink.close()
    assert [numbers(tmp_path / name) for name in ("log.2", "log.1", "log")] == [[0], list(range(1, 50)), [50]]


def test_a_start_continues_the_file(tmp_path):
    """What an earlier process wrote stays."""
    for number in range(3):
        sink = FileSink(tmp_path / "log")
        sink.write([line(number)])
        sink.close()
    assert numbers(tmp_path / "log") == [0, 1, 2]


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_another_program_may_rotate_the_file(tmp_path, how):
    """A file that was moved or deleted is created again, without a signal."""
    sink = FileSink(tmp_path / "log")
    sink.write([line(0)])
    if how == "moved":
        (tmp_path / "log").rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "log").unlink()
    sink.write([line(1)])
    sink.close()
    assert numbers(tmp_path / "log") == [1]


def test_a_missing_directory_is_an_error_until_it_is_there(tmp_path):
    """And so is a directory in the file's place."""
    sink = FileSink(tmp_path / "missing" / "log")
    for _ in range(2):
        with pytest.raises(WriteError, match=r"No such file or directory \(errno 2\)"):
            sink.write([line(0)])
    (tmp_path / "missing").mkdir()
    sink.write([line(1)])
    sink.close()
    assert numbers(tmp_path / "missing" / "log") == [1]
    with pytest.raises(WriteError, match="Is a directory"):
        FileSink(tmp_path).write([line(0)])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_is_an_error():
    """For a file, and for a descriptor."""
    with pytest.raises(WriteError, match="No space left on device"):
        FileSink(Path("/dev/full")).write([line(0)])
    with Path("/dev/full").open("wb") as full, pytest.raises(WriteError, match="No space left on device"):
        DescriptorSink(full.fileno(), "full").write([line(0)])


def test_a_closed_pipe_is_an_error():
    """Its reader has gone."""
    reading, descriptor = os.pipe()
    os.close(reading)
    with pytest.raises(WriteError, match="Broken pipe"):
        DescriptorSink(descriptor, "a pipe").write([line(0)])
    os.close(descriptor)


@pytest.mark.integration
def test_a_descriptor_that_does_not_block_is_waited_for():
    """As one that does: its other owner may have changed that."""
    reading, descriptor = os.pipe()
    os.set_blocking(descriptor, False)
    reader = subprocess.Popen(["wc", "-l"], stdin=reading, stdout=subprocess.PIPE)
    os.close(reading)
    DescriptorSink(descriptor, "a pipe").write([line(number) for number in range(10_000)])
    os.close(descriptor)
    assert reader.communicate()[0].strip() == b"10000"


SHARING = """
    import sys
    from gateway.telemetry.line_sinks import DescriptorSink
    sink = DescriptorSink(1, "standard output", shared=True)
    print("begins", file=sys.stderr, flush=True)
    for _ in range(20):
        sink.write([sys.argv[1].encode() * 199_999 + b"\\n"])
"""


@pytest.mark.integration
def test_processes_that_share_a_pipe_write_whole_lines():
    """Also lines that are longer than what a pipe holds."""
    reading, descriptor = os.pipe()
    command = [sys.executable, "-c", textwrap.dedent(SHARING)]
    writers = [subprocess.Popen([*command, name], stdout=descriptor, stderr=subprocess.PIPE) for name in "ab"]
    os.close(descriptor)
    for writer in writers:
        # The pipe fills, and both wait for the reader.
        with writer.stderr as reports:
            assert reports.readline() == b"begins\n"
    with os.fdopen(reading, "rb") as pipe:
        lines = Counter(pipe)
    assert lines == {b"a" * 199_999 + b"\n": 20, b"b" * 199_999 + b"\n": 20}
    assert [writer.wait() for writer in writers] == [0, 0]


LIMITED = """
    import resource, sys
    from pathlib import Path
    from gateway.telemetry.background_writer import WriteError
    from gateway.telemetry.line_sinks import DescriptorSink, FileSink
    path = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (1050, resource.RLIM_INFINITY))
    opened = path.open("ab")
    sink = FileSink(path) if sys.argv[2] == "file" else DescriptorSink(opened.fileno(), "d")
    lines = [b'{"number": %d}'.ljust(99) % number + b"\\n" for number in range(20)]
    for expected in (10, 0):
        try:
            sink.write(lines)
        except WriteError as error:
            assert error.written == expected, error.written
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    sink.write([b'{"number": 99}\\n'])
"""


def limited(path, kind):
    """Write to a file that may have 1,050 bytes, and once more when it may have more."""
    code = textwrap.dedent(LIMITED)
    subprocess.run([sys.executable, "-c", code, path, kind], check=True, cwd=ROOT, timeout=60)


@pytest.mark.integration
def test_a_line_that_does_not_fit_is_removed_whole(tmp_path):
    """A limit in the middle of a line: the lines before it stay, that one and the rest are not written."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    limited(tmp_path / "log", "file")
    assert numbers(tmp_path / "log") == [*range(10), 99]


@pytest.mark.integration
def test_behind_a_cut_line_the_next_is_whole(tmp_path):
    """Of what is no file of ours, nothing can be removed: what was cut ends in a line of its own."""
    limited(tmp_path / "log", "descriptor")
    lines = (tmp_path / "log").read_text().splitlines()
    assert json.loads(lines[-1]) == {"number": 99}
    assert [json.loads(each)["number"] for each in lines[:10]] == list(range(10))
    assert len(lines) == 12


@pytest.mark.integration
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="only root can mount")
def test_a_full_disk_keeps_whole_lines(tmp_path):
    """A file system of 64 KiB: what fits is kept, and when there is room again, writing goes on."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path], check=False).returncode:
        pytest.skip("mounts are not permitted here")
    try:
        sink = FileSink(tmp_path / "log")
        (tmp_path / "other").write_bytes(bytes(30_000))
        with pytest.raises(WriteError, match="No space left on device") as raised:
            sink.write([line(number, 999) for number in range(100)])
        kept = raised.value.written
        assert 0 < kept < 100
        (tmp_path / "other").unlink()
        sink.write([line(100)])
        sink.close()
        assert numbers(tmp_path / "log") == [*range(kept), 100]
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


SHARED = """
    import sys
    from pathlib import Path
    from gateway.telemetry.line_sinks import FileSink
    sink = FileSink(Path(sys.argv[1]), file_bytes=20_000, files=9)
    for number in range(500):
        sink.write([b'{"number": %d}'.ljust(99) % (1000 * int(sys.argv[2]) + number) + b"\\n"])
"""


@pytest.mark.integration
def test_several_processes_write_one_file(tmp_path):
    """Each line is whole, none is lost or written twice, and the files stay bounded."""
    code = textwrap.dedent(SHARED)
    running = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "log", str(each)], cwd=ROOT) for each in (1, 2)]
    assert [each.wait(60) for each in running] == [0, 0]
    files = sorted(tmp_path.iterdir())
    assert max(each.stat().st_size for each in files) <= 20_000 + 200
    assert sorted(numbers(*files)) == [*range(1000, 1500), *range(2000, 2500)]
