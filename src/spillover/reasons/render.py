"""Reasons as text, as a table and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover.formatting import (
    Interval,
    align_columns,
    decimals_for,
    format_estimate,
    interval_of,
    join_lines,
    plain_values,
    round_to,
)
from spillover.reasons.paths import edge_places, is_known
from spillover.registry import needed_for
from spillover.validate import quoted

if TYPE_CHECKING:
    from spillover.reasons.decision import ArmReason, Reasons

FORMAT = 1
SHOWN_OTHERS = 8  # arms in the text that were not chosen
TITLES = ("arm", "", "effect on itself", "spills over", "exploration", "score", "ahead by")
MORE_TITLES = {"context_effect": "context adds", "baseline": "baseline"}  # where they are estimated
INTERVALS = ("direct_interval", "spill_interval", "total_interval")
LISTED_EDGES = 12
PROBABLE = 0.5  # from which probability on an edge is listed
SWAP_TITLES = ("swap out", "swap in", "changes the score by", "without exploration by")


def format_number(value: float) -> str:
    """Three decimals, or three significant digits where decimals would show nothing."""
    if np.isnan(value):
        return "-"
    if np.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return f"{value:.3f}" if has_three_decimals(value) else f"{value:.2e}"


def has_three_decimals(value: float) -> bool:
    """Whether `format_number` prints three decimals."""
    return bool(value == 0 or 1e-3 <= abs(value) < 1e5)


def is_visible(part: float, whole: float) -> bool:
    """Whether a part is not 0 in the digits that `format_number` prints the whole with.

    >>> is_visible(0.0006, 7.203), is_visible(0.0004, 7.203), is_visible(0.0004, 0.0009)
    (True, False, True)
    """
    fixed = has_three_decimals(whole) or not np.isfinite(whole)
    last = 1e-3 if fixed else 10.0 ** (np.floor(np.log10(abs(whole))) - 2)
    return bool(abs(part) >= last / 2)


def format_part(part: float, whole: float) -> str:
    """A part with the digits of the whole, so that printed parts add up to the printed whole."""
    if not has_three_decimals(whole) or not np.isfinite(part):
        return format_number(part)
    return f"{part if is_visible(part, whole) else 0.0:.3f}"


def arm_row(arm: "ArmReason", more: Sequence[str]) -> list[str]:
    """The cells of an arm: the parts of its score, and the further columns."""
    learned = ["no data yet", ""]
    if arm.known:
        learned = [
            format_with(arm.on_itself, arm.direct_interval),
            format_with(arm.on_others, arm.spill_interval),
        ]
    digits = shown_interval(arm)
    rest = [format_like(value, digits) for value in (arm.exploration, arm.score, arm.gap)]
    added = [format_like(getattr(arm, name), digits) for name in more]
    return [arm.arm, "chosen" if arm.chosen else "", *learned, *rest[:2], *added, rest[2]]


def arm_table(reasons: "Reasons", shown: Sequence["ArmReason"]) -> list[list[str]]:
    """The headings and a row for each of some arms: the parts of its score."""
    more = [name for name in MORE_TITLES if any(np.nan_to_num(getattr(arm, name)) != 0 for arm in reasons.arms)]
    titles = [*TITLES[:-1], *(MORE_TITLES[name] for name in more), TITLES[-1]]
    rows = [titles, *(arm_row(arm, more) for arm in shown)]
    # under constraints an arm with a lower score may be chosen, so there is no "ahead by"
    return [row[: len(titles) - reasons.constrained] for row in rows]


def format_with(value: float, interval: Interval | None) -> str:
    """A number with its interval, if there is one."""
    return format_number(value) if interval is None else format_estimate(value, interval)


def format_like(value: float, interval: Interval | None) -> str:
    """A number with the digits that an interval of the same arm supports."""
    if interval is None:
        return format_number(value)
    return round_to(value, decimals_for((interval[1] - interval[0]) / 2))


def shown_interval(arm: "ArmReason") -> Interval | None:
    """The interval that decides the digits of an arm's score.

    Parts that cancel may leave a total that is known much better than they are: its digits would say nothing.
    """
    total, direct = arm.total_interval, arm.direct_interval
    if total is None or direct is None:
        return total
    return wider(total, (0.1 * direct[0], 0.1 * direct[1]))


def wider(one: Interval | None, other: Interval | None) -> Interval | None:
    """The wider of two intervals; None if one is missing."""
    if one is None or other is None:
        return None
    return max(one, other, key=lambda interval: interval[1] - interval[0])


def to_text(reasons: "Reasons") -> str:
    """All reasons as plain text."""
    return join_lines(reason_lines(reasons))


def reason_lines(reasons: "Reasons") -> list[str]:
    """All reasons, line by line."""
    ranked = reasons.ranked()
    chosen = [arm for arm in ranked if arm.chosen]
    others = [arm for arm in ranked if not arm.chosen]
    names = ", ".join(quoted(arm.arm) for arm in chosen) or "none"
    lines = [f"Chosen: {names} ({len(chosen)} of {len(ranked)} arms)."]
    if reasons.planned:
        lines.append(f"A plan decided this round, not the scores: {reasons.plan}.")
    lines += [f"Score: {reasons.quantity}, including exploration.", ""]
    lines += align_columns(arm_table(reasons, chosen + others[:SHOWN_OTHERS]), 2)
    if len(others) > SHOWN_OTHERS:
        lines.append(f"... and {len(others) - SHOWN_OTHERS} more arms with lower scores")
    lines += effect_lines(reasons)
    for arm in chosen:
        lines += spill_lines(reasons, arm)
    lines += edge_lines(reasons)
    lines += swap_lines(reasons)
    if reasons.health:
        lines += ["", "Health:"]
        lines += [f"  {'!' if signal.warning else '-'} {signal.sentence}" for signal in reasons.health]
    return [line.rstrip() for line in lines]


def spill_lines(reasons: "Reasons", arm: "ArmReason") -> list[str]:
    """Describe how an arm's effect reaches the others, path by path."""
    amounts = [(path.amount, " -> ".join(reasons.names[j] for j in path.arms)) for path in arm.ways.paths]
    rests = ((arm.ways.other, "all other paths"), (arm.ways.longer, "longer paths around cycles"))
    amounts += [rest for rest in rests if rest[0] != 0]
    if is_visible(arm.ways.unknown, arm.spilled_over):
        unknown = "not along the paths of the graph" if is_known(reasons.flows) else "along unknown paths"
        amounts.append((arm.ways.unknown, unknown))
    written = [(format_like(amount, arm.spill_interval), path) for amount, path in amounts if not vanishes(arm, amount)]
    if not written:
        return []
    width = max(len(amount) for amount, _ in written)
    return ["", f"{arm.arm} spills over to", *(f"  {amount.rjust(width)}  {path}" for amount, path in written)]


def vanishes(arm: "ArmReason", amount: float) -> bool:
    """Whether an amount of spill-over is 0 in the digits that the interval of all of it supports."""
    if arm.spill_interval is None:
        return False
    low, high = arm.spill_interval
    return bool(round(amount, decimals_for((high - low) / 2)) == 0)


def effect_lines(reasons: "Reasons") -> list[str]:
    """Describe the effects on other arms' outcomes whose sign is certain."""
    if reasons.effects is None or reasons.effects_interval is None:
        return []
    low, high = np.moveaxis(np.asarray(reasons.effects_interval, float), -1, 0)
    clear = [(i, j) for i, j in np.argwhere(low * high > 0).tolist() if i != j and shows_sign(low[i, j], high[i, j])]
    if not clear:
        return ["", "No effect on another arm is clear yet."]
    clear.sort(key=lambda pair: -abs(reasons.effects[pair]))
    lines = []
    for i, j in clear[:LISTED_EDGES]:
        moved = format_estimate(float(reasons.effects[i, j]), (float(low[i, j]), float(high[i, j])))
        lines.append(f"  choosing {quoted(reasons.names[j])} moves {quoted(reasons.names[i])} by {moved}")
    if len(clear) > LISTED_EDGES:
        lines.append(f"  ... and {len(clear) - LISTED_EDGES} smaller ones")
    return ["", "Effects on other arms (intervals without 0):", *lines]


def shows_sign(low: float, high: float) -> bool:
    """Whether an interval is without 0 also in the digits that are printed."""
    decimals = decimals_for((high - low) / 2)
    return bool(round(low, decimals) * round(high, decimals) > 0)


def edge_lines(reasons: "Reasons") -> list[str]:
    """The edges that probably exist, strongest first, where the policy says how sure they are."""
    if reasons.edge_probability is None and reasons.edge_interval is None:
        return []
    probability = reasons.edge_probability
    likely = np.ones_like(reasons.adjacency) if probability is None else np.asarray(probability)
    edges = [(i, j) for i, j in np.argwhere((reasons.adjacency != 0) & (likely >= PROBABLE)).tolist()]
    edges.sort(key=lambda edge: -abs(reasons.adjacency[edge]))
    rows = []
    for i, j in edges[:LISTED_EDGES]:
        weight = format_with(reasons.adjacency[i, j], interval_of(reasons.edge_interval, i, j))
        sure = "" if probability is None else f"probability {likely[i, j]:.2f}"
        rows.append([f"{reasons.names[j]} -> {reasons.names[i]}", "", weight, sure])
    if not rows:
        return ["", f"Edges: none has a probability of {PROBABLE} or more."]
    left = f"... and {len(edges) - LISTED_EDGES} weaker ones" if len(edges) > LISTED_EDGES else None
    return ["", "Edges:", *(f"  {line}" for line in align_columns(rows, 2)), *([f"  {left}"] if left else [])]


def swap_lines(reasons: "Reasons") -> list[str]:
    """Say what each swap would change."""
    if not reasons.swaps:
        return []
    by_name = {arm.arm: arm for arm in reasons.arms}
    rows = [list(SWAP_TITLES)]
    for swap in reasons.swaps:
        digits = wider(shown_interval(by_name[swap.out]), shown_interval(by_name[swap.into]))
        changes = (format_like(change, digits) for change in (swap.change, swap.expected_change))
        rows.append([swap.out, swap.into, *changes])
    return ["", "Swaps:", *(f"  {line}" for line in align_columns(rows, 2))]


def to_frame(reasons: "Reasons") -> Any:
    """A pandas table with one row for each arm."""
    with needed_for("a data frame", "research"):
        import pandas as pd

    columns = [field.name for field in fields(reasons.arms[0]) if field.name != "ways"]
    rows = [[getattr(arm, name) for name in columns] for arm in reasons.ranked()]
    table = pd.DataFrame(rows, columns=columns)
    table["spills_over_to"] = [
        "; ".join(" -> ".join(reasons.names[j] for j in path.arms) for path in arm.ways.paths)
        for arm in reasons.ranked()
    ]
    return table.set_index("arm")


def to_dict(reasons: "Reasons") -> dict[str, Any]:
    """Lists, dictionaries, texts, numbers and None."""
    swap_names = ("out", "in", "change", "expected_change")
    return {
        "format": FORMAT,
        "quantity": reasons.quantity,
        "planned": reasons.planned,
        "plan": reasons.plan,
        "budget": int(reasons.budget),
        "chosen": [arm.arm for arm in reasons.arms if arm.chosen],
        "proved": reasons.proved,
        "could_gain": plain_values(reasons.could_gain),
        "could_gain_share": plain_values(reasons.could_gain_share),
        "arms": [arm_dict(reasons, arm) for arm in reasons.ranked()],
        "swaps": [dict(zip(swap_names, plain_values(tuple(swap)), strict=True)) for swap in reasons.swaps],
        "graph": graph_dict(reasons),
        "health": [plain_values(signal) for signal in reasons.health],
    }


LABELS = ("arm", "position", "chosen", "known")
EFFECTS = ("direct", "spilled_over", "on_itself", "on_others")
NUMBERS = ("mean", "count", *EFFECTS, "exploration", "score", "exploration_share", "gap", *MORE_TITLES)


def arm_dict(reasons: "Reasons", arm: "ArmReason") -> dict[str, Any]:
    """The fields of an arm, and the paths along which it spills over."""
    values = {name: plain_values(getattr(arm, name)) for name in (*LABELS, *NUMBERS, *INTERVALS)}
    paths, *rests = plain_values(tuple(arm.ways))
    named = [path | {"arms": [reasons.names[j] for j in path["arms"]]} for path in paths]
    return values | {"paths": named} | dict(zip(("other_ways", "longer_ways", "unknown_ways"), rests, strict=True))


def graph_dict(reasons: "Reasons") -> dict[str, Any]:
    """The edges of the graph, and the effect of each arm on each outcome, where they are known."""
    known, effects = is_known(reasons.flows), None
    edges = [
        between(reasons, i, j)
        | plain_values(
            {
                "weight": reasons.adjacency[i, j],
                "flow": reasons.flows[i, j],
                "probability": None if reasons.edge_probability is None else reasons.edge_probability[i, j],
                "interval": interval_of(reasons.edge_interval, i, j),
            }
        )
        for i, j in (edge_places(reasons.adjacency) if known else ())
    ]
    if reasons.effects is not None:
        effects = [
            between(reasons, i, j)
            | plain_values({"effect": reasons.effects[i, j], "interval": interval_of(reasons.effects_interval, i, j)})
            for i, j in np.ndindex(*np.shape(reasons.effects))
        ]
    return {"known": known, "edges": edges, "effects": effects}


def between(reasons: "Reasons", i: int, j: int) -> dict[str, Any]:
    return {"from": reasons.names[j], "to": reasons.names[i]}


def to_json(reasons: "Reasons", indent: int | None) -> str:
    return json.dumps(to_dict(reasons), allow_nan=False, ensure_ascii=False, indent=indent)
