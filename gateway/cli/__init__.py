"""The command ``admission-gateway``. Exit codes: 0 done, 1 mistakes in the configuration, 2 could not (or wrong
usage).
"""

import click
from click.shell_completion import get_completion_class

from gateway import __version__
from gateway.cli.bridge import bridge
from gateway.cli.check import check
from gateway.cli.demo import demo
from gateway.cli.hook_worker import hook_worker
from gateway.cli.new_worker import new_worker
from gateway.cli.purge import purge
from gateway.cli.render import render
from gateway.cli.review import review
from gateway.cli.serve import serve
from gateway.cli.shell_lib import shell_lib
from gateway.cli.streams import CommandGroup

__all__ = ["main"]

_NAME = "admission-gateway"


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name=_NAME)
def main() -> None:
    """One admission webhook for kube-apiserver, and behind it policies as small workers."""


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes this command: eval "$(admission-gateway completion bash)"."""
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(made(main, {}, _NAME, "_ADMISSION_GATEWAY_COMPLETE").source())


main.add_command(serve)
main.add_command(bridge)
main.add_command(hook_worker)
main.add_command(shell_lib)
main.add_command(check)
main.add_command(render)
main.add_command(review)
main.add_command(purge)
main.add_command(new_worker)
main.add_command(demo)
