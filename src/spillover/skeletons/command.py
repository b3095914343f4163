"""example-command, a command to start from: how a policy compares with chance in a simulated world."""

from typing import Any

import click

import spillover as sp
from spillover.cli import Command, json_option, print_json, print_table
from spillover.policies import find_policy

EXAMPLES = (
    "spillover spillover.skeletons.command:example_command",
    "spillover spillover.skeletons.command:example_command --policy ndc-sem --rounds 300 --json",
)


@click.command("example-command", cls=Command, examples=EXAMPLES, short_help="How a policy compares with chance.")
@click.option("--policy", default="sem-ucb", show_default=True, help="A name that `spillover policies` lists.")
@click.option("--rounds", type=click.IntRange(min=1), default=200, show_default=True, help="How long to play.")
@json_option
def example_command(policy: str, rounds: int, as_json: bool) -> None:
    """Play a policy and a random one in the same simulated worlds, and print their final regret."""
    found = compare(policy, rounds)
    if as_json:
        print_json(found)
    else:
        print_table(["policy", "final regret"], [[name, f"{regret:.1f}"] for name, regret in found.items()])


def compare(policy: str, rounds: int) -> dict[str, Any]:
    """Mean final regret by policy. What is refused is a ValueError: the command prints its message in a line.

    >>> compare("randm", 10)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: policy = 'randm': must be one of ...; did you mean random?
    """
    world = sp.SyntheticSEM(horizon=rounds, changes=())
    return {
        name: float(sp.simulate(find_policy(name)(), world, 5, replications=10).final_regret.mean())
        for name in (policy, "random")
    }
