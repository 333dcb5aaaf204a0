"""What goes wrong with the Kubernetes API. (Its client takes long to import, and not every gateway has one.)"""


class ApiError(Exception):
    """The API server did not do what it was sent. ``str(error)`` says what was sent, and why.

    ``code``: the HTTP status, 0 if there was no response. ``reason``: metav1.StatusReason, such as ``NotFound``, or "".
    ``retry_after``: seconds, if the API server says so, else 0. ``continue_token``: of a list that has ``expired``, the
    token by which it goes on from the same place in its newest version, or "".
    """

    def __init__(
        self,
        request: str,
        code: int,
        reason: str,
        message: str,
        retry_after: float = 0.0,
        *,
        continue_token: str = "",
    ) -> None:
        super().__init__(f"Kubernetes API: {request}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.continue_token = continue_token

    @property
    def expired(self) -> bool:
        """Whether the resource version is too old for a watch, or the token of a list for its next page."""
        return self.code == 410  # noqa: PLR2004 - Gone


class KubeconfigError(Exception):
    """The operator's: there are no credentials. ``str(error)`` says where they were looked for, and what to do."""
