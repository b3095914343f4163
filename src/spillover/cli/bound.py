"""`spillover bound`: Theorem 1 in numbers."""

from dataclasses import asdict
from typing import Any

import click

from spillover.cli.app import Command
from spillover.cli.options import with_options
from spillover.cli.output import json_option, print_json
from spillover.environments import SyntheticSEM
from spillover.rng import Rng
from spillover.theory import RegretBound, regret_bound, world_constants

EXAMPLES = (
    "spillover bound",
    "spillover bound --discount 0.995 --exploration 0.2 --delay 200",
    "spillover bound --seed 7 --json",
    "spillover bound --smallest-gap 0.5 --changes 0 --horizon 100000",
)
DERIVED = ("printed", "corrected", "lean", "trivial", "vacuous", "largest_count", "reachable", "dominant")
CONSTANTS = {  # fields of WorldConstants
    "n_arms": (int, "N: number of arms."),
    "budget": (int, "s: arms that may be chosen in a round."),
    "horizon": (int, "T: number of rounds."),
    "changes": (int, "Upsilon: rounds at which a mean changes."),
    "longest_path": (int, "p: edges on the longest path of the graph."),
    "largest_weight": (float, "w_max: the largest total effect of an arm."),
    "smallest_gap": (float, "Delta_min: the gap of the best suboptimal decision."),
    "largest_gap": (float, "Delta_max: the gap of the worst decision."),
}


constant_options = with_options(
    [
        click.option(f"--{name.replace('_', '-')}", name, type=kind, help=text)
        for name, (kind, text) in CONSTANTS.items()
    ]
)


@click.command(cls=Command, examples=EXAMPLES, short_help="Theorem 1, the regret bound of NDC-SEM, in numbers.")
@click.option("--discount", default=0.985, show_default=True, help="gamma, strictly between 0 and 1.")
@click.option("--exploration", default=0.11, show_default=True, help="xi, above 1 / (2 (s + 1)).")
@click.option("--delay", default=50, show_default=True, help="D, or the longest possible delay.")
@click.option("--seed", default=0, show_default=True, help="Which of the paper's random worlds to use.")
@constant_options
@json_option
def bound(discount: float, exploration: float, delay: int, seed: int, as_json: bool, **constants: Any) -> None:
    """The regret bound of NDC-SEM (Theorem 1), term by term, as printed in the paper and corrected.

    It is evaluated for a random world of the paper's synthetic setting (see --seed); the constants given as options
    replace those of that world. The exploration that the paper tunes to (1e-10) is outside the theorem's domain.
    """
    world = world_constants(SyntheticSEM().draw(Rng(seed)))
    given = {name: value for name, value in constants.items() if value is not None}
    found = regret_bound(world._replace(**given), discount=discount, exploration=exploration, delay=delay)
    if as_json:
        print_json(bound_content(found))
    else:
        click.echo(str(found))


def bound_content(found: RegretBound) -> dict[str, Any]:
    """All terms of the bound and the numbers derived from them."""
    constants = found.constants._asdict()
    return asdict(found) | {"constants": constants} | {name: getattr(found, name) for name in DERIVED}
