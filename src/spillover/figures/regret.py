"""Regret over time and against the delay; payoff up to each round."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from spillover import validate
from spillover.figures.style import (
    WIDTH,
    Style,
    as_written,
    draw_band,
    figure_legend,
    hide_spines,
    mark_changes,
    new_axes,
    new_panels,
    numbered_style,
    styles_for,
)
from spillover.formatting import printable
from spillover.metrics import HasRegret, mean_interval

if TYPE_CHECKING:
    from spillover.experiments import Record


def regret_figure(
    records: Sequence[HasRegret],
    *,
    ax: Axes | None = None,
    title: str = "",
    styles: Mapping[str, Style] | None = None,
) -> Axes:
    """Cumulative expected regret with 95% bands, one line per policy; vertical lines at changes (Fig. 2).

    records: runs (`simulate`), comparisons (`compare`) or stored records, also mixed.
    Axes that are given get no legend: `figure_legend` makes one for several of them.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=50, changes=())
    >>> runs = [sp.simulate(policy, world, 5, replications=2) for policy in (sp.NDCSEM(), sp.Uniform())]
    >>> [line.get_label() for line in regret_figure(runs).get_lines()]
    ['NDCSEM', 'Uniform']
    """
    validate.require(len(records) > 0, "records", records, "at least one")
    curves = [curve for record in records for curve in record.regret_curves()]
    styles = {**styles_for(curve.policy for curve in curves), **(styles or {})}
    target = ax or new_axes(WIDTH, 3.6)
    for k, curve in enumerate(curves):
        found, label = mean_interval(curve.regret), as_written(curve.label)
        draw_band(target, curve.rounds, found, styles[curve.policy], label, line=k, lines=len(curves))
    mark_changes(target, curves[0].changes)
    top = max(target.dataLim.ymax, 1e-12)
    target.set_xlim(0, max(int(curve.rounds[-1]) for curve in curves))
    target.set_ylim(-0.02 * top, 1.05 * top)  # the oracle's line is at 0: the frame must not cover it
    target.set(xlabel="round", ylabel="cumulative expected regret", title=title)
    target.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    hide_spines(target)
    if ax is None:
        figure_legend([target])
    return target


def regret_panels(
    studies: Mapping[str, Sequence[HasRegret]],
    *,
    axes: Sequence[Axes] | None = None,
    styles: Mapping[str, Style] | None = None,
) -> list[Axes]:
    """`regret_figure` for several studies, one below the other, on one scale; the mapping's keys are the titles.

    >>> from spillover.experiments import example_results
    >>> results = example_results()
    >>> len(regret_panels({f"D = {delay}": results.records(delay=delay) for delay in ("2", "6")}))
    2
    """
    validate.require(len(studies) > 0, "studies", studies, "at least one")
    curves = [curve for records in studies.values() for record in records for curve in record.regret_curves()]
    styles = {**styles_for(curve.policy for curve in curves), **(styles or {})}
    count = len(studies)
    panels = list(axes) if axes is not None else new_panels(count, 1, size=(WIDTH, 2.5 * count + 0.5), sharex=True)
    tops = []
    for ax, (title, records) in zip(panels, studies.items(), strict=True):
        regret_figure(records, ax=ax, title=title, styles=styles)
        tops.append(ax.get_ylim()[1])
    for ax in panels:
        ax.set_ylim(-0.02 * max(tops), max(tops))
        ax.label_outer()
    if axes is None:
        figure_legend(panels)
    return panels


def delay_figure(
    records: Sequence["Record"],
    delays: Mapping[str, float],
    *,
    random: Collection[str] = (),
    ax: Axes | None = None,
    title: str = "",
    styles: Mapping[str, Style] | None = None,
) -> Axes:
    """Final regret against the mean delay, with 95% intervals, one line for each policy.

    delays: mean delay in rounds by the name of the delay. random: names of those that are drawn at random each
    round; they are hollow, without a line, and to the right of the constant one.

    >>> from spillover.experiments import example_results
    >>> ax = delay_figure(example_results().records(), {"2": 2, "6": 6})
    >>> ax.get_xlabel()
    'mean delay (rounds)'
    """
    missing = sorted({r.delay for r in records} - set(delays))
    validate.require(len(records) > 0 and not missing, "delays", dict(delays), f"a mean delay for each of {missing}")
    styles = {**styles_for(r.policy for r in records), **(styles or {})}
    target = ax or new_axes(WIDTH, 3.6)
    spread = np.ptp([delays[r.delay] for r in records]) or 1.0
    policies = list(dict.fromkeys(r.policy for r in records))
    for k, policy in enumerate(policies):
        shift = 0.008 * spread * (k - (len(policies) - 1) / 2)  # intervals at one delay stand beside each other
        own = sorted((r for r in records if r.policy == policy), key=lambda r: delays[r.delay])
        draw_delays(target, [r for r in own if r.delay not in random], delays, shift, styles[policy], hollow=False)
        shift += 0.03 * spread
        draw_delays(target, [r for r in own if r.delay in random], delays, shift, styles[policy], hollow=True)
    if any(r.delay in random for r in records):
        target.errorbar(
            [], [], yerr=[], color="0.3", marker="o", markerfacecolor="white", linestyle="",
            label="hollow: random delay of that mean",
        )  # fmt: skip
    target.set(xlabel="mean delay (rounds)", ylabel="final expected regret", title=title)
    top = max(target.dataLim.ymax, 1e-12)
    target.set_ylim(-0.02 * top, 1.05 * top)
    at = sorted({delays[r.delay] for r in records})
    if len(at) <= 8:
        target.set_xticks(at, [f"{d:g}" for d in at])
    target.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    hide_spines(target)
    if ax is None:
        figure_legend([target])
    return target


def draw_delays(
    ax: Axes, records: Sequence["Record"], delays: Mapping[str, float], shift: float, style: Style, *, hollow: bool
) -> None:
    """Points with intervals of one policy; constant delays are joined by a line."""
    if not records:
        return
    at = np.array([delays[r.delay] for r in records]) + shift
    means, lows, highs = np.array([mean_interval(r.regret[:, -1]) for r in records]).T
    ax.errorbar(
        at,
        means,
        yerr=np.nan_to_num([means - lows, highs - means]),
        label=f"_{records[0].label} (random)" if hollow else records[0].label,
        color=style.color,
        linestyle="" if hollow else style.linestyle,
        marker=style.marker or "*",
        markersize=5.5,
        markerfacecolor="white" if hollow else style.color,
        capsize=2.5,
        linewidth=1.4,
        elinewidth=1.0,
    )


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
