"""`spillover tune`: search a grid of hyperparameters."""

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from spillover.cli.edge import Command
from spillover.cli.output import print_json, print_table
from spillover.cli.runs import shows, work_options
from spillover.experiments.search import Place
from spillover.experiments.tune import Tuned, run_search
from spillover.studies import load_search

EXAMPLES = (
    "spillover tune covid-grid --replications 5",
    "spillover tune sparsity --output results --jobs 2",
    "spillover tune my-grid.toml --seed 77 --json",
)


@click.command(cls=Command, examples=EXAMPLES, short_help="Search a grid of hyperparameters.")
@click.argument("file")
@click.option("--force", is_flag=True, help="Tune on the very draws that are reported.")
@work_options
def tune(
    file: str,
    force: bool,
    output: Path,
    replications: int | None,
    seed: int | None,
    quiet: bool,
    as_json: bool,
    **engine: Any,
) -> None:
    """Search the grid in FILE (TOML, or the name of one that ships) for the least final regret.

    It is searched on other draws than the reported ones: a seed that is reported is refused without --force. The
    paper's grids ship as covid-grid (discount and exploration) and sparsity. Results go to OUTPUT and the
    search's name: tuning.csv has every cell, tuning.json the best ones,
    grid-*.png a heat map of discount and exploration. A file is one for `spillover run` with a table

    \b
        [grid]                      # all combinations are tried
        discount = [0.9, 0.99]
        exploration = { from = 1e-8, to = 0.1, points = 8 }     # logarithmic
    """
    from spillover.report.tuning import draw_grid  # matplotlib takes half a second, which other commands need not wait

    start = perf_counter()
    search = load_search(file, replications=replications, seed=seed, force=force)
    folder = output / search.name
    try:
        found = run_search(search, folder, progress=shows(quiet), **engine)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped: finished blocks are kept in {folder}; run the same command again to continue"
        ) from None
    files = [*found.save(folder), *draw_grid(found.to_frame(), folder)]
    best = found.best()
    if as_json:
        print_json({"search": search.name, "files": files, "best": best.to_dict("records")})
        return
    print_table(
        [str(name) for name in best],
        [[f"{v:g}" if isinstance(v, float) else str(v) for v in row] for row in best.to_numpy()],
    )
    for line in edges(found):
        click.echo(line)
    click.echo(f"the best of {len(search.cells)} cells; all of them: {files[0]}")
    for path in files:
        if path.suffix == ".png":
            click.echo(f"heat map: {path}")
    click.echo(f"{perf_counter() - start:.0f} s")


def edges(found: Tuned) -> Iterator[str]:
    """A best value at the end of its grid says little: the best may lie beyond."""
    for row in found.best().to_dict("records"):
        for name, values in found.search.grid.items():
            if len(values) > 1 and row[name] in (min(values), max(values)):
                where = ", ".join(str(row[field]) for field in Place._fields)
                yield f"note: {name} = {row[name]:g} is an end of its grid ({where}): a better one may lie beyond"
