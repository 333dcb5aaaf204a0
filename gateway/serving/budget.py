"""How long a review may take, so that "the answer leaves before the API server gives up".

kube-apiserver calls ``PATH?timeout=Ns`` and rounds what it has left **up** to whole seconds, so that the true value
lies in (N-1, N]; N is 1 to 30. Therefore:

    ================================  =====================================================================
    ``timeout``                       budget
    ================================  =====================================================================
    ``Ns``, 2 <= N <= 30              N - 1 seconds: the smallest value that it can stand for
    ``Ns``, N > 30                    as 30: the API server never sends it, and no webhook may wait longer
    ``1s``                            half a second, best effort: the true value is anything down to zero
    absent, or not a whole ``Ns``     9 seconds: the default timeout of a webhook, 10, less one
    ================================  =====================================================================

Each less 50 ms, for writing and sending the answer.
"""

import re
from functools import lru_cache
from typing import Final

_ANSWER: Final = 0.05
_SHORTEST: Final = 0.5
_DEFAULT: Final = 9.0
_LARGEST_N: Final = 30
_WHOLE_SECONDS: Final = re.compile(r"0*([1-9][0-9]*)s", re.ASCII)


@lru_cache(maxsize=64)  # the API server sends 30 different values
def budget(timeout_parameter: str | None) -> float:
    """Seconds from the request's arrival until the gateway's answer must be ready.

    ``timeout_parameter`` is the value of the query parameter ``timeout`` as it was sent (``10s``), or None without one.
    Every text has a budget: the result lies in [0.45, 28.95].
    """
    seconds = _whole_seconds(timeout_parameter or "")
    if seconds is None:
        return _DEFAULT - _ANSWER
    if seconds == 1:
        return _SHORTEST - _ANSWER
    return seconds - 1 - _ANSWER


def _whole_seconds(text: str) -> int | None:
    """N of ``Ns``, at most 30; None if the text has another form."""
    found = _WHOLE_SECONDS.fullmatch(text)
    if found is None:
        return None
    digits = found[1]
    # By length first: int() refuses texts of more than 4300 digits.
    return _LARGEST_N if len(digits) > len(str(_LARGEST_N)) else min(int(digits), _LARGEST_N)
