"""Measure how cost grows with rounds, arms, edges, delay, learners and cells: times, exponents and a figure."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import spillover as sp
from spillover.experiments import parse_experiment, run_experiment
from spillover.figures.style import figure_legend, figure_of, hide_spines, new_panels, save_figure, styles_for

FIGURE = Path(__file__).parent.parent / "docs" / "images" / "growth.png"
SHORT = 0.5  # seconds; what takes less is measured twice
POLICIES: dict[str, Any] = {"ndc-sem": sp.NDCSEM(), "switching-sem": sp.SwitchingSEM()}
CELLS = """
name = "cells"
seed = 1
replications = {cells}
block = 1
record = 20

[worlds.small]
kind = "synthetic"
horizon = 20
changes = []

[delays.5]
kind = "constant"
rounds = 5

[policies.random]
kind = "random"

[[studies]]
worlds = ["small"]
delays = ["5"]
policies = ["random"]
"""


class Growth(NamedTuple):
    """Seconds of processor time at some sizes."""

    what: str
    policy: str
    sizes: list[int]
    seconds: list[float]

    @property
    def exponents(self) -> tuple[float, float]:
        """The slope in logarithms from the first size to the last, and from the last but one."""
        sizes, seconds = np.log(self.sizes), np.log(self.seconds)
        whole, last = ((seconds[-1] - seconds[k]) / (sizes[-1] - sizes[k]) for k in (0, -2))
        return float(whole), float(last)


def seconds_of(work: Callable[[], object]) -> float:
    """Processor time; of short work the lower of two measurements, so that what else the machine does counts little."""
    found: list[float] = []
    while not found or (len(found) < 2 and found[0] < SHORT):
        start = process_time()
        work()
        found.append(process_time() - start)
    return min(found)


def play(policy: Any, delay: int = 10, replications: int = 1, **world: Any) -> Callable[[], object]:
    """A simulation, with the graph measured at the end alone."""
    given = {"changes": (), **world}
    environment = sp.SyntheticSEM(**given)
    return lambda: sp.simulate(
        policy, environment, delay, replications=replications, seed=1, record=[environment.horizon]
    )


def with_arms(n: int, edges_per_arm: float = 0.8, horizon: int = 200) -> dict[str, Any]:
    """One in a hundred arms is chosen, so that the first half of the rounds is enough to try all of them."""
    density = min(edges_per_arm / (n - 1), 0.5)
    return {"n_arms": n, "budget": max(n // 100, 1), "edge_density": density, "horizon": horizon}


def run_cells(cells: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(parse_experiment(CELLS.format(cells=cells)), Path(folder), engine="serial", progress=False)


def plans(policy: Any) -> dict[str, dict[int, Callable[[], object]]]:
    """List for each quantity the work at each size.

    Up to 100 arms have matrices, from 1,000 on lists of candidate edges, and from 10,000 on so has the world.
    """
    arms = (10, 32, 100, 1_000, 10_000, 100_000)
    return {
        "rounds": {t: play(policy, 10, 10, horizon=t) for t in (1_000, 3_162, 10_000, 31_623)},
        "arms": {n: play(policy, **with_arms(n)) for n in arms},
        "edges": {round(50 * k): play(policy, **with_arms(50, k, 1_000)) for k in (0.5, 1, 2, 4, 8)},
        "delay": {d: play(policy, d, 10, horizon=10_000) for d in (1, 10, 100, 1_000, 5_000)},
        "learners": {r: play(policy, 10, r, horizon=100) for r in (1, 10, 100, 1_000, 3_162)},
    }


def measured() -> list[Growth]:
    found = []
    for name, policy in POLICIES.items():
        for what, work in plans(policy).items():
            found.append(Growth(what, name, list(work), [seconds_of(one) for one in work.values()]))
    sizes = [10, 32, 100, 316]
    found.append(Growth("cells", "random", sizes, [seconds_of(lambda n=n: run_cells(n)) for n in sizes]))  # type: ignore[misc]
    return found


def label_sizes(ax: Any, sizes: list[int]) -> None:
    """The first, the middle and the last size on the axis, as numbers; powers of ten for the seconds."""
    from matplotlib.ticker import LogLocator, NullFormatter

    shown = [sizes[0], sizes[(len(sizes) - 1) // 2], sizes[-1]]
    ax.set_xticks(shown, [f"{size:,}" for size in shown])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_locator(LogLocator(numticks=5))
    ax.yaxis.set_minor_formatter(NullFormatter())


def draw(growths: list[Growth]) -> None:
    whats = list(dict.fromkeys(growth.what for growth in growths))
    styles = styles_for(growth.policy for growth in growths)
    axes = new_panels(3, 2, size=(5.0, 6.6))
    for ax, what in zip(axes, whats, strict=True):
        for growth in (g for g in growths if g.what == what):
            style = styles[growth.policy]
            ax.loglog(
                growth.sizes,
                growth.seconds,
                color=style.color,
                linestyle=style.linestyle,
                marker=style.marker,
                markersize=4,
                label=growth.policy,
            )
        first = min((g for g in growths if g.what == what), key=lambda g: g.seconds[-1])
        line = [first.seconds[-1] * size / first.sizes[-1] for size in first.sizes]
        ax.loglog(first.sizes, line, color="0.6", linewidth=0.9, label="in proportion", zorder=0)
        label_sizes(ax, first.sizes)
        ax.set_title(what, fontsize="medium")
        ax.set_ylabel("s", rotation=0, labelpad=6)
        hide_spines(ax)
    figure_legend(axes)
    save_figure(figure_of(axes[0]), FIGURE)


def main() -> None:
    play(POLICIES["switching-sem"], horizon=20)()  # kernels are loaded
    start = process_time()
    growths = measured()
    print("seconds of processor time; exponent over all sizes, and over the last two")
    for what, policy, sizes, seconds in growths:
        whole, last = Growth(what, policy, sizes, seconds).exponents
        row = "  ".join(f"{size:,}: {spent:.3g}" for size, spent in zip(sizes, seconds, strict=True))
        print(f"{what:9} {policy:14} {row}  | {whole:.2f}, {last:.2f}")
    print(f"in all {process_time() - start:.0f} s")
    draw(growths)


if __name__ == "__main__":
    main()
