"""What older API servers lack."""

import pytest

from gateway.registration.kubernetes_versions import KubeVersion, lacking, read_version


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("1.36", (1, 36)),
        ("v1.36.3", (1, 36)),
        ("v1.27.8-gke.1067004", (1, 27)),
        ("1.30+", (1, 30)),
        (" v1.31.2+k3s1\n", (1, 31)),
        ("1", None),
        ("1.x", None),
        ("", None),
        ("1.36 or so", None),
        ("-1.36", None),
        ("1.99999", None),
    ],
)
def test_read_release(text, release):
    """A release is read as people write it and as servers say it; anything else is none."""
    assert read_version(text) == release


def test_releases_compare():
    """1.9 came before 1.16, and is written as it was read."""
    assert KubeVersion(1, 9) < KubeVersion(1, 16)
    assert str(KubeVersion(1, 9)) == "1.9"


@pytest.mark.parametrize(
    ("expression", "since"),
    [
        ("object.?spec.?replicas.orValue(1) == 1", 29),
        ("quantity(object.spec.x).isGreaterThan(quantity('1'))", 29),
        ("sets.contains([1], [1])", 30),
        ("'%d'.format([1]) == '1'", 30),
        ("ip('::1').isLoopback()", 31),
        ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", 31),
        ("format.dns1123Label().validate('a').hasValue()", 32),
        ("authorizer.group('').resource('pods').fieldSelector('a=b').check('list').allowed()", 32),
        ("object.metadata.labels.all(k, v, v != '')", 33),
        ("object.metadata.labels.transformList(k, v, k).size() == 1", 33),
        ("semver('1.2.3').major() == 1", 34),
        ("[2, 1].sort() == [1, 2]", 35),
        # What is in a string or a comment, or only looks like it, is nothing of the kind.
        ("request.name == 'ip(x)' // cidr(y)", None),
        ('request.name == "a\\"semver(x)"', None),
        ("object.spec.containers.all(c, c.image != '')", None),
        ("object.zip(object.ship)", None),
        ("has(object.spec.replicas) ? object.spec.replicas > 1 : true", None),
    ],
)
def test_lacking(expression, since):
    """What a library brought is lacking in the release before, and there from then on."""
    if since is None:
        assert lacking(expression, KubeVersion(1, 28)) == []
    else:
        assert [each.rpartition(" ")[2] for each in lacking(expression, KubeVersion(1, since - 1))] == [f"1.{since})"]
        assert lacking(expression, KubeVersion(1, since)) == []
