"""A URL is one of the forms, or refused before anything starts; and nothing of it is ever repeated."""

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.redis.addresses import redis_address
from gateway.redis.clients import close_client, make_client


@pytest.mark.parametrize(
    ("url", "mode", "tls", "hosts", "options"),
    [
        ("redis://h", "server", False, (("h", 6379),), {}),
        ("redis://h:1/2", "server", False, (("h", 1),), {"db": 2}),
        ("redis://h?db=3", "server", False, (("h", 6379),), {"db": 3}),
        ("redis://u:p%40%2F@h/", "server", False, (("h", 6379),), {"username": "u", "password": "p@/"}),
        ("redis://:p@[::1]:7", "server", False, (("::1", 7),), {"password": "p"}),
        ("rediss://h?ssl_cert_reqs=none&ssl_check_hostname=false", "server", True, (("h", 6379),), None),
        ("redis+sentinel://a,b:2/main", "sentinel", False, (("a", 26379), ("b", 2)), {}),
        ("redis+sentinel://a/main/4", "sentinel", False, (("a", 26379),), {"db": 4}),
        ("rediss+sentinel://u:p@a/main", "sentinel", True, (("a", 26379),), {"username": "u", "password": "p"}),
        ("redis+cluster://a,b:2,[::2]:3", "cluster", False, (("a", 6379), ("b", 2), ("::2", 3)), {}),
        ("rediss+cluster://a/0", "cluster", True, (("a", 6379),), {}),
    ],
)
async def test_forms(url, mode, tls, hosts, options):
    """Each form gives a mode, hosts, and options that redis-py accepts."""
    address = redis_address(url)
    assert (address.mode, address.tls, address.hosts) == (mode, tls, hosts)
    assert options is None or address.options == options
    await close_client(make_client(address, seconds=1.0, connections=2))


async def test_a_socket():
    """unix:///PATH is a socket, with a password and a database if need be."""
    address = redis_address("unix://:p@/run/redis.sock?db=1")
    assert (address.path, address.options) == ("/run/redis.sock", {"db": 1, "password": "p"})
    await close_client(make_client(address, seconds=1.0, connections=2))


def test_a_line_break_at_the_end():
    """A URL that a Secret holds as a file's whole content is read without its last line break."""
    assert redis_address("redis://:p@my_redis.svc.:1/2\n").options == {"password": "p", "db": 2}


def test_a_service_of_sentinels():
    """The path names the service; the Sentinels have credentials of their own."""
    address = redis_address("redis+sentinel://:p@a/my%2Fmain?sentinel_password=q")
    assert (address.service, address.options, address.sentinel_options) == (
        "my/main",
        {"password": "p"},
        {"password": "q"},
    )


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("", "no known scheme; expected one of redis, rediss, unix"),
        ("localhost:6379", "no known scheme"),
        ("redis:h", "no known scheme"),
        ("http://h", "no known scheme"),
        ("redis://", "no host at position 1"),
        ("redis://:6379", "no host at position 1"),
        ("redis://ho st", "invalid host at position 1"),
        ("redis://a..b", "invalid host at position 1"),
        ("redis+cluster://a," + 64 * "b", "invalid host at position 2"),
        ("redis://h%00", "invalid host"),
        ("redis://:pass\nword@h", "line break"),
        ("redis://a,b", "several hosts; for Sentinel or a cluster"),
        ("redis://h:x", "port at position 1 that is not a number"),
        ("redis://h:0", "not from 1 to 65535"),
        ("redis://h:65536", "not from 1 to 65535"),
        ("redis://h:99999999999", "not a number"),
        ("redis://[::1", "brackets"),
        ("redis://[::1]x", "no host at position 1"),
        ("redis://h/x", "database that is not a number"),
        ("redis://h/-1", "database that is not a number"),
        ("redis://h/1?db=1", "database twice"),
        ("redis://h?db=1&db=2", "option db twice"),
        ("redis://h?socket_timeout=9", "an unknown option"),
        ("redis://h?ssl_ca_certs=/x", "write rediss"),
        ("redis://h?sentinel_password=x", "does not name Sentinels"),
        ("rediss://h?ssl_ca_certs=/nowhere", "cannot be used: No such file"),
        ("rediss://h?ssl_cert_reqs=maybe", "none, optional, required"),
        ("rediss://h?ssl_check_hostname=maybe", "true or false"),
        ("rediss://h?ssl_ciphers=nonsense", "cannot be used"),
        ("unix://run/x.sock", "three slashes"),
        ("unix://", "three slashes"),
        ("redis+sentinel://a", "no service"),
        ("redis+sentinel://a/", "no service"),
        ("redis+sentinel://a,/main", "no host at position 2"),
        ("redis+cluster://a/1", "only database 0"),
        ("redis+cluster://a?db=1", "only database 0"),
        ("redis://:pa/ss@h", "%2F"),
        ("redis://:pa#ss@h", "%23"),
        ("redis://:pa?ss@h", "%3F"),
    ],
)
def test_invalid_urls(url, error):
    """What is none of the forms is refused, with what is expected."""
    with pytest.raises(ValueError, match=error):
        redis_address(url)


@pytest.mark.property
@given(
    st.sampled_from(["redis", "rediss", "unix", "redis+sentinel", "redis+cluster", "x"]),
    st.text("ab:/?#@[],%&=0 é\n", max_size=12),
    st.text("ab:/?#@[],%&=0 é\n", max_size=12),
)
def test_nothing_of_a_url_is_repeated(scheme, before, after):
    """Wherever a password stands, it is in no error and in no text that shows the address."""
    text = ""
    try:
        text = redis_address(f"{scheme}://:{before}hunter2{after}@h,hunter2:1/hunter2?hunter2=hunter2").shown
    except ValueError as error:
        text = "".join(traceback.format_exception_only(error))
    assert text
    assert "hunter2" not in text


def test_the_password_is_not_shown():
    """An address that is printed, or in a traceback with its variables, shows no password."""
    address = redis_address("redis://u:hunter2@h")
    assert "hunter2" not in repr(address)
    assert address.__rich_repr__() == []


def test_a_certificate_that_is_none(tmp_path):
    """An invalid TLS file is reported at once, without its content."""
    (tmp_path / "ca").write_text("hunter2")
    with pytest.raises(ValueError, match="cannot be used") as error:
        redis_address(f"rediss://h?ssl_ca_certs={tmp_path / 'ca'}")
    assert "hunter2" not in str(error.value)
