"""`spillover tune`: search a grid of hyperparameters."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from spillover.cli.app import Command
from spillover.cli.output import print_json, print_table, say
from spillover.cli.runs import announce_plan, confirm_plan, shows_progress, work_options, yes_option
from spillover.experiments.engines import workers_of
from spillover.experiments.experiment import Place
from spillover.experiments.forecast import plan
from spillover.experiments.tune import Tuned, run_search
from spillover.studies import load_search
from spillover.study import say_nothing

EXAMPLES = (
    "spillover tune covid-grid --replications 5",
    "spillover tune sparsity --output results --jobs 2",
    "spillover tune my-grid.toml --seed 77 --json",
)


@click.command(cls=Command, examples=EXAMPLES, short_help="Search a grid of hyperparameters.")
@click.argument("file")
@click.option("--force", is_flag=True, help="Allow a seed that is used for reported results.")
@yes_option
@work_options
def tune(
    file: str,
    force: bool,
    yes: bool,
    output: Path,
    replications: int | None,
    seed: int | None,
    any_size: bool,
    quiet: bool,
    as_json: bool,
    **engine: Any,
) -> None:
    """Search the grid in FILE (TOML, or the name of one that ships with the package) for the least final regret.

    Tune on other random draws than those of reported results: a seed that is used there is rejected without --force.
    The paper's grids ship as covid-grid (discount and exploration) and sparsity, the searches behind the synthetic
    study's tuned parameters as ndc-sem-grid and sem-ucb-grid. Results go to OUTPUT/NAME, where NAME
    is the search's: tuning.csv has every cell, tuning.json the best ones, grid-*.png is a heat map of discount and
    exploration. FILE is an experiment file, as for `spillover run`, with one more table:

    \b
        [grid]                      # all combinations are tried
        discount = [0.9, 0.99]
        exploration = { from = 1e-8, to = 0.1, points = 8 }     # logarithmic
    """
    from spillover.figures.grid import draw_grid  # matplotlib takes half a second to load

    start = perf_counter()
    search = load_search(file, replications=replications, seed=seed, force=force, any_size=any_size)
    announce = say_nothing if quiet else announce_plan if yes else confirm_plan
    begin = partial(announce, plan(search.name, search.size, any_size, **engine), workers_of(**engine))
    folder = output / search.name
    try:
        found = run_search(search, folder, progress=shows_progress(quiet), begin=begin, **engine)
    except KeyboardInterrupt:
        kept = f"finished cells are kept in {folder}"
        raise KeyboardInterrupt(f"stopped: {kept}; run the same command again to resume") from None
    files = [*found.save(folder), *draw_grid(found.to_frame(), folder)]
    best = found.best()
    if as_json:
        print_json({"search": search.name, "files": files, "best": best.to_dict("records")})
        return
    print_table(
        [str(name) for name in best],
        [[f"{v:g}" if isinstance(v, float) else str(v) for v in row] for row in best.to_numpy()],
    )
    for line in boundary_notes(found):
        say(line)
    say(f"best of {len(search.cells)} cells; all cells: {files[0]}")
    for path in files:
        if path.suffix == ".png":
            say(f"heat map: {path}")
    say(f"{perf_counter() - start:.0f} s")


def boundary_notes(found: Tuned) -> Iterator[str]:
    """A note for each best value at the boundary of its grid: a better one may lie outside."""
    for row in found.best().to_dict("records"):
        for name, values in found.search.grid.items():
            if len(values) > 1 and row[name] in (min(values), max(values)):
                where = ", ".join(str(row[field]) for field in Place._fields)
                best = f"{name} = {row[name]:g}"
                yield f"note: {best} is at the boundary of its grid ({where}): a better value may lie outside"
