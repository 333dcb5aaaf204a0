"""What goes wrong off the path of reviews, where no policy's failure can say it."""


class WorkerError(Exception):
    """Describe or ValidateSettings did not succeed; ``str(error)`` says who and why."""
