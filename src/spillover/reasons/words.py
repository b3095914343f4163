"""Reasons as text, as a table and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover.validate import quoted

if TYPE_CHECKING:
    from spillover.reasons.decision import ArmReason, Reasons

FORMAT = 1
SHOWN_OTHERS = 8  # arms that were not chosen, in the text
TITLES = ("arm", "", "effect on itself", "spills over", "exploration", "score", "ahead by")


def number(value: float) -> str:
    """Three decimals, more digits where these would show nothing."""
    if np.isnan(value):
        return "-"
    if np.isinf(value):
        return "no limit" if value > 0 else "-no limit"
    return f"{value:.3f}" if plainly(value) else f"{value:.2e}"


def plainly(value: float) -> bool:
    """Whether `number` prints three decimals."""
    return bool(value == 0 or 1e-3 <= abs(value) < 1e5)


def shows(part: float, whole: float) -> bool:
    """Whether a part is not 0 at the digits that `number` prints the whole with.

    >>> shows(0.0006, 7.203), shows(0.0004, 7.203), shows(0.0004, 0.0009)
    (True, False, True)
    """
    last = 1e-3 if plainly(whole) or not np.isfinite(whole) else 10.0 ** (np.floor(np.log10(abs(whole))) - 2)
    return bool(abs(part) >= last / 2)


def part_of(part: float, whole: float) -> str:
    """A part at the digits of the whole, so that printed parts add up to the printed whole."""
    return f"{part if shows(part, whole) else 0.0:.3f}" if plainly(whole) and np.isfinite(part) else number(part)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with columns of one width, the first two to the left, numbers to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(w) if k < 2 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def row_of(arm: "ArmReason") -> list[str]:
    learned = [number(arm.direct), number(arm.spilled_over)] if arm.known else ["nothing known yet", ""]
    return [arm.arm, mark(arm), *learned, *(number(part) for part in (arm.exploration, arm.score, arm.gap))]


def mark(arm: "ArmReason") -> str:
    return "chosen" if arm.chosen else ""


def text(told: "Reasons") -> str:
    """Everything in plain words."""
    ranked = told.ranked()
    chosen = [arm for arm in ranked if arm.chosen]
    others = [arm for arm in ranked if not arm.chosen]
    names = ", ".join(quoted(arm.arm) for arm in chosen) or "none"
    lines = [f"Chosen: {names} ({len(chosen)} of {len(ranked)} arms)."]
    if told.planned:
        lines.append("A plan decided this round (the start, or a trial in turn), not the scores.")
    lines += [f"Score: {told.quantity}, exploration included.", ""]
    shown = chosen + others[:SHOWN_OTHERS]
    columns = len(TITLES) - told.limited  # limits may take a lower score: nobody is ahead then
    lines += aligned([row[:columns] for row in (list(TITLES), *(row_of(arm) for arm in shown))])
    if len(others) > SHOWN_OTHERS:
        lines.append(f"... and {len(others) - SHOWN_OTHERS} more arms with lower scores")
    for arm in chosen:
        lines += spill_lines(told, arm)
    lines += swap_lines(told)
    if told.health:
        lines += ["", "Health:"]
        lines += [f"  {'!' if signal.warning else '-'} {signal.sentence}" for signal in told.health]
    return "\n".join(line.rstrip() for line in lines)


def spill_lines(told: "Reasons", arm: "ArmReason") -> list[str]:
    """Where an arm spills over to."""
    ways = [(path.amount, " -> ".join(told.names[j] for j in path.arms)) for path in arm.ways.paths]
    unsure = "not known along which paths" if np.isnan(told.flows).any() else "not along the paths of the graph"
    rests = ((arm.ways.other, "all other ways"), (arm.ways.longer, "longer ways round"))
    ways += [rest for rest in rests if rest[0] != 0]
    if shows(arm.ways.unknown, arm.spilled_over):
        ways.append((arm.ways.unknown, unsure))
    if not ways:
        return []
    width = max(len(number(amount)) for amount, _ in ways)
    return ["", f"{arm.arm} spills over to", *(f"  {number(amount).rjust(width)}  {way}" for amount, way in ways)]


def swap_lines(told: "Reasons") -> list[str]:
    """What a swap would change."""
    if not told.swaps:
        return []
    rows = [["give up", "for", "changes the score by", "and what is expected by"]]
    rows += [[swap.out, swap.into, number(swap.change), number(swap.expected_change)] for swap in told.swaps]
    return ["", "Swaps:", *(f"  {line}" for line in aligned(rows))]


def frame(told: "Reasons") -> Any:
    """One row an arm."""
    import pandas as pd

    columns = [field.name for field in fields(told.arms[0]) if field.name != "ways"]
    rows = [[getattr(arm, name) for name in columns] for arm in told.ranked()]
    table = pd.DataFrame(rows, columns=columns)
    table["spills_over_to"] = [
        "; ".join(" -> ".join(told.names[j] for j in path.arms) for path in arm.ways.paths) for arm in told.ranked()
    ]
    return table.set_index("arm")


def finite(value: float | None) -> float | None:
    """JSON has no infinities and no NaN."""
    return float(value) if value is not None and np.isfinite(value) else None


def plain(told: "Reasons") -> dict[str, Any]:
    """Lists, dictionaries, texts, numbers, None."""
    known = not np.isnan(told.flows).any()
    edges = [
        {"from": told.names[j], "to": told.names[i], "weight": told.adjacency[i, j], "flow": told.flows[i, j]}
        for i, j in (np.argwhere(told.adjacency != 0) if known else ())
    ]
    return {
        "format": FORMAT,
        "quantity": told.quantity,
        "planned": told.planned,
        "budget": int(told.budget),
        "chosen": [arm.arm for arm in told.arms if arm.chosen],
        "proved": told.proved,
        "could_gain": finite(told.could_gain),
        "could_gain_share": finite(told.could_gain_share),
        "arms": [plain_arm(told, arm) for arm in told.ranked()],
        "swaps": [
            {
                "out": swap.out,
                "in": swap.into,
                "change": finite(swap.change),
                "expected_change": finite(swap.expected_change),
            }
            for swap in told.swaps
        ],
        "graph": {"known": known, "edges": [e | {k: finite(e[k]) for k in ("weight", "flow")} for e in edges]},
        "health": [
            {
                "code": s.code,
                "warning": s.warning,
                "sentence": s.sentence,
                "value": finite(s.value),
                "arms": list(s.arms),
            }
            for s in told.health
        ],
    }


def plain_arm(told: "Reasons", arm: "ArmReason") -> dict[str, Any]:
    kept: dict[str, Any] = {name: getattr(arm, name) for name in ("arm", "position", "chosen", "known")}
    numbers = ("mean", "count", "direct", "spilled_over", "exploration", "score", "exploration_share", "gap")
    paths = [
        {"arms": [told.names[j] for j in path.arms], "effect": finite(path.effect), "amount": finite(path.amount)}
        for path in arm.ways.paths
    ]
    rests = {f"{name}_ways": finite(getattr(arm.ways, name)) for name in ("other", "longer", "unknown")}
    return kept | {name: finite(getattr(arm, name)) for name in numbers} | {"paths": paths} | rests


def json_text(told: "Reasons", indent: int | None) -> str:
    return json.dumps(plain(told), allow_nan=False, ensure_ascii=False, indent=indent)
