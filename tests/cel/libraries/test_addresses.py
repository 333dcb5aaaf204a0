"""IP addresses and networks."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cel.evaluation import error, value

v4 = st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address)
v6 = st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address).filter(lambda address: address.ipv4_mapped is None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unable to parse IP"),
        ("a", "unable to parse IP"),
        ("1.2.3", "IPv4 address too short"),
        ("1.2.3.4.5", "IPv4 address too long"),
        ("1.2.3.256", "IPv4 field has value >255"),
        ("1.2.3.04", "IPv4 field has octet with leading zero"),
        ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
        (".1.2.3", 'IPv4 field must have at least one digit (at ".1.2.3")'),
        ("1.2.3.", 'IPv4 field must have at least one digit (at ".")'),
        ("1.2.3.x", 'unexpected character (at "x")'),
        ("::g", 'each colon-separated field must have at least one digit (at "g")'),
        ("12345::", 'each group must have 4 or less digits (at "12345::")'),
        ("1:2:3", "address string too short"),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("1:2:3:4:5:6:7::8", "the :: must expand to at least one field of zeros"),
        ("1:", 'colon must be followed by more characters (at ":")'),
        ("1:2x", 'unexpected character, want colon (at "x")'),
        ("%eth0", "missing IPv6 address"),
        ("::1%", "zone must be a non-empty string"),
        ("1:2:1.2.3.4", 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'),
        (
            "1:2:3:4:5:6:7:1.2.3.4",
            'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")',
        ),
        ("::2:3:4:5:6:7:8:1.2.3.4", "too many hex fields to fit an embedded IPv4 at the end of the address"),
    ],
)
def test_what_is_no_address_is_an_error(text, message):
    """In netip's words: what, and where."""
    found = error("ip(a)", a=text)
    assert found.startswith(f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): ')
    assert message.partition(" (at")[0] in found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fe80::1%eth0", 'IP address "fe80::1%eth0" with zone value is not allowed'),
        ("::ffff:1.2.3.4", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
    ],
)
def test_what_kubernetes_does_not_allow_is_an_error(text, message):
    """Zones, and IPv4 addresses written as IPv6."""
    assert error("ip(a)", a=text) == message
    assert value("isIP(a)", a=text) is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.2.3.4", "no '/'"),
        ("1.2.3/8", "IPv4 address too short"),
        ("1.2.3.4/33", "prefix length out of range"),
        ("1.2.3.4/08", 'bad bits after slash: "08"'),
        ("1.2.3.4/+8", 'bad bits after slash: "+8"'),
        ("1.2.3.4/", 'bad bits after slash: ""'),
        ("1.2.3.4/x", 'bad bits after slash: "x"'),
        ("::/129", "prefix length out of range"),
        ("fe80::%a/64", "IPv6 zones cannot be present in a prefix"),
        ("::ffff:1.2.3.4/96", "IPv4-mapped IPv6 address"),
    ],
)
def test_what_is_no_network_is_an_error(text, message):
    """In netip's words."""
    assert message in error("cidr(a)", a=text)
    assert value("isCIDR(a)", a=text) is False


@pytest.mark.parametrize(
    ("test", "members", "others"),
    [
        ("isUnspecified", [str(ipaddress.IPv4Address(0)), "::"], ["0.0.0.1", "::1"]),
        ("isLoopback", ["127.0.0.1", "127.9.9.9", "::1"], ["128.0.0.1", "::2"]),
        ("isLinkLocalMulticast", ["224.0.0.1", "ff02::1"], ["224.0.1.1", "ff03::1"]),
        ("isLinkLocalUnicast", ["169.254.1.1", "fe80::1"], ["169.255.1.1", "fec0::1"]),
        (
            "isGlobalUnicast",
            ["1.2.3.4", "10.0.0.1", "2001:db8::1"],
            ["255.255.255.255", "224.0.0.1", "127.0.0.1", "::", "fe80::1"],
        ),
    ],
)
def test_what_sort_of_address_it_is(test, members, others):
    """As net/netip."""
    assert [value(f"ip(a).{test}()", a=each) for each in members] == [True] * len(members)
    assert [value(f"ip(a).{test}()", a=each) for each in others] == [False] * len(others)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ip('1.2.3.4').family()", 4),
        ("ip('::1').family()", 6),
        ("string(ip('0:0::1'))", "::1"),
        ("ip.isCanonical('::1')", True),
        ("ip.isCanonical('0:0::1')", False),
        ("ip.isCanonical('::FFFF')", False),
        ("ip('::1') == ip('0::1')", True),
        ("cidr('10.1.2.3/8').prefixLength()", 8),
        ("string(cidr('10.1.2.3/8').masked())", "10.0.0.0/8"),
        ("string(cidr('10.1.2.3/8'))", "10.1.2.3/8"),
        ("string(cidr('10.1.2.3/8').ip())", "10.1.2.3"),
        ("cidr('10.0.0.0/8') == cidr('10.0.0.0/8')", True),
        ("cidr('10.0.0.0/8') == cidr('10.0.0.1/8')", False),
        ("cidr('10.0.0.0/8').containsIP('10.255.0.1')", True),
        ("cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))", False),
        ("cidr('10.0.0.0/8').containsIP('::1')", False),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
        ("cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/7'))", False),
        ("cidr('0.0.0.0/0').containsCIDR('1.2.3.4/32')", True),
        ("cidr('0.0.0.0/0').containsCIDR('::/0')", False),
    ],
)
def test_what_a_function_comes_to(expression, expected):
    """For addresses and networks of both families."""
    assert value(expression) == expected


def test_what_is_wrong_with_an_address_in_a_question_does_not_get_through():
    """As in the API server."""
    assert error("cidr('10.0.0.0/8').containsIP('x')") == "no such overload"


@pytest.mark.property
@given(v4 | v6)
def test_an_address_is_read_as_python_reads_it(address):
    """In its short form, which is canonical, and in its long one."""
    assert value("string(ip(a))", a=str(address)) == str(address)
    assert value("ip.isCanonical(a)", a=str(address)) is True
    assert value("ip(a).family()", a=str(address)) == address.version
    if address.version == 6:
        assert value("string(ip(a))", a=address.exploded) == str(address)


@pytest.mark.property
@given(v4, st.integers(0, 32), v4)
def test_a_network_contains_what_python_says(address, bits, other):
    """And masks as Python does."""
    network = ipaddress.ip_network(f"{address}/{bits}", strict=False)
    variables = {"a": f"{address}/{bits}", "b": str(other)}
    assert value("string(cidr(a).masked())", **variables) == str(network)
    assert value("cidr(a).containsIP(b)", **variables) is (other in network)


@pytest.mark.property
@given(v6, st.integers(0, 128), st.integers(0, 128))
def test_a_network_contains_every_narrower_one_around_its_address(address, wide, narrow):
    """And no wider one."""
    variables = {"a": f"{address}/{wide}", "b": f"{address}/{narrow}"}
    assert value("cidr(a).containsCIDR(cidr(b))", **variables) is (narrow >= wide)
