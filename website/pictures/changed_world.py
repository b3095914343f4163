"""Draw what a change does: two policies in a world in which the best arms become the worst, from a simulation."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import spillover as sp
from website.pictures.canvas import BLUE, GREY, ORANGE

CHANGE, HORIZON, DELAY = 301, 700, 30
BEFORE, AFTER = [0.8, 0.7, 0.3, 0.2], [0.2, 0.3, 0.7, 0.8]
POLICIES = {
    "Switching-SEM notices the change": (sp.SwitchingSEM(), BLUE, "-"),
    "SEM-UCB takes the past for the present": (sp.SEMUCB(), ORANGE, "--"),
}


def draw() -> Figure:
    figure = Figure(figsize=(9.2, 4.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1, 1.5])
    draw_means(upper)
    world = sp.FixedSEM(adjacency=np.zeros((4, 4)), means=[BEFORE, AFTER], changes=(CHANGE,), budget=2, horizon=HORIZON)
    for name, (policy, color, dashes) in POLICIES.items():
        run = sp.simulate(policy, world, sp.ConstantDelay(DELAY), replications=40, seed=0)
        lost = np.diff(run.regret.mean(axis=0), prepend=0.0)
        smooth = np.convolve(lost, np.ones(10) / 10, mode="same")
        lower.plot(np.arange(1, HORIZON + 1), smooth, color=color, linestyle=dashes, label=name)
    mark_delay(lower)
    lower.set(xlabel="round", ylabel="lost each round", xlim=(1, HORIZON - 5), ylim=(0, None))
    lower.legend(frameon=False, loc="upper right")
    return figure


def draw_means(ax: Axes) -> None:
    rounds = np.arange(1, HORIZON + 1)
    for arm, (before, after) in enumerate(zip(BEFORE, AFTER, strict=True)):
        ax.plot(rounds, np.where(rounds < CHANGE, before, after), color=BLUE if arm < 2 else ORANGE)
    ax.text(60, 0.84, "arms 1 and 2", color=BLUE, fontsize=9)
    ax.text(60, 0.08, "arms 3 and 4", color=ORANGE, fontsize=9)
    ax.set(ylabel="mean reward", ylim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)


def mark_delay(ax: Axes) -> None:
    """The rounds after the change in which no outcome of the new world has arrived."""
    ax.axvspan(CHANGE, CHANGE + DELAY, color=GREY, alpha=0.25, lw=0)
    ax.annotate(
        "the delay: nobody can know yet",
        (CHANGE + DELAY / 2, 0.9),
        (130, 0.9),
        fontsize=9,
        va="center",
        ha="center",
        arrowprops={"arrowstyle": "-", "color": GREY},
    )
    ax.spines[["top", "right"]].set_visible(False)
