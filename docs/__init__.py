"""The project's documentation; a package only so that ``python -m docs.generator`` makes docs/reference."""
