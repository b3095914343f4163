"""The command `spillover`: parse, call, print.

Exit codes: 0 success, 1 a run failed, 2 bad input, 130 interrupted. Results go to stdout; progress and errors go to
stderr, each error as one line that starts with `spillover:`.
"""

import click

from spillover import __version__
from spillover.cli.app import Command, Group, note
from spillover.cli.bound import bound
from spillover.cli.catalogue import policies
from spillover.cli.check import check
from spillover.cli.completion import completion
from spillover.cli.evaluate import evaluate
from spillover.cli.next import next_decision
from spillover.cli.output import json_option, print_json, print_table
from spillover.cli.runs import report, reproduce, run
from spillover.cli.serve import serve
from spillover.cli.stream import stream
from spillover.cli.stream_files import audit, export, import_file
from spillover.cli.token import token
from spillover.cli.tuning import tune
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


main.add_command(next_decision, "next")
for command in (check, evaluate, serve, stream, audit, export, import_file, token):
    main.add_command(command)
for command in (reproduce, run, tune, report, policies, bound, completion):
    main.add_command(command)

# what a command of one's own is written with: docs/write-your-own.md
__all__ = ["Command", "json_option", "main", "print_json", "print_table"]
