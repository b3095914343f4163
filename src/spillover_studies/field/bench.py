"""A policy of one's own against the stored results of all others, on the same draws."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from spillover.cli import Command, json_option, print_json, print_table
from spillover.contracts import Policy, as_policy, suited
from spillover.experiments import Experiment, Results, open_results, parse_experiment, run_experiment
from spillover.metrics import Interval, mean_interval
from spillover.policies import find_policy
from spillover.rng import Purpose, Rng
from spillover.studies import load_experiment
from spillover.types import Array
from spillover_studies.field.standings import REFERENCES

STORED = "results.csv"
VERSION = 1  # of its columns
COLUMNS = ("version", "world", "delay", "policy", "label", "told", "seed", "source")  # and the regret of each world
OWN = "own"
EXAMPLES = (
    "spillover spillover_studies.field.bench:bench --policy cts --world changes --delay 50",
    "spillover spillover_studies.field.bench:bench --policy my_greedy:FastGreedy",
)


class Stored(NamedTuple):
    """The final regret of a policy in a world at a delay, in each replication."""

    world: str
    delay: str
    policy: str
    label: str
    told: str  # "the world", "the structure" or nothing
    seed: int
    source: str  # hash of the source that computed it
    regret: Array


def told_of(policy: Policy) -> str:
    return "the world" if policy.traits.needs_world else "the structure" if policy.traits.knows_structure else ""


def lines_of(results: Results) -> Iterator[Stored]:
    """What is stored of the results of the study."""
    experiment = results.experiment
    for (world, delay, name), count in experiment.combinations().items():
        record = results.record(world, delay, name)
        source = next(experiment.blocks(world, delay, name, count)).source
        told = told_of(as_policy(experiment.policies[name].policy(delay)))
        regret = record.regret[:, -1]
        yield Stored(world, delay, name, record.label, told, experiment.seed, source[:16], regret)


def write_stored(folder: Path, path: Path) -> None:
    """Write the file from a folder of results."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        stored = list(lines_of(open_results(folder)))
        writer.writerow([*COLUMNS, *(f"regret_{k}" for k in range(max(len(line.regret) for line in stored)))])
        for line in stored:
            writer.writerow([VERSION, *line[:-1], *(f"{value:.6g}" for value in line.regret)])


def read_stored() -> list[Stored]:
    """The results that ship with the study."""
    rows = csv.reader((files(__package__) / STORED).read_text("utf-8").splitlines())
    header = next(rows)
    if header[: len(COLUMNS)] != list(COLUMNS):
        raise ValueError(f"columns of {STORED} = {header[: len(COLUMNS)]}: must be {list(COLUMNS)}")
    found = []
    for version, world, delay, policy, label, told, seed, source, *regret in rows:
        if int(version) != VERSION:
            raise ValueError(f"version of {STORED} = {version}: must be {VERSION}")
        found.append(Stored(world, delay, policy, label, told, int(seed), source, np.array(regret, float)))
    return found


def suits(policy: Policy, experiment: Experiment, world: str) -> bool:
    """Whether a world observes what the policy needs."""
    drawn = experiment.worlds[world].draw(Rng(0).at(Purpose.WORLD))
    try:
        suited(policy, drawn.problem)
    except ValueError:
        return False
    return True


def experiment_of(kind: str, worlds: tuple[str, ...], delays: tuple[str, ...]) -> tuple[Experiment, list[str]]:
    """The study's experiment with one policy, and the worlds that do not suit it."""
    shipped, policy = load_experiment("field"), as_policy(find_policy(kind)())
    chosen = [world for world in shipped.worlds if not worlds or world in worlds]
    fit = [world for world in chosen if suits(policy, shipped, world)]
    if not fit:
        raise ValueError(f"policy = {kind!r}: must be one that suits a world of {', '.join(chosen)}")
    start = shipped.text.partition("[[studies]]")[0]
    chosen_study = f"worlds = {json.dumps(fit)}\ndelays = {json.dumps(list(delays or shipped.delays))}"
    text = f'{start}\n[policies.{OWN}]\nkind = "{kind}"\n[[studies]]\npolicies = ["{OWN}"]\n{chosen_study}\n'
    experiment = parse_experiment(text, "field.toml")
    return replace(experiment, name=f"field-{kind.replace(':', '-')}"), [w for w in chosen if w not in fit]


class Row(NamedTuple):
    """The policy in a world at a delay, and the best of those that are told no more."""

    world: str
    delay: str
    regret: Interval
    rank: int  # among all that are told no more, 1: the least mean regret
    rivals: int
    best: str
    ratio: Interval  # of the regrets, paired; the best one's is 1


def row_of(own: Array, world: str, delay: str, told: str, stored: list[Stored]) -> Row:
    levels = {"", told}
    rivals = [
        line
        for line in stored
        if (line.world, line.delay) == (world, delay) and line.told in levels and line.policy not in REFERENCES
    ]
    best = min(rivals, key=lambda line: float(line.regret.mean()))
    count = min(len(own), len(best.regret))
    first, second = own[:count], best.regret[:count]
    ratio, base = first.mean() / second.mean(), second.mean()
    _, low, high = mean_interval((first - ratio * second) / base)
    rank = 1 + sum(float(line.regret.mean()) < own.mean() for line in rivals)
    return Row(
        world, delay, mean_interval(own), rank, len(rivals) + 1, best.label, Interval(ratio, ratio + low, ratio + high)
    )


def compare_with_stored(results: Results) -> list[Row]:
    """A row for each world and delay in which the policy was played."""
    stored, entry = read_stored(), results.experiment.policies[OWN]
    found = []
    for world, delay, _ in results.experiment.combinations():
        told = told_of(as_policy(entry.policy(delay)))
        found.append(row_of(results.record(world, delay, OWN).regret[:, -1], world, delay, told, stored))
    return found


@click.command("bench", cls=Command, examples=EXAMPLES, short_help="A policy against the field, on the same draws.")
@click.option("--policy", required=True, help="A built-in name, or module:Class.")
@click.option("--world", "worlds", multiple=True, help="Only this world; may be repeated.")
@click.option("--delay", "delays", multiple=True, help="Only this delay; may be repeated.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("results"), show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), help="Workers; by default one per core.")
@json_option
def bench(
    policy: str, worlds: tuple[str, ...], delays: tuple[str, ...], output: Path, jobs: int | None, as_json: bool
) -> None:
    """Play a policy in the worlds of the study `field`, and compare it with the stored results of all others.

    Worlds, rewards and delays are those that the others met. To resume, give the same command again.
    """
    experiment, unsuited = experiment_of(policy, worlds, delays)
    engine = "serial" if jobs == 1 else "loky"
    results = run_experiment(experiment, output / experiment.name, engine=engine, jobs=jobs, progress=not as_json)
    rows = compare_with_stored(results)
    if as_json:
        print_json({"policy": policy, "unsuited": unsuited, "rows": [content_of(row) for row in rows]})
        return
    header = ["world", "delay", "regret", "95% interval", "rank", "best, told no more", "ratio to it"]
    print_table(header, [text_of(row) for row in rows])
    if unsuited:
        click.echo(f"not played, as the policy needs to see more: {', '.join(unsuited)}")


def content_of(row: Row) -> dict[str, Any]:
    intervals = {name: [float(v) for v in getattr(row, name)] for name in ("regret", "ratio")}
    return row._asdict() | intervals


def text_of(row: Row) -> list[str]:
    mean, low, high = (float(v) for v in row.regret)
    ratio, least, most = (float(v) for v in row.ratio)
    rank, span = f"{row.rank} of {row.rivals}", f"[{low:,.0f}, {high:,.0f}]"
    return [row.world, row.delay, f"{mean:,.0f}", span, rank, row.best, f"{ratio:.2f} [{least:.2f}, {most:.2f}]"]
