"""Files and directories: all of them or none, and each refusal says which file, what was found, and what to do."""

import os

import pytest

from gateway.sources import files
from gateway.sources.files import MAX_FILE_BYTES, SourceError, read
from gateway.sources.loading import load_configuration

WORKER = """
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: NAME}
spec: {grpc: {target: "unix:a.sock", command: [a]}}
"""


def test_files_in_order(tmp_path):
    """Files are read as they are named, whatever they are called, with their directory."""
    (tmp_path / "b").write_bytes(b"1")
    (tmp_path / "a.txt").write_bytes(b"\xff")
    texts = read([tmp_path / "b", tmp_path / "a.txt"])
    assert [(text.name, text.content) for text in texts] == [
        (str(tmp_path / "b"), b"1"),
        (str(tmp_path / "a.txt"), b"\xff"),
    ]
    assert {text.directory for text in texts} == {str(tmp_path)}


def test_directory(tmp_path):
    """Of a directory, .yaml, .yml and .json files are read by name; hidden ones, others and subdirectories are not."""
    for name in ["b.yaml", "a.yml", "c.json", "D.YAML", ".hidden.yaml", "a.yaml~", "README.md", "yaml"]:
        (tmp_path / name).write_text(name)
    (tmp_path / "sub.yaml").mkdir()
    (tmp_path / "sub.yaml" / "inner.yaml").write_text("inner")
    assert [text.content.decode() for text in read([tmp_path])] == ["D.YAML", "a.yml", "b.yaml", "c.json"]


def test_relative_path(tmp_path, monkeypatch):
    """A name in messages is the one that was given; the directory of commands is absolute."""
    (tmp_path / "a.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    (text,) = read([files.Path("a.yaml")])
    assert (text.name, text.directory) == ("a.yaml", str(tmp_path))


def test_named_twice(tmp_path):
    """What is named twice is read once: as a file, through its directory, and through a link."""
    (tmp_path / "a.yaml").write_text("x")
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    assert [text.name for text in read([tmp_path / "a.yaml", tmp_path, tmp_path / "b.yaml"])] == [
        str(tmp_path / "a.yaml")
    ]


def config_map(directory, version, contents):
    """What the kubelet makes of a ConfigMap: links into ``..data``, which is swapped at once."""
    inner = directory / f"..{version}"
    inner.mkdir()
    for name, content in contents.items():
        (inner / name).write_text(content)
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    (directory / "..data_tmp").symlink_to(inner.name)
    (directory / "..data_tmp").rename(directory / "..data")


def test_config_map(tmp_path):
    """A mounted ConfigMap is read through its visible links, each file once."""
    config_map(tmp_path, "1", {"a.yaml": "1a", "b.yaml": "1b"})
    texts = read([tmp_path])
    assert [text.content for text in texts] == [b"1a", b"1b"]
    assert {text.directory for text in texts} == {str(tmp_path)}


def test_config_map_swapped_while_read(tmp_path, monkeypatch):
    """A ConfigMap that is swapped between two files is read again: never half of the one and half of the other."""
    config_map(tmp_path, "1", {"a.yaml": "1a", "b.yaml": "1b"})
    original = files._read_file
    versions = iter(["2", "3"])

    def swapping(path):
        text = original(path)
        if path.name == "a.yaml" and (version := next(versions, None)):
            config_map(tmp_path, version, {"a.yaml": f"{version}a", "b.yaml": f"{version}b"})
        return text

    monkeypatch.setattr(files, "_read_file", swapping)
    assert [text.content for text in read([tmp_path])] == [b"3a", b"3b"]


def test_file_that_vanishes_while_read(tmp_path, monkeypatch):
    """A file that vanishes between listing and reading was replaced: the rest is read again."""
    (tmp_path / "a.yaml").write_text("a")
    (tmp_path / "b.yaml").write_text("b")
    original = files._read_file

    def removing(path):
        text = original(path)
        (tmp_path / "b.yaml").unlink(missing_ok=True)
        return text

    monkeypatch.setattr(files, "_read_file", removing)
    assert [text.content for text in read([tmp_path])] == [b"a"]


def test_file_that_never_rests(tmp_path, monkeypatch):
    """Files that change each time they are read are refused in the end."""
    path = tmp_path / "a.yaml"
    path.write_text("")
    original = files._read_file

    def growing(file):
        path.write_text(path.read_text() + "x")
        return original(file)

    monkeypatch.setattr(files, "_read_file", growing)
    with pytest.raises(SourceError, match=r"a\.yaml: the files changed while they were read, 3 times in a row; put"):
        read([path])


def refusal(*paths):
    """The message with which these paths are refused."""
    with pytest.raises(SourceError) as caught:
        read(paths)
    return str(caught.value)


def test_nothing_named():
    """No path at all is refused: it would be a gateway that allows everything."""
    assert refusal() == "policies: no file and no directory is named; name at least one"


def test_missing(tmp_path):
    """A path that does not exist is refused, and none of the others is taken."""
    (tmp_path / "a.yaml").write_text(WORKER)
    assert refusal(tmp_path / "a.yaml", tmp_path / "b.yaml") == (
        f"policies: {tmp_path}/b.yaml: cannot be read: No such file or directory; check the path and its permissions"
    )


def test_empty_directory(tmp_path):
    """A directory without a file to read is refused."""
    (tmp_path / "README.md").write_text("")
    assert refusal(tmp_path).startswith(f"policies: {tmp_path}: the directory holds no file that ends in .yaml")


def test_dangling_link(tmp_path):
    """A link that leads nowhere is a file that cannot be read, not one that is not there."""
    (tmp_path / "a.yaml").symlink_to("nowhere")
    assert "a.yaml: cannot be read: No such file or directory" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    """A file and a directory that may not be read are refused."""
    path = tmp_path / "sub" / "a.yaml"
    path.parent.mkdir()
    path.write_text("")
    path.chmod(0)
    assert "Permission denied" in refusal(path.parent)
    path.parent.chmod(0)
    try:
        assert "Permission denied" in refusal(path.parent)
        assert "Permission denied" in refusal(path)
    finally:
        path.parent.chmod(0o700)


def test_error_of_the_file_system(tmp_path, monkeypatch):
    """The file system's error is reported."""

    def failing(path, flags):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.yaml").write_text("")
    monkeypatch.setattr(files.os, "open", failing)
    assert refusal(tmp_path) == (
        f"policies: {tmp_path}/a.yaml: cannot be read: Permission denied; check the path and its permissions"
    )


def test_pipe(tmp_path):
    """A named pipe is refused at once: reading it could block for ever."""
    os.mkfifo(tmp_path / "a.yaml")
    assert refusal(tmp_path).endswith("a.yaml: not a regular file; name a file or a directory of files")


def test_too_large(tmp_path):
    """A file over the limit is refused unread; one of just that size is read."""
    path = tmp_path / "a.yaml"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES)
    assert len(read([path])[0].content) == MAX_FILE_BYTES
    with path.open("ab") as file:
        file.write(b"\0")
    assert refusal(path).endswith("a.yaml: the file is larger than 16777216 bytes; split it into several")


def test_names_that_are_not_unicode(tmp_path):
    """A file's name may be any bytes: it is shown as far as it can be."""
    path = files.Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml"))
    assert "/?.yaml: cannot be read" in refusal(path)
    path.write_text(WORKER)
    (text,) = read([tmp_path])
    assert text.name == f"{tmp_path}/?.yaml"


def test_load_configuration(tmp_path):
    """Reading and loading are one step: errors name the file, and a worker's command starts in the file's directory."""
    (tmp_path / "a.yaml").write_text(WORKER.replace("NAME", "good"))
    (tmp_path / "b.yaml").write_text(WORKER.replace("NAME", "BAD"))
    loaded = load_configuration([tmp_path])
    assert loaded.workers["good"].grpc.directory == str(tmp_path)
    (error,) = loaded.errors
    assert str(error).startswith(f"{tmp_path}/b.yaml:4: metadata.name: Invalid value: ")


def test_a_directory_has_so_many_files(tmp_path, monkeypatch):
    """A directory with more entries than a source may have files is another one's, and is not read."""
    monkeypatch.setattr(files, "MAX_FILES", 3)
    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text("a: 1")
    assert len(read([tmp_path])) == 3
    (tmp_path / "another").write_text("")
    with pytest.raises(SourceError, match="more than 3 files; name a directory that holds only the policies"):
        read([tmp_path])


def test_all_files_together_have_so_many_bytes(tmp_path, monkeypatch):
    """Files of which each is small enough are refused together; the one that was too much is named."""
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text("a: 1")
    with pytest.raises(SourceError, match=r"2\.yaml: with this file, all files together have more than 10 bytes"):
        read([tmp_path])
    assert len(read([tmp_path / "0.yaml", tmp_path / "1.yaml"])) == 2


def test_a_device_and_a_loop_of_links_are_refused_at_once(tmp_path):
    """What never ends is not read: a device, a link to itself."""
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    with pytest.raises(SourceError, match="not a regular file"):
        read([tmp_path])
    (tmp_path / "zero.yaml").unlink()
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    with pytest.raises(SourceError, match=r"loop\.yaml: cannot be read"):
        read([tmp_path])
