"""A worker that reports who it is and which settings it judges by: what a reload changed is seen in the answers."""

import os
import sys

import msgspec

from admission_worker import SettingsError, Worker, allow, merge

worker = Worker("reporter", version="1")

NAME = sys.argv.pop(1) if len(sys.argv) > 1 else "reporter"


class Settings(msgspec.Struct, frozen=True):
    """What to report. Odd words are refused."""

    word: str = ""


def validate(settings):
    if settings.word == "odd":
        yield SettingsError("/word", "is odd")


@worker.mutating("mark", settings=Settings, validate=validate)
def mark(request, settings):
    return merge({"metadata": {"labels": {"mark": settings.word}}})


@worker.mutating("mark-too", settings=Settings, validate=validate)
def mark_too(request, settings):
    return merge({"metadata": {"labels": {"mark-too": f"{settings.word}.{NAME}"}}})


@worker.validating("report", settings=Settings, validate=validate)
def report(request, settings):
    return allow(audit_annotations={"word": settings.word, "name": NAME, "pid": str(os.getpid())})


@worker.validating("report-labels", settings=Settings, inputs=["/object/metadata/labels"])
def tell_labels(request, settings):
    return report(request, settings)


if __name__ == "__main__":
    worker.main()
