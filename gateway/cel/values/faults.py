"""Why an expression has no value."""

from gateway.cel.authorization import AuthorizationCheck


class Fault(Exception):  # noqa: N818 - an error of CEL's, named apart from Python's
    """A CEL error, in cel-go's words: ``&&``, ``||``, ``all`` and ``exists`` may yet make it meaningless."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Aborted(Exception):  # noqa: N818 - see Fault
    """The evaluation is over: the budget is spent, or cel-go would have given up; ``||`` cannot make up for that."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unanswered(Fault):
    """The value depends on an authorization check without an answer so far; it goes before errors."""

    def __init__(self, check: AuthorizationCheck) -> None:
        super().__init__("an authorization check has not been answered")
        self.check = check


def prior(kept: Fault | None, fault: Fault) -> Fault:
    """Of two errors the first; but a check without an answer goes before errors."""
    return fault if kept is None or (isinstance(fault, Unanswered) and not isinstance(kept, Unanswered)) else kept


def no_such_overload() -> Fault:
    """The error of an operator whose operands do not go together."""
    return Fault("no such overload")
