"""A worker whose shadow runs in another version: what it says depends on the version that it is started as."""

import sys

import msgspec

from admission_worker import SettingsError, Worker, allow, deny, merge

VERSION = sys.argv.pop(1) if len(sys.argv) > 1 else "1"

worker = Worker("understudy", version=VERSION)


class Settings(msgspec.Struct, frozen=True):
    """``refused_by``: the version that does not like these settings."""

    refused_by: str = ""


def validate(settings):
    if settings.refused_by == VERSION:
        yield SettingsError("/refused_by", f"not with version {VERSION}")


@worker.mutating("steady", settings=Settings, validate=validate)
def steady(request, settings):
    """The same label in every version, in other words."""
    return merge({"metadata": {"labels": {"steady": "yes"}}}, warnings=[f"version {VERSION} labels"])


@worker.mutating("moving", settings=Settings, validate=validate)
def moving(request, settings):
    """Another label in every version."""
    return merge({"metadata": {"labels": {"moving": VERSION}}})


@worker.validating("report", settings=Settings, validate=validate)
def report(request, settings):
    """Allows in every version, and reports which one it is."""
    return allow(audit_annotations={"version": VERSION})


@worker.validating("strict", settings=Settings, validate=validate)
def strict(request, settings):
    """Denies from version 2 on."""
    return allow() if VERSION == "1" else deny(f"not with version {VERSION}", code=422)


if __name__ == "__main__":
    worker.main()
