"""``recordings``: what ``serve`` recorded, as ``review`` takes it."""

import base64
import json
from pathlib import Path

import pytest

from gateway.redis.sealing import SealKeys
from gateway.serving.recording_segments import SegmentSink, segments_in
from tests.traffic import recording

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text(base64.b64encode(bytes(32)).decode())
    return path


@pytest.fixture
def directory(tmp_path, keys):
    """A directory with three recordings; the last cannot be replayed."""
    reviews = [json.loads(recording(name).body) for name in ("kubectl-run.0m", "kubectl-run.1v", "kubectl-run.1v")]
    sink = SegmentSink(tmp_path, SealKeys(keys))
    for number, review in enumerate(reviews):
        phase, entry = ("validating", "group.x") if number else ("mutating", None)
        document = {"phase": phase, "entry": entry, "review": review, "replayable": number < 2, "outcome": "allowed"}
        sink.write([json.dumps(document).encode()])
    sink.close()
    return tmp_path


def printed(run, *arguments, code=0):
    result = run("recordings", *map(str, arguments))
    assert result.code == code, result.err
    return [json.loads(line) for line in result.out.splitlines()], result.err


def test_reviews_are_printed(run, directory, keys):
    """Those that can be replayed; how many others there are stands on standard error."""
    reviews, others = printed(run, directory, "--recording-key-file", keys)
    assert reviews == [json.loads(recording(name).body) for name in ("kubectl-run.0m", "kubectl-run.1v")]
    assert "1 recordings are left out" in others


@pytest.mark.parametrize(
    ("arguments", "count"),
    [(["--phase", "mutate"], 1), (["--phase", "validate"], 1), (["--entry", "group.x"], 1), (["--entry", "other"], 0)],
)
def test_a_phase_or_an_entry_is_chosen(run, directory, keys, arguments, count):
    """As review needs it."""
    assert len(printed(run, directory, "--recording-key-file", keys, *arguments)[0]) == count


def test_decisions_are_printed_as_well(run, directory, keys):
    """All of them, as they were recorded; from a file as from its directory."""
    (path,) = segments_in(directory)
    entries, others = printed(run, path, "--recording-key-file", keys, "-o", "json")
    assert [each["outcome"] for each in entries] == ["allowed"] * 3
    assert others == ""


def test_what_cannot_be_read_is_an_error(run, directory, keys, tmp_path):
    """Another key: 1. No such file, no recording, no key: 2. A recording that is torn: none."""
    (path,) = segments_in(directory)
    other = tmp_path / "other"
    other.write_text(base64.b64encode(b"o" * 32).decode())
    _, error = printed(run, directory, "--recording-key-file", other, code=1)
    assert "3 recordings are damaged or have another key" in error
    assert "not a file of recordings" in printed(run, keys, path, "--recording-key-file", keys, code=2)[1]
    assert "No such file" in printed(run, tmp_path / "none", "--recording-key-file", keys, code=2)[1]
    assert "it contains no key" in printed(run, path, "--recording-key-file", "/dev/null", code=2)[1]
    path.write_bytes(path.read_bytes()[:-1])
    reviews, error = printed(run, directory, "--recording-key-file", keys)
    assert len(reviews) == 2
    assert "the last recording is not whole" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--entry", "x"], "--entry requires --phase mutate or validate"),
        (["--entry", "x", "--phase", "validate"], "--entry x: no entry of this phase"),
    ],
)
def test_an_entry_belongs_to_a_phase(run, arguments, message):
    """review says so."""
    review = EXAMPLES / "reviews" / next(path.name for path in (EXAMPLES / "reviews").glob("*.json"))
    result = run("review", "--policies", str(EXAMPLES / "policies"), str(review), *arguments)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize("missing", ["--recording-dir", "--recording-key-file"])
def test_recordings_are_encrypted(run, keys, tmp_path, missing):
    """There is no directory of recordings without a key file; and the file must have a key."""
    options = {"--recording-dir": str(tmp_path), "--recording-key-file": "/dev/null"}
    both = [each for pair in options.items() for each in pair]
    serve = ["serve", "--policies", str(EXAMPLES / "policies"), "--tls-dev-dir", str(tmp_path)]
    result = run(*serve, *both)
    assert (result.code, "it contains no key" in result.err) == (2, True)
    del options[missing]
    result = run(*serve, *(each for pair in options.items() for each in pair))
    assert (result.code, "require each other" in result.err) == (2, True)
