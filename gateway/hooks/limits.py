"""What hooks may cost. The numbers, and the arithmetic that gave them, are those of ``TransportLimits``, whose names
have ``hook_`` in front.
"""

from msgspec import Struct


class HookLimits(Struct, frozen=True, kw_only=True):
    """Bounds of the hooks of one process.

    ``processes``: how many run at the same time, 0 for two on each core and one more; ``waiting``: how many asks of
    each hook may wait for that; ``config_seconds``: how long ``--config`` may take; ``output_bytes``: how much one may
    write to its outputs; ``response_bytes``: the largest file with an answer that is read; ``message_characters``: how
    much of a hook's own words is repeated in a message.
    """

    processes: int
    waiting: int
    config_seconds: float
    output_bytes: int
    response_bytes: int
    message_characters: int
