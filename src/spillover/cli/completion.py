"""`spillover completion`: the shell script that completes commands and options."""

import click
from click.shell_completion import get_completion_class

from spillover.cli.app import Command

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = (
    'eval "$(spillover completion bash)"     # in ~/.bashrc',
    'eval "$(spillover completion zsh)"      # in ~/.zshrc',
    'eval "$(spillover completion fish)"     # in ~/.config/fish/config.fish',
)


@click.command(cls=Command, examples=EXAMPLES, short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands and options."""
    found = get_completion_class(shell)
    if found is None:
        raise click.BadParameter(f"shell = {shell!r}: the installed version of click does not support it")
    root = context.find_root().command
    click.echo(found(root, {}, "spillover", "_SPILLOVER_COMPLETE").source())
