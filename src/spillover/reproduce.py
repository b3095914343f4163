"""`python -m spillover.reproduce`: the synthetic study as far as it goes, into a folder."""

import argparse
import sys
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

import spillover as sp
from spillover.simulation import Run
from spillover.state import write_whole
from spillover.types import Informed, Policy

DELAYS = (50, 200, 400)
EXPLORATION = {50: 1e-10, 200: 1e-6, 400: 1e-18}  # the paper's table PolicyParams


def run_delay(delay: int, replications: int, seed: int) -> dict[str, Run]:
    """NDC-SEM with the paper's parameters and the reference points, all in the same worlds."""
    policies: dict[str, Policy | Informed] = {
        "random": sp.Uniform(),
        "NDC-SEM": sp.NDCSEM(discount=0.985, exploration=EXPLORATION[delay], sparsity=1e-3),
        "delayed oracle": sp.DelayedOracle(),
        "oracle": sp.Oracle(),
    }
    return {
        name: sp.simulate(
            policy, sp.SyntheticSEM(), sp.ConstantDelay(delay), replications=replications, seed=seed, progress=True
        )
        for name, policy in policies.items()
    }


def table(studies: dict[int, dict[str, Run]]) -> str:
    """Final regret with its 95% interval, of which the first D + 1 rounds, and the error of the graph."""
    lines = ["delay,policy,final_regret,low,high,blind_regret,optimality_ratio,graph_mse"]
    for delay, runs in studies.items():
        for name, run in runs.items():
            mean, low, high = run.interval("final_regret")
            blind = run.blind_regret(delay + 1).mean()
            error = run.graph_error[:, -1].mean()
            ratio = run.optimality_ratio.mean()
            lines.append(f"{delay},{name},{mean:.1f},{low:.1f},{high:.1f},{blind:.1f},{ratio:.3f},{error:.3g}")
    return "\n".join(lines) + "\n"


def draw(studies: dict[int, dict[str, Run]], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from spillover.report import regret_figure, save_figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(studies), sharey=True)
    for ax, (delay, runs) in zip(axes, studies.items(), strict=True):
        records: list[Any] = [
            SimpleNamespace(
                policy=name.lower().replace(" ", "-"),
                label=name,
                rounds=np.arange(1, run.regret.shape[-1] + 1),
                regret=run.regret,
                changes=run.changes,
                horizon=run.regret.shape[-1],
            )
            for name, run in runs.items()
        ]
        regret_figure(records, ax=ax, title=f"outcomes {delay} rounds late")
        ax.label_outer()
    axes[0].legend(loc="upper left", framealpha=1.0, edgecolor="none")
    save_figure(figure, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m spillover.reproduce", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder to write to (default: results)")
    parser.add_argument("--replications", type=int, default=100, help="fresh worlds a delay (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all draws (default: 0)")
    given = parser.parse_args(arguments)
    start = perf_counter()
    try:
        given.output.mkdir(parents=True, exist_ok=True)
        studies = {delay: run_delay(delay, given.replications, given.seed) for delay in DELAYS}
        write_whole(given.output / "regret.csv", table(studies).encode())
        draw(studies, given.output / "regret.png")
    except (ValueError, OSError) as error:
        print(f"spillover: {error}", file=sys.stderr)
        return 2
    print(table(studies), end="")
    print(f"{given.replications} fresh worlds a delay, seed {given.seed}, {perf_counter() - start:.0f} s")
    print(f"wrote {given.output / 'regret.csv'} and {given.output / 'regret.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
