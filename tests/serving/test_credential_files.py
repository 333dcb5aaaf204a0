"""Files of credentials: what is one, what is not, and what a change of a file does."""

import asyncio
import hmac
import os
from contextlib import asynccontextmanager

import pytest

from gateway.serving.credential_files import (
    BEARER_TOKENS,
    MAX_CREDENTIALS,
    MAX_LINE_BYTES,
    PASSWORDS,
    PATH_SECRETS,
    CredentialError,
    CredentialFile,
    CredentialFiles,
    credentials_in,
)
from gateway.telemetry.metrics import Metrics
from tests.caching.world import until
from tests.samples import sample_value

SECRET = "0123456789abcdef0123456789abcdef"


def file_with(folder, content):
    path = folder / "credentials"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("kind", "content", "found"),
    [
        (BEARER_TOKENS, "one", ("one",)),
        (BEARER_TOKENS, "# old\none \r\n\n\t two\n", ("one", "two")),
        (BEARER_TOKENS, "one\none\n", ("one",)),
        (BEARER_TOKENS, "\ufeffone", ("one",)),
        (BEARER_TOKENS, "a.b-c_d~e+f/g==", ("a.b-c_d~e+f/g==",)),
        (PASSWORDS, "hooks:p:ss wörd\n", ("hooks:p:ss wörd",)),
        (PASSWORDS, "user:ends with a space \r\n", ("user:ends with a space ",)),
        (PASSWORDS, " \nuser: \n", ("user: ",)),
        (PATH_SECRETS, f"{SECRET}\n{SECRET[::-1]}", (SECRET, SECRET[::-1])),
    ],
)
def test_a_line_is_a_credential(tmp_path, kind, content, found):
    """Lines are credentials in their order, once each; empty ones, comments and ends of lines are not part of any."""
    assert credentials_in(file_with(tmp_path, content), kind) == found


@pytest.mark.parametrize(
    ("kind", "content", "why"),
    [
        (BEARER_TOKENS, "", "it contains no credential; create a token with `openssl rand -hex 32`"),
        (BEARER_TOKENS, "\n \r\n# one\n", "it contains no credential"),
        (BEARER_TOKENS, "good\nhidden one", "line 2: a token has visible ASCII characters only, and no space"),
        (BEARER_TOKENS, "hiddeñ", "line 1: a token has visible"),
        (BEARER_TOKENS, b"hidden\xff", "line 1: not UTF-8"),
        (BEARER_TOKENS, "hid\0den", "line 1: a token has visible"),
        (BEARER_TOKENS, "hidden".ljust(MAX_LINE_BYTES + 1, "x"), "line 1: 4097 bytes, expected at most 4096"),
        (
            BEARER_TOKENS,
            "\n".join(f"hidden{number}" for number in range(MAX_CREDENTIALS + 1)),
            "17 credentials, expected at most 16; remove",
        ),
        (PASSWORDS, "hidden", "line 1: expected USER:PASSWORD"),
        (PASSWORDS, "hidden:", "line 1: expected USER:PASSWORD"),
        (PASSWORDS, ":hidden", "line 1: expected USER:PASSWORD"),
        (PASSWORDS, "user:hid\tden", "line 1: it has a control character"),
        (PASSWORDS, "user:hidden\r\r\n", "line 1: it has a control character"),
        (PATH_SECRETS, "hidden", "line 1: expected 32 to 63 lower case letters, digits and inner hyphens, found 6"),
        (PATH_SECRETS, SECRET.upper(), "found 32 characters"),
        (PATH_SECRETS, f"{SECRET}/", "found 33 characters"),
        (PATH_SECRETS, f"-{SECRET}", "found 33 characters"),
        (PATH_SECRETS, SECRET * 2, "found 64 characters"),
    ],
)
def test_what_is_no_credential_is_named_and_not_shown(tmp_path, kind, content, why):
    """The error has the flag, the file and the line, and nothing of the content."""
    path = file_with(tmp_path, content)
    with pytest.raises(CredentialError) as raised:
        CredentialFile(path, kind)
    assert str(raised.value).startswith(f"{kind.flag} {path}")
    assert why in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    """A missing file, a directory, a pipe that nothing writes to, and more than a file of credentials can be."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x\n" * 1024 * 1024)
    for name in ("none", ".", "pipe", "large"):
        with pytest.raises(CredentialError, match="give it a file that this user can read"):
            CredentialFile(tmp_path / name, BEARER_TOKENS)


def test_all_credentials_are_compared(tmp_path, monkeypatch):
    """Also those after one that matches, by a comparison that does not end at the first difference."""
    compared = []

    def compare(one, other):
        compared.append((len(one), len(other)))
        return one == other

    file = CredentialFile(file_with(tmp_path, "one\ntwo\nthree"), BEARER_TOKENS)
    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert [file.matches(b"bearer " + each) for each in (b"one", b"three", b"four", b"")] == [True, True, False, False]
    assert compared == [(32, 32)] * 12


@asynccontextmanager
async def watched(path, interval=0):
    """A file that is watched, and its metrics; by default it is read again on request."""
    metrics = Metrics()
    file = CredentialFile(path, BEARER_TOKENS)
    files = CredentialFiles([file], metrics)
    watching = asyncio.create_task(files.watch(interval))
    try:
        yield (
            file,
            files,
            lambda result: sample_value(metrics, "admission_gateway_credential_reloads_total", {"result": result}),
        )
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def rewritten(path, content):
    path.write_text(content)


def renamed(path, content):
    path.with_name("new").write_text(content)
    path.with_name("new").rename(path)


def swapped(path, content):
    """As the kubelet does: the link to a directory is replaced."""
    version = path.with_name(f"..{len(list(path.parent.iterdir()))}")
    version.mkdir()
    (version / path.name).write_text(content)
    path.with_name("..tmp").symlink_to(version.name)
    path.with_name("..tmp").rename(path.with_name("..data"))
    if not path.is_symlink():
        path.symlink_to(f"..data/{path.name}")


@pytest.mark.parametrize("interval", [0, 0.01])
@pytest.mark.parametrize("replace", [rewritten, renamed, swapped])
async def test_a_changed_file_is_read_again(tmp_path, replace, interval):
    """However it is replaced: on request, or in time."""
    path = tmp_path / "tokens"
    replace(path, "old")
    async with watched(path, interval) as (file, files, reloads):
        assert file.matches(b"bearer old")
        replace(path, "old\nnew")
        files.look()
        await until(lambda: reloads("loaded") == 1)
        assert file.matches(b"bearer old")
        assert file.matches(b"bearer new")
        replace(path, "new")
        files.look()
        await until(lambda: reloads("loaded") == 2)
        assert not file.matches(b"bearer old")
    assert reloads("invalid") == 0


@pytest.mark.parametrize("content", ["", "a b", None], ids=["empty", "no token", "absent"])
async def test_a_file_that_cannot_be_used_changes_nothing(tmp_path, logs, content):
    """The credentials read before stay; the log has the reason once, readiness a note, until the file can be used."""
    path = file_with(tmp_path, "old")
    async with watched(path) as (file, files, reloads):
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
        for _ in range(3):
            files.look()
            await until(lambda: not files._poll_timer._called.is_set())
        await until(lambda: reloads("invalid") == 1)
        assert file.matches(b"bearer old")
        assert f"stay valid, because the file cannot be used: --bearer-token-file {path}" in files.note
        assert [each["event"] for each in logs] == ["the new credentials cannot be used; those read before stay valid"]
        path.write_text("new")
        files.look()
        await until(lambda: files.note is None)
        assert file.matches(b"bearer new")


def test_a_change_counts_at_the_second_poll(tmp_path):
    """At the first, a process may still be writing: half a token is a token."""
    path = file_with(tmp_path, "old")
    file = CredentialFile(path, BEARER_TOKENS)
    path.write_text("ha")
    assert not file.poll(requested=False)
    path.write_text("half")
    assert not file.poll(requested=False)
    assert file.matches(b"bearer old")
    assert file.poll(requested=False)
    assert file.matches(b"bearer half")
    assert not file.poll(requested=True)
