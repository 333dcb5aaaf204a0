"""Parsing the address to listen on, and checking that it is free."""

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
    """An address is parsed with and without a gRPC target's scheme, and its text parses to the same address."""
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
def test_an_invalid_address_is_an_error(text):
    """An error has an example of a valid address."""
    with pytest.raises(AddressError):
        parse(text)


async def test_an_unused_socket_file_is_replaced(worker, tmp_path):
    """A worker removes the socket file of a killed one."""
    path = tmp_path / "w.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    async with connected(worker, address=f"unix:{path}") as client:
        assert (await client.describe()).worker == "test"
    assert not path.exists()


async def test_a_socket_in_use_is_not_replaced(worker, tmp_path):
    """A second worker on a socket fails, and the first goes on."""
    where = f"unix:{tmp_path}/w.sock"
    async with connected(worker, address=where) as client:
        with pytest.raises(AddressError, match="another process listens there"):
            async with worker.serve(where):
                pass
        assert (await client.describe()).worker == "test"


async def test_a_file_that_is_not_a_socket_is_not_removed(worker, tmp_path):
    """A worker does not remove a file that is not a socket."""
    path = tmp_path / "w.sock"
    path.write_text("precious")
    with pytest.raises(AddressError, match="is no socket"):
        async with worker.serve(f"unix:{path}"):
            pass
    assert path.read_text() == "precious"


async def test_a_missing_directory_is_named(worker, tmp_path):
    """A missing folder is an error, and is not created."""
    with pytest.raises(AddressError, match="missing is no directory"):
        async with worker.serve(f"unix:{tmp_path}/missing/w.sock"):
            pass


async def test_a_port_in_use_is_an_error(worker):
    """Two workers do not share a port, where each would get calls of the other's policies."""
    async with worker.serve() as address:
        with pytest.raises(AddressError, match="Address already in use"):
            async with worker.serve(address):
                pass


async def test_a_host_of_another_machine_is_an_error(worker):
    """The address of another machine, or an unknown name, is an error of one line."""
    with pytest.raises(AddressError, match=r"cannot listen on 192\.0\.2\.1:0"):
        async with worker.serve("192.0.2.1:0"):
            pass
    with pytest.raises(AddressError, match=r"cannot listen on no-such-host\.invalid:0"):
        async with worker.serve("no-such-host.invalid:0"):
            pass


async def test_a_relative_path_is_below_the_working_directory(worker, tmp_path, monkeypatch):
    """A relative path is relative to the working directory."""
    monkeypatch.chdir(tmp_path)
    async with worker.serve("unix:w.sock") as address:
        assert address == "unix:w.sock"
        assert (tmp_path / "w.sock").is_socket()
