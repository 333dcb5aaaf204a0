"""The command ``admission-gateway``, and the script by which a shell completes it. Exit codes: 0 done, 1 errors in the
configuration, 2 could not (or wrong usage).
"""

from typing import Final

import click

from gateway import __version__
from gateway.cli.commands.admin_calls import explain, purge
from gateway.cli.commands.audit import audit
from gateway.cli.commands.bridge import bridge
from gateway.cli.commands.check import check
from gateway.cli.commands.demo import demo
from gateway.cli.commands.doctor import doctor
from gateway.cli.commands.hooks import hook_worker, shell_lib
from gateway.cli.commands.new_worker import new_worker
from gateway.cli.commands.registration import resume, uninstall
from gateway.cli.commands.render import render
from gateway.cli.commands.review import recordings, review
from gateway.cli.commands.serve import serve
from gateway.cli.standard_streams import CommandGroup

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


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name=NAME)
def main() -> None:
    """One admission webhook for kube-apiserver, and behind it policies as small workers."""


for _command in (
    completion,
    serve,
    bridge,
    hook_worker,
    shell_lib,
    check,
    render,
    doctor,
    review,
    recordings,
    audit,
    uninstall,
    resume,
    explain,
    purge,
    new_worker,
    demo,
):
    main.add_command(_command)
