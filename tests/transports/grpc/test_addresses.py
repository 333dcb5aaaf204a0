"""Which addresses a target has, and which of many are used."""

import socket

import pytest

from gateway.transports.grpc.addresses import ResolveError, authority, is_fixed, resolve, selected


@pytest.mark.parametrize(
    ("target", "addresses"),
    [
        ("unix:/run/w.sock", ("unix:/run/w.sock",)),
        ("unix:///run/w.sock", ("unix:/run/w.sock",)),
        ("ipv4:127.0.0.1:1", ("ipv4:127.0.0.1:1",)),
        ("ipv4:127.0.0.1:1,127.0.0.2:2,127.0.0.1:1", ("ipv4:127.0.0.1:1", "ipv4:127.0.0.2:2")),
        ("ipv6:[::1]:1,[::2]:2", ("ipv6:[::1]:1", "ipv6:[::2]:2")),
        ("127.0.0.1:50051", ("ipv4:127.0.0.1:50051",)),
        ("dns:///127.0.0.1:50051", ("ipv4:127.0.0.1:50051",)),
        ("[::1]:50051", ("ipv6:[::1]:50051",)),
    ],
)
async def test_addresses_that_are_said_in_the_target(target, addresses):
    """They are known without a lookup, each as a target of its own, once."""
    assert is_fixed(target)
    assert await resolve(target) == addresses


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("labels.policies.svc:50051", "labels.policies.svc:50051"),
        ("dns:///labels.policies.svc:50051", "labels.policies.svc:50051"),
        ("unix:/run/w.sock", "localhost"),
        ("127.0.0.1:1", ""),
        ("[::1]:1", ""),
        ("ipv4:127.0.0.1:1", ""),
    ],
)
def test_the_authority_is_the_configured_name(target, said):
    """Whichever address of it is called; an address has none of ours."""
    assert authority(target) == said


class Names:
    """What getaddrinfo answers."""

    def __init__(self, monkeypatch, *answers):
        self.answers = list(answers)
        self.called = []
        names = self

        class Loop:
            async def getaddrinfo(self, host, port, **fields):
                names.called.append((host, port))
                answer = names.answers.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer

        monkeypatch.setattr("asyncio.get_running_loop", Loop)


def found(*places):
    families = {False: socket.AF_INET, True: socket.AF_INET6}
    return [(families[":" in place], socket.SOCK_STREAM, 6, "", (place, 1)) for place in places]


async def test_a_name_has_an_address_for_each_pod(monkeypatch):
    """In a stable order, each once, of both families."""
    names = Names(monkeypatch, found("10.0.0.2", "10.0.0.1", "fd00::1", "10.0.0.2"))
    expected = ("ipv4:10.0.0.1:50051", "ipv4:10.0.0.2:50051", "ipv6:[fd00::1]:50051")
    assert await resolve("dns:///labels.svc:50051") == expected
    assert names.called == [("labels.svc", 50051)]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (socket.gaierror(-2, "Name not known"), "'labels.svc' cannot be resolved: Name not known"),
        (UnicodeError("label too long"), "'labels.svc' cannot be resolved: label too long"),
        (OSError(24, "Too many open files"), "'labels.svc' cannot be resolved: Too many open files"),
        ([], "'labels.svc' has no IPv4 or IPv6 address"),
        ([(socket.AF_UNIX, 1, 0, "", ("x", 1))], "'labels.svc' has no IPv4 or IPv6 address"),
    ],
)
async def test_a_name_that_cannot_be_resolved_says_why(monkeypatch, answer, why):
    """One sentence, whatever the resolver says."""
    Names(monkeypatch, answer)
    with pytest.raises(ResolveError, match=f"^{why}$"):
        await resolve("labels.svc:50051")


async def test_a_name_that_cannot_be_one():
    """A label of more than 63 characters is rejected before any lookup, by name."""
    with pytest.raises(ResolveError, match="cannot be resolved"):
        await resolve(f"{'n' * 64}.invalid:1")


def test_few_addresses_are_all_used():
    """Up to the limit."""
    assert selected(("a", "b"), (), 2) == ("a", "b")


def test_of_many_those_that_are_held_stay():
    """Addresses in use stay; the rest is a choice without repetition."""
    many = tuple(f"address-{number}" for number in range(100))
    current = many[40:45]
    for _ in range(20):
        taken = selected(many, current, 10)
        assert set(current) < set(taken) <= set(many)
        assert len(set(taken)) == len(taken) == 10


def test_no_more_are_held_than_the_limit():
    """Also where more of them were current before, and where some of them are gone."""
    many = tuple("abcdef")
    assert len(selected(many, many, 3)) == 3
    assert "z" not in selected(many, ("z", "a"), 3)
    assert "a" in selected(many, ("z", "a"), 3)


def test_another_process_takes_another_choice():
    """Of many addresses, a hundred gateways do not all use the same."""
    many = tuple(f"address-{number}" for number in range(100))
    assert len({selected(many, (), 5) for _ in range(20)}) > 1
