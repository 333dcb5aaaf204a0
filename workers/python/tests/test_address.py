"""Where a worker listens: as operators write it, and whether it can."""

import socket

import pytest

from admission_worker import AddressError, Worker
from admission_worker.address import Address, parse
from workers.python.tests.client import connected


@pytest.fixture
def worker():
    return Worker("test", version="1")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:50051", Address(host="127.0.0.1", port=50051)),
        ("localhost:0", Address(host="localhost", port=0)),
        ("dns:///worker.svc:50051", Address(host="worker.svc", port=50051)),
        ("[::1]:50051", Address(host="::1", port=50051)),
        ("unix:worker.sock", Address(path="worker.sock")),
        ("unix:/run/worker.sock", Address(path="/run/worker.sock")),
        ("unix:///run/worker.sock", Address(path="/run/worker.sock")),
    ],
)
def test_an_address_is_read(text, address):
    """TCP and Unix sockets, as a gRPC client's target or without its scheme; what is printed reads back the same."""
    assert parse(text) == address
    assert parse(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "50051",
        ":50051",
        "localhost",
        "localhost:",
        "localhost:http",
        "localhost:-1",
        "localhost:65536",
        "localhost:٣",
        "::1:50051",
        "http://localhost:50051",
        "dns://8.8.8.8/worker:50051",
        "unix:",
        "unix://",
        "unix://run/worker.sock",
        "unix:" + "x" * 108,
    ],
)
def test_what_is_no_address_is_refused(text):
    """With an example of one that is."""
    with pytest.raises(AddressError):
        parse(text)


async def test_a_socket_that_nobody_listens_on_is_taken_over(worker, tmp_path):
    """A worker that was killed leaves its file behind; the next one removes it."""
    path = tmp_path / "w.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    async with connected(worker, address=f"unix:{path}") as client:
        assert (await client.describe()).worker == "test"
    assert not path.exists()


async def test_a_socket_that_somebody_listens_on_is_left_to_them(worker, tmp_path):
    """The second worker is refused, and the first goes on."""
    where = f"unix:{tmp_path}/w.sock"
    async with connected(worker, address=where) as client:
        with pytest.raises(AddressError, match="another process listens there"):
            async with worker.serve(where):
                pass
        assert (await client.describe()).worker == "test"


async def test_a_file_that_is_no_socket_is_left_alone(worker, tmp_path):
    """Somebody's file is not removed because an operator mistyped a path."""
    path = tmp_path / "w.sock"
    path.write_text("precious")
    with pytest.raises(AddressError, match="is no socket"):
        async with worker.serve(f"unix:{path}"):
            pass
    assert path.read_text() == "precious"


async def test_a_missing_directory_is_named(worker, tmp_path):
    """What is missing is said, and not created."""
    with pytest.raises(AddressError, match="missing is no directory"):
        async with worker.serve(f"unix:{tmp_path}/missing/w.sock"):
            pass


async def test_a_port_that_is_taken_is_refused(worker):
    """Two workers do not share a port: each would be asked for the other's policies."""
    async with worker.serve() as address:
        with pytest.raises(AddressError, match="Address already in use"):
            async with worker.serve(address):
                pass


async def test_a_host_that_is_not_ours_is_refused(worker):
    """An address of another machine, or a name that is none, is one line."""
    with pytest.raises(AddressError, match=r"cannot listen on 192\.0\.2\.1:0"):
        async with worker.serve("192.0.2.1:0"):
            pass
    with pytest.raises(AddressError, match=r"cannot listen on no-such-host\.invalid:0"):
        async with worker.serve("no-such-host.invalid:0"):
            pass


async def test_a_relative_path_is_below_the_working_directory(worker, tmp_path, monkeypatch):
    """As a configuration writes it beside its worker."""
    monkeypatch.chdir(tmp_path)
    async with worker.serve("unix:w.sock") as address:
        assert address == "unix:w.sock"
        assert (tmp_path / "w.sock").is_socket()
