"""Which functions and macros a version of Kubernetes has (k8s.io/apiserver/pkg/cel/environment/base.go).

====  =====================================================================================================
1.0   the language with its standard functions; URLs, regular expressions, Kubernetes' own functions of lists,
      strings without ``quote`` and ``format``
1.27  ``authorizer``
1.28  optionals, numbers of different types compared, quantities
1.29  ``quote`` and ``format`` of strings, sets
1.30  IP addresses and networks
1.31  named formats; field and label selectors of ``authorizer``
1.32  macros with two variables
1.33  semantic versions
1.34  cel-go's functions of lists
====  =====================================================================================================

kube-apiserver accepts in new expressions what the version before its own has, so that it can be rolled back.
"""

from typing import Final, NamedTuple


class Version(NamedTuple):
    """A version of Kubernetes; versions compare as they followed each other."""

    major: int
    minor: int

    def __str__(self) -> str:
        """``1.36``."""
        return f"{self.major}.{self.minor}"


OLDEST: Final = Version(1, 28)
"""The first version in which matchConditions are on by default; older ones lack syntax, not just functions."""

NEWEST: Final = Version(1, 36)
"""The version that this package is measured against."""
