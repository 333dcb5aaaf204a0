"""What a consumer of a queue may hold."""

from gateway.bounds import Bounds


class ConsumerLimits(Bounds):
    """Bounds of a consumer."""

    in_flight: int = 100
    """Questions that are in hand at once. At 10 ms each that is 10,000 a second, more than one process passes on; and
    a worker that takes longer seldom works on more at a time."""

    in_flight_bytes: int = 134_217_728
    """Bytes of questions and answers in hand beyond which no more are taken: six documents of the largest size, 20 MB
    each. What one read brings may come on top; it is bounded by what a lane may hold."""

    answer_seconds: float = 3.0
    """How long Redis may take to connect, or to answer: whoever has not been heard of for so long is taken for dead."""
