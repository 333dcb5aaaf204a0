"""``new-worker``: a whole project, or nothing at all and the reason."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import sdk_sources
from gateway.cli.commands.new_worker import LANGUAGES
from gateway.cli.main import main
from tests.cli.projects import NAME, made


def test_the_output(tmp_path):
    """Where the project is, and the three commands that come next."""
    output = made("go", tmp_path / NAME)
    assert output.startswith(f"{tmp_path / NAME}: ")
    assert [line.split("  ")[1] for line in output.splitlines() if line.startswith("  ")] == [
        "make test",
        "make run",
        "make kit",
    ]


def test_into_the_current_directory(tmp_path, monkeypatch):
    """Without --directory the project is in ./NAME, in the namespace policies."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["new-worker", "--lang", "python", NAME])
    assert done.exit_code == 0
    assert ".policies.svc:" in (tmp_path / NAME / "worker.yaml").read_text()


def test_into_an_empty_directory(tmp_path):
    """One that is there and empty is as good as none."""
    made("python", tmp_path)
    assert (tmp_path / "README.md").exists()


@pytest.mark.parametrize(
    "name", ["", "9lives", "-a", "a-", "Team", "a_b", "a.b", "ü", "a/b", "../a", "a" * 51, "a\n", "\x1b[31m"]
)
def test_a_name_that_cannot_be_used(tmp_path, monkeypatch, name):
    """The error has the rule and a valid name; exit code 2, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["new-worker", "--lang", "go", "--", name])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "at most 50 characters" in done.stderr
    assert "\x1b" not in done.stderr
    suggested = done.stderr.strip().rpartition("such as ")[2]
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,48}[a-z0-9])?", suggested)
    assert list(tmp_path.iterdir()) == []


def test_all_errors_at_once(run, tmp_path):
    """Name, namespace and directory, each in a line of its own."""
    (tmp_path / "notes.txt").write_text("mine")
    done = run("new-worker", "--lang", "go", "--namespace", "A", "--directory", tmp_path, "B")
    assert (done.code, done.out) == (2, "")
    name, namespace, directory = done.err.splitlines()
    assert name.startswith("error: NAME: 'B' is not a valid name")
    assert namespace.startswith("error: --namespace: 'A' is not a valid namespace")
    assert directory.startswith(f"error: {tmp_path} is not empty: it contains notes.txt; use another NAME")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_in_the_way(run, tmp_path):
    """A file of that name stays as it is; so does a link that leads nowhere."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        done = run("new-worker", "--lang", "go", "--directory", tmp_path / name, NAME)
        assert (done.code, done.out) == (2, "")
        assert "exists and is not a directory" in done.err
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_whatever_cannot_be_written_leaves_nothing(run, tmp_path, monkeypatch):
    """If the disk becomes full, what was written is removed, the new directories as well."""
    write, count = Path.write_bytes, iter(range(10))

    def full(path, content):
        if next(count, None) is None:
            raise OSError(28, "No space left on device", str(path))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    done = run("new-worker", "--lang", "go", "--directory", tmp_path / "a/b", NAME)
    assert (done.code, done.out) == (2, "")
    assert "No space left on device; no file of the project is left" in done.err
    assert list(tmp_path.iterdir()) == []


def test_an_sdk_that_is_not_there(run, tmp_path, monkeypatch):
    """The error names the SDK, the places and what to do; nothing is written."""
    monkeypatch.setattr(sdk_sources, "__file__", str(tmp_path / "site/gateway/cli/sdk_sources.py"))
    done = run("new-worker", "--lang", "go", "--directory", tmp_path / "p", NAME)
    assert (done.code, done.out) == (2, "")
    assert "the sources of the go SDK are missing: no go.mod in" in done.err
    assert "reinstall admission-gateway" in done.err
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("language", "file", "text"),
    [
        ("go", "go.mod", ""),
        ("go", "go.mod", "go 1.26.0\n"),
        ("java", "pom.xml", "<project/>"),
        ("java", "pom.xml", "<version>1</version><junit.version>5</junit.version>"),
        ("node", "package.json", "{"),
        ("node", "package.json", "{}"),
        ("rust", "Cargo.toml", "["),
        ("rust", "Cargo.toml", "[dependencies]"),
    ],
)
def test_an_sdk_that_is_broken(run, tmp_path, monkeypatch, language, file, text):
    """The error names the SDK with an incomplete file, and nothing is written."""
    folder = tmp_path / "site/gateway/cli/sdks" / language
    folder.mkdir(parents=True)
    (folder / file).write_text(text)
    monkeypatch.setattr(sdk_sources, "__file__", str(tmp_path / "site/gateway/cli/sdk_sources.py"))
    done = run("new-worker", "--lang", language, "--directory", tmp_path / "p", NAME)
    assert (done.code, done.out) == (2, "")
    assert f"the {language} SDK" in done.err
    assert not (tmp_path / "p").exists()


def test_no_language(run):
    """Without --lang, or with an unknown one, the error lists the languages."""
    for arguments in ([NAME], ["--lang", "cobol", NAME]):
        done = run("new-worker", *arguments)
        assert done.code == 2
        assert all(each in done.err for each in LANGUAGES)
