"""Payoff up to each round: what was earned, and what others would have earned, with 95% intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from spillover import validate
from spillover.figures.style import WIDTH, new_axes, numbered_style
from spillover.formatting import printable

TICKS = 4


def course_figure(
    rounds: Sequence[str],
    earned: Any,
    lines: Sequence[tuple[str, tuple[Any, Any, Any]]],
    *,
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """A line for what was earned up to each round, and one with a band for each of `lines`: name, (mean, low, high).

    >>> ax = course_figure(["a", "b"], [1.0, 2.0], [("other", ([1.5, 3.0], [1.0, 2.5], [2.0, 3.5]))])
    >>> [line.get_label() for line in ax.get_lines()]
    ['earned', 'other']
    """
    validate.require(len(rounds) == len(earned) > 0, "rounds", rounds, "one label for each number that was earned")
    target = ax or new_axes(WIDTH, 3.2)
    places = np.arange(len(rounds))
    target.plot(places, earned, color="black", linewidth=1.6, label="earned")
    for k, (name, (mean, low, high)) in enumerate(lines):
        style = numbered_style(k)  # by position: here some policies with the same colour stand side by side
        target.fill_between(places, low, high, color=style.color, alpha=0.2, linewidth=0)
        target.plot(places, mean, color=style.color, linestyle=style.linestyle, linewidth=1.6, label=printable(name))
    shown = np.unique(np.linspace(0, len(rounds) - 1, min(TICKS, len(rounds))).astype(int))
    target.set_xticks(shown, [printable(rounds[k]) for k in shown])
    target.set(xlabel="round", ylabel="payoff up to the round", title=title)
    target.legend(frameon=False)
    return target
