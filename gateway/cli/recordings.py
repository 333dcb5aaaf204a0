"""``admission-gateway recordings``: prints recorded reviews, decrypted.

Exit codes, for scripts:

    ====  ===============================================================================================
    0     all recordings were read
    1     some are damaged, or were encrypted with a key that is not in the key file; the others are printed
    2     a file cannot be read or is no recording, or the key file cannot be used
    ====  ===============================================================================================
"""

import sys
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from gateway.cli.standard_streams import COULD_NOT, fail, note
from gateway.redis.sealing import SealKeys
from gateway.serving.recording_segments import SegmentContent, read_segment, segments_in
from gateway.telemetry.logs import configure_logs

UNREADABLE: Final = 1

_PHASES: Final = {None: None, "mutate": "mutating", "validate": "validating"}


class _Recording(Struct):
    """What is read of a recording; the review stays as it is."""

    phase: str
    entry: str | None
    replayable: bool
    review: msgspec.Raw


_decode: Final = msgspec.json.Decoder(_Recording).decode


def run(places: tuple[Path, ...], **values: Any) -> None:
    """See the command."""
    # What is printed is the reviews only.
    stop_logs = configure_logs(level="error", form="text")
    try:
        code = _print(places, **values)
    finally:
        stop_logs()
    sys.exit(code)


def _print(places: tuple[Path, ...], **values: Any) -> int:
    keys = SealKeys(values["recording_key_file"], "recording key file")
    if keys.why:
        fail(keys.why, COULD_NOT)
    phase, entry, whole = _PHASES[values["phase"]], values["entry"], values["output"] == "json"
    codes, partial = {0}, 0
    for path in (file for place in places for file in (segments_in(place) if place.is_dir() else [place])):
        content, code = _read(path, keys)
        codes.add(code)
        for text in content.recordings:
            recording = _decode(text)
            if phase not in {None, recording.phase} or entry not in {None, recording.entry}:
                continue
            if whole or recording.replayable:
                click.echo(text if whole else bytes(recording.review))
            else:
                partial += 1
    if partial:
        note(
            f"{partial} recordings are left out: they lack what a policy received or a condition read; -o json has them"
        )
    return max(codes)


def _read(path: Path, keys: SealKeys) -> tuple[SegmentContent, int]:
    """What a file has, and the exit code that it calls for."""
    try:
        content = read_segment(path, keys)
    except (OSError, ValueError) as error:
        note(f"error: {path}: {error.strerror if isinstance(error, OSError) else error}", fg="red")
        return SegmentContent(), COULD_NOT
    if content.torn:
        note(f"{path}: the last recording is not whole: its process was killed, or still writes it", fg="yellow")
    if content.unreadable:
        note(f"error: {path}: {content.unreadable} recordings are damaged or have another key", fg="red")
    return content, UNREADABLE if content.unreadable else 0
