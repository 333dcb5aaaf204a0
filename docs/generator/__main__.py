"""Write the pages of docs/reference; with ``--check``, say which have drifted, and exit 1 if any has."""

import click

from docs.generator import COMMAND, ROOT, drifted, pages


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a page is not as it would be written.")
def main(*, check: bool) -> None:
    """Make docs/reference from the source."""
    stale = drifted()
    if check:
        for path in stale:
            click.echo(f"{path} does not say what the source says; run `{COMMAND}`", err=True)
        raise SystemExit(1 if stale else 0)
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(pages()[path])
        click.echo(path)


if __name__ == "__main__":
    main()
