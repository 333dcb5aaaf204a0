"""What API servers of older releases lack, as far as registering webhooks goes.

=======  ==============================================================================================
release  brings
=======  ==============================================================================================
1.16     admissionregistration.k8s.io/v1, with matchPolicy, objectSelector, timeoutSeconds,
         reinvocationPolicy and scope; AdmissionReview v1
1.21     the label kubernetes.io/metadata.name on each namespace (1.21 beta, on; 1.22 for good)
1.28     matchConditions (1.27 alpha, off; 1.28 beta, on; 1.30 for good)
1.36     webhooks from manifest files (alpha, off)
=======  ==============================================================================================

Before 1.16, nothing of what is written here can be registered. And matchConditions may call only what a release's CEL
knows. A library with ``IntroducedVersion`` N (k8s.io/apiserver/pkg/cel/environment/base.go) can be used in *new*
expressions from N+1 on, because those are compiled for "the api server min compatibility version", which is one
release back.
"""

import re
from typing import Final, NamedTuple


class KubeVersion(NamedTuple):
    """A release of Kubernetes; releases compare as they followed each other."""

    major: int
    minor: int

    def __str__(self) -> str:
        """``1.36``."""
        return f"{self.major}.{self.minor}"


REFERENCE: Final = KubeVersion(1, 36)
"""The release that this project is measured against."""

V1: Final = KubeVersion(1, 16)
NAME_LABEL: Final = KubeVersion(1, 21)
MATCH_CONDITIONS: Final = KubeVersion(1, 28)
MANIFESTS: Final = KubeVersion(1, 36)

_WRITTEN: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})\+?(?:\.\d.*)?")


def read_version(text: str) -> KubeVersion | None:
    """``1.36``, and what servers report: ``v1.36.3-gke.100``, ``1.27+``. None if it is none of these."""
    match = _WRITTEN.fullmatch(text.strip())
    return KubeVersion(int(match[1]), int(match[2])) if match else None


class _Feature(NamedTuple):
    name: str
    since: KubeVersion
    pattern: str


def _calls(name: str, since: KubeVersion, *words: str) -> _Feature:
    return _Feature(name=name, since=since, pattern=rf"(?<![\w$])(?:{'|'.join(words)})\(")


_FEATURES: Final = (
    _Feature(
        name="optional fields",
        since=KubeVersion(1, 29),
        pattern=r"\.\?|[\[{,]\s*\?|\boptional\.(?:of|none)",
    ),
    _calls("the quantity library", KubeVersion(1, 29), "quantity", "isQuantity"),
    _calls("the sets library", KubeVersion(1, 30), r"sets\.(?:contains|equivalent|intersects)"),
    _Feature(name="string formatting", since=KubeVersion(1, 30), pattern=r"\.format\(\s*\["),
    _calls("the IP address library", KubeVersion(1, 31), "ip", "isIP", r"ip\.isCanonical"),
    _calls("the CIDR library", KubeVersion(1, 31), "cidr", "isCIDR"),
    _calls("the format library", KubeVersion(1, 32), r"format\.\w+"),
    _Feature(
        name="authorizer selectors",
        since=KubeVersion(1, 32),
        pattern=r"\.(?:fieldSelector|labelSelector)\(",
    ),
    _Feature(
        name="two-variable macros",
        since=KubeVersion(1, 33),
        pattern=r"\.transform(?:List|Map|MapEntry)\(|\.(?:all|exists|existsOne)\(\s*[A-Za-z_]\w*\s*,\s*[A-Za-z_]\w*\s*,",
    ),
    _calls("the semver library", KubeVersion(1, 34), "semver", "isSemver"),
    _Feature(
        name="the extended list library",
        since=KubeVersion(1, 35),
        pattern=r"\.(?:sort|sortBy|slice|flatten|distinct|first|last)\(|\blists\.range\(",
    ),
)
"""What can be seen in an expression's text. A name that means something else at its place gives a warning too many; the
API server itself has the last word when the object is applied."""

_STRINGS_AND_COMMENTS: Final = re.compile(
    r'"""(?s:.*?)"""|' + r"'''(?s:.*?)'''|" + r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'|" + r"//[^\n]*"
)


def lacking(expression: str, release: KubeVersion) -> list[str]:
    """What the expression uses that comes after the release, each with the release that brought it."""
    bare = _STRINGS_AND_COMMENTS.sub("''", expression)
    return [
        f"{feature.name} (from {feature.since})"
        for feature in _FEATURES
        if feature.since > release and re.search(feature.pattern, bare)
    ]
