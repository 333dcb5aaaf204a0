"""The gateway's own CA and certificate in fake time: what clients trust is served, whatever is found in the Secret."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.certificates.authority import certificate_pem, covered_names, general_name, is_issued_by, key_pem
from gateway.certificates.content import SecretContent, fingerprint, fingerprints, read_content
from gateway.certificates.rotation import BACKDATED, CA_LIFETIME, LEAF_LIFETIME, rotation, service_names
from tests.authorities import Authority

pytestmark = pytest.mark.property

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = service_names("policies", "gateway")
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)

skews = st.timedeltas(timedelta(0), BACKDATED - SECOND)


def made(now=START, names=NAMES):
    """The content of a new Secret."""
    return rotation(None, names, (), now).content


def trusts(content, bundle, now, name=NAMES[0]):
    """Whether a strict client that trusts the bundle accepts the leaf."""
    verifier = PolicyBuilder().store(Store(list(bundle))).time(now).build_server_verifier(general_name(name))
    try:
        verifier.verify(content.leaf, [])
    except VerificationError:
        return False
    return True


def trusted_by(*contents):
    """Webhooks whose caBundles are those of these contents."""
    return [frozenset(map(fingerprint, content.bundle)) for content in contents]


def after(content, now, trusted=(), **options):
    """The content that follows, the same if it stays."""
    found = rotation(content, NAMES, trusted, now, **options)
    return content if found is None else found.content


def introduced():
    """A content whose CA has just got a successor, and that time."""
    content, now = made(), START
    while len(content.bundle) == 1:
        now += DAY
        content = after(content, now, trusted_by(content))
    return content, now


def test_a_new_secret_holds_a_certificate_for_all_names():
    """Signed by a CA of its own, which is the bundle."""
    content = made()
    assert all(trusts(content, content.bundle, START, name) for name in NAMES)
    assert [each.certificate for each in content.authorities] == list(content.bundle)


@given(st.timedeltas(timedelta(0), 3 * CA_LIFETIME))
def test_what_is_written_is_read_and_stays(age):
    """At once nothing more is to be done with it, at any time."""
    content = after(made(), START + age)
    content = after(content, START + age, trusted_by(content))
    read = read_content(content.data())
    assert read.data() == content.data()
    assert not read.problems
    assert rotation(read, NAMES, trusted_by(content), START + age) is None


@given(skews, skews, st.integers(0, 400))
def test_replicas_with_different_clocks_agree(ahead, behind, days):
    """What one replica writes, no other one replaces, as long as their clocks differ by less than an hour."""
    assume(ahead + behind < BACKDATED)
    content = made()
    for day in range(0, days, 20):
        now = START + day * DAY
        content = after(content, now + ahead, trusted_by(content))
        content = after(content, now + ahead, trusted_by(content))
        assert rotation(content, NAMES, trusted_by(content), now - behind) is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.timedeltas(-BACKDATED / 2, BACKDATED / 2), st.sampled_from(["", "register", "read"])
        ),
        min_size=20,
        max_size=30,
    )
)
def test_a_replica_that_is_weeks_behind_is_trusted_by_webhooks_that_are_weeks_behind(steps):
    """Any of three replicas may rotate; a caBundle and a served certificate are at most 20 days old."""
    now = START
    content = made()
    history = [(now, content)]
    served = dict.fromkeys(range(3), (now, content))
    registered = (now, content)
    for replica, skew, event in steps * 4:
        now += 5 * DAY
        found = rotation(content, NAMES, trusted_by(registered[1]), now + skew)
        if found is not None:
            content = found.content
            history.append((now, content))
        lag = 20 * DAY
        if event == "register" or now - registered[0] >= lag:
            registered = (now, content)
        served = {
            each: (now, content) if (event == "read" and each == replica) or now - at >= lag else (at, old)
            for each, (at, old) in served.items()
        }
        for _, each in served.values():
            assert trusts(each, registered[1].bundle, now)
    leaves = len({each.leaf for _, each in history})
    assert leaves <= 2 + (now - START) / (LEAF_LIFETIME / 2)


def test_a_leaf_is_replaced_after_two_thirds_of_its_life():
    """By one of the same CA; the bundle stays."""
    content = made()
    due = START - BACKDATED + (LEAF_LIFETIME + BACKDATED) * 2 / 3
    assert after(content, due - SECOND) is content
    renewed = after(content, due + SECOND)
    assert renewed.leaf != content.leaf
    assert renewed.key.public_key() != content.key.public_key()
    assert renewed.bundle == content.bundle


def test_a_new_ca_is_trusted_before_it_signs():
    """It is in the bundle beside the one in use, which signs on until every caBundle has both."""
    content, now = introduced()
    assert (CA_LIFETIME + BACKDATED) * 2 / 3 - BACKDATED <= now - START <= CA_LIFETIME * 2 / 3 + 2 * DAY
    new, old = content.bundle
    before = made()
    for trusted in ((), [frozenset([fingerprint(old)])], [*trusted_by(content), frozenset([fingerprint(old)])]):
        assert rotation(content, NAMES, trusted, now) is None
    assert after(content, now + 70 * DAY, trusted_by(before, content)).issuer == old
    switched = after(content, now, trusted_by(content, content))
    assert switched.issuer == new
    assert [each.certificate for each in switched.authorities] == [new]
    assert switched.bundle == content.bundle


def test_an_old_ca_leaves_the_bundle_with_the_leaf_after_the_next():
    """A replica may be one leaf behind."""
    content, now = introduced()
    content = after(content, now, trusted_by(content))
    new, _ = content.bundle
    content = after(content, now + LEAF_LIFETIME * 2 / 3 + DAY, trusted_by(content))
    assert content.bundle == (new,)


def test_without_webhooks_the_new_ca_signs_when_half_of_the_rest_is_over():
    """An operator who copies the bundle by hand has two months for that. The same where webhooks cannot be read."""
    content, now = introduced()
    old = content.bundle[1]
    half = START + CA_LIFETIME * 5 / 6
    assert now < half - 59 * DAY
    assert after(after(content, now + 30 * DAY), half - DAY).issuer == old
    assert after(content, half + DAY).issuer == content.bundle[0]


def test_a_bundle_that_is_never_registered_costs_nothing_until_the_old_ca_ends():
    """Then no certificate would be accepted."""
    before, now = made(), START
    content, registered = before, trusted_by(before)
    while now < START + CA_LIFETIME - 2 * SECOND:
        assert trusts(content, before.bundle, now)
        now = min(now + 10 * DAY, START + CA_LIFETIME - SECOND)
        content = after(content, now, registered)
    assert after(content, now, registered) is content
    last = after(content, now + 2 * SECOND, registered)
    assert trusts(last, last.bundle, now + 2 * SECOND)


@given(
    st.dictionaries(
        st.sampled_from(["tls.crt", "tls.key", "ca.crt", "ca.key"]),
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from(
                [*made().data().values(), *made().data().values(), made(START - 999 * DAY).data()["tls.crt"]]
            ),
            st.just(Authority().issue("a.example").key),
        ),
    ),
    st.integers(0, 200),
)
def test_any_content_becomes_a_usable_one(changes, cut):
    """Whatever is in its keys; and a process that knew it intact trusts on and is trusted."""
    known = made()
    data = known.data() | {key: value[: len(value) - cut] if cut < 100 else value for key, value in changes.items()}
    found = read_content(data)
    anew = after(found, START, ())
    assert trusts(anew, anew.bundle, START)
    assert not anew.problems
    if found.problems:
        restored = after(found, START, trusted_by(known), remembered=known)
        assert restored == known


def test_a_deleted_secret_is_made_again_as_it_was():
    """With the same CA: another one is trusted by no webhook."""
    known = made()
    found = rotation(None, NAMES, (), START, remembered=known)
    assert found.content == known
    assert "it was deleted" in found.reasons[0]


def test_a_lost_ca_key_costs_nothing():
    """The certificate stays until all trust a new CA."""
    known = made()
    found = after(read_content(known.data() | {"ca.key": b""}), START, trusted_by(known))
    assert found.leaf == known.leaf
    assert found.bundle[1:] == known.bundle
    assert is_issued_by(after(found, START, trusted_by(found)).leaf, found.bundle[0])


def test_another_name_makes_another_leaf():
    """Which covers the names of the previous one too, so that two gateways with different names rest."""
    content = after(made(names=("other.policies.svc",)), START)
    assert {name.value for name in covered_names(content.leaf)} == {"other.policies.svc", *NAMES}
    assert rotation(content, ("other.policies.svc",), (), START) is None


def test_a_leaf_never_outlives_its_ca():
    """What is signed late ends with the CA, and is not signed again and again."""
    content, registered, leaves = made(), trusted_by(made()), set()
    for day in range(365):
        content = after(content, START + day * DAY, registered)
        leaves.add(content.leaf)
        assert content.leaf.not_valid_after_utc <= content.issuer.not_valid_after_utc
    assert len(leaves) <= 8


def test_a_key_is_never_shown():
    """A content names its class only."""
    assert repr(made()) == "SecretContent(...)"


def test_a_bundle_that_cannot_be_read_trusts_nothing():
    """Also one that is empty."""
    content = made()
    assert fingerprints(certificate_pem(content.bundle[0])) == {fingerprint(content.bundle[0])}
    assert fingerprints(b"") == fingerprints(b"nonsense") == fingerprints(key_pem(content.key)) == frozenset()
    assert SecretContent().issuer is None
