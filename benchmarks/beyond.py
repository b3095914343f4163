"""Beyond the paper: the table of the shipped study, on many fresh instances.

`python -m benchmarks beyond [--instances 400] [--seed S] [--families all-50 one lossy ...]`

Policies, worlds and delays are those of `studies/beyond/beyond.toml`. For each family: mean final pseudo-regret,
its ratio to the delayed oracle's, and the regret of the blind rounds (the first D + 1) apart; where the setting is
varied, the ratio of Switching-SEM to the best of NDC-SEM and SEM-UCB, tuned or not. Ratios are those of the means over
the same instances, with 95% intervals by the delta method. Without a seed a fresh one is drawn, and told.
"""

import argparse
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spillover.experiments import Results, run_experiment
from spillover.formatting import format_value
from spillover.report.claims import format_ci
from spillover.report.tables import final_table, spans
from spillover.studies import load_experiment
from spillover_studies.beyond.settings import COMPARED, MAIN, VARIED, Family, against_the_best, records_of

FAMILIES = {family.name: family for family in MAIN + VARIED}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks beyond", description="Beyond the paper.")
    parser.add_argument("--instances", type=int, default=400, help="fresh instances of each family")
    parser.add_argument("--seed", type=int, default=None, help="default: a fresh one")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args(arguments)


def run_family(family: Family, instances: int, seed: int, jobs: int, folder: Path) -> Results:
    """Blocks of 100 instances, spread over processes."""
    experiment = load_experiment("beyond").changed(
        replications=instances, seed=seed, block=100, worlds=[family.world], delays=[family.delay], policies=COMPARED
    )
    return run_experiment(experiment, folder / family.name, engine="loky", jobs=jobs)


def print_family(family: Family, results: Results) -> None:
    records = records_of(results, family)
    table = final_table(list(records.values()))
    columns = (
        table["label"],
        spans(table, "final_regret", ",.0f"),
        spans(table, "ratio", ".2f"),
        table["blind_regret"],
        spans(table, "later_ratio", ".2f"),
    )
    print(
        f"\n{family.title}: final regret, times the delayed oracle's, of which blind, times it afterwards", flush=True
    )
    for label, regret, ratio, blind, later in zip(*columns, strict=True):
        print(f"  {label:34} {regret:24} {ratio:20} {format_value(blind, ',.0f'):>7}  {later}", flush=True)
    if family in VARIED and (found := against_the_best(records)) is not None:
        ratio = format_ci(found[0], 3)
        print(f"  Switching-SEM over {found[1].label}, the best of the paper's: {ratio}", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    given = parse(arguments)
    seed = secrets.randbits(32) if given.seed is None else given.seed
    print(f"{given.instances} fresh instances a family, seed {seed}; mean [95% interval]")
    with tempfile.TemporaryDirectory() as folder:
        for k, name in enumerate(given.families, 1):
            print(f"{k} of {len(given.families)}: {name}", file=sys.stderr, flush=True)
            results = run_family(FAMILIES[name], given.instances, seed, given.jobs, Path(folder))
            print_family(FAMILIES[name], results)


if __name__ == "__main__":
    main(sys.argv[1:])
