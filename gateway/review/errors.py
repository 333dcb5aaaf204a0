"""Whose fault a bad review is: the sender's."""


class ReviewError(Exception):
    """The body is not an AdmissionReview that can be judged: HTTP 400, since without a uid no review can be answered.

    ``str(error)`` says what was expected and what was found, in one line, and never quotes the body: it may be a
    Secret.
    """
