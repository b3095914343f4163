"""The command `spillover`: parse, call, print.

Exit codes: 0 all is well, 1 a run failed, 2 bad input, 130 interrupted. Results go to stdout; progress and errors, each
one line that starts with `spillover:`, go to stderr.
"""

import click

from spillover import __version__
from spillover.cli.bound import bound
from spillover.cli.catalogue import policies
from spillover.cli.completion import completion
from spillover.cli.edge import Group
from spillover.cli.new import new
from spillover.cli.next import next_decision
from spillover.cli.runs import report, reproduce, run
from spillover.cli.tuning import tune

EXAMPLES = (
    "spillover next --example         # a file to start from, and the next decision from it",
    "spillover reproduce --quick      # the paper's synthetic study, with few replications",
    "spillover policies ndc-sem       # one policy and its parameters",
    "spillover new policy my-idea     # a working policy of your own, and its test",
    "spillover bound --delay 50       # what Theorem 1 promises",
)


@click.group(
    cls=Group, examples=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="spillover", message="%(prog)s %(version)s")
@click.option("--traceback", is_flag=True, help="Show where an error comes from, not only what it says.")
def main(traceback: bool) -> None:
    """Choose s of N actions every round when outcomes arrive late, the world drifts, and actions spill over.

    Each command's --help has examples that can be run as they are.
    """


for command in (reproduce, run, tune, report, policies, bound, new, completion):
    main.add_command(command)
main.add_command(next_decision, "next")

__all__ = ["main"]
