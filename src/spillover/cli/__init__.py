"""The command `spillover`: parse, call, print.

Exit codes: 0 success, 1 a run failed, 2 bad input, 130 interrupted. Results go to stdout; progress and errors go to
stderr, each error as one line that starts with `spillover:`.
"""

import click
from click.shell_completion import get_completion_class

from spillover import __version__
from spillover.cli.app import Command, Group
from spillover.cli.catalogue import bound, policies
from spillover.cli.output import json_option, note, print_json, print_table
from spillover.cli.runs import report, reproduce, run, tune
from spillover.cli.serve import serve, token
from spillover.cli.stream import stream
from spillover.cli.stream_files import audit, export, import_file
from spillover.cli.table_commands import check, evaluate, next_decision
from spillover.registry import Registry

COMMANDS: Registry[click.Command] = Registry("command", "spillover.commands", click.Command, {})  # beside our own
EXAMPLES = (
    "spillover next --example               # write history.csv, a table to start from",
    "spillover check history.csv            # what can be learned from it, and what not",
    "spillover next history.csv --budget 2  # what to choose next, and why",
    "spillover evaluate history.csv         # how good the decisions were",
    "spillover reproduce --quick            # the paper's studies, with few replications",
    "spillover policies ndc-sem             # one policy and its parameters",
    "spillover bound --delay 50             # the regret bound of Theorem 1 in numbers",
)
SHELLS = ("bash", "zsh", "fish")
COMPLETION_EXAMPLES = (
    'eval "$(spillover completion bash)"     # in ~/.bashrc',
    'eval "$(spillover completion zsh)"      # in ~/.zshrc',
    'eval "$(spillover completion fish)"     # in ~/.config/fish/config.fish',
)


class Main(Group):
    """Our own commands, those of installed packages, and module:command of one's own."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        return COMMANDS.find(cmd_name) if own is None and COMMANDS.is_name(cmd_name) else own

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *COMMANDS.loadable(note)]


@click.group(
    cls=Main, examples=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="spillover", message="%(prog)s %(version)s")
@click.option("--traceback", is_flag=True, help="Show the traceback of an error, not only its message.")
def main(traceback: bool) -> None:
    """Choose s of N actions every round when outcomes arrive late, the world changes, and actions spill over.

    The --help of each command has examples that run as they are.
    """


@click.command(cls=Command, examples=COMPLETION_EXAMPLES, short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands and options."""
    found = get_completion_class(shell)
    if found is None:
        raise click.BadParameter(f"shell = {shell!r}: the installed version of click does not support it")
    root = context.find_root().command
    click.echo(found(root, {}, "spillover", "_SPILLOVER_COMPLETE").source())


main.add_command(next_decision, "next")
for command in (check, evaluate, serve, stream, audit, export, import_file, token):
    main.add_command(command)
for command in (reproduce, run, tune, report, policies, bound, completion):
    main.add_command(command)

# what a command of one's own is written with: docs/write-your-own.md
__all__ = ["Command", "json_option", "main", "print_json", "print_table"]
