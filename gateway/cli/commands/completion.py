"""``admission-gateway completion``: the script by which a shell completes the command."""

from typing import Final

import click

NAME: Final = "admission-gateway"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes this command: eval "$(admission-gateway completion bash)"."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(made(ctx.find_root().command, {}, NAME, "_ADMISSION_GATEWAY_COMPLETE").source())
