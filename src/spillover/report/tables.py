"""Tables from records: final regret with intervals and ratios, paired differences, parameters."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from spillover import validate
from spillover.contracts.hyperparameters import value_of
from spillover.figures.comparisons import Difference
from spillover.formatting import column_texts, format_span, format_value, html_columns
from spillover.metrics import Interval, mean_interval
from spillover.types import Array

if TYPE_CHECKING:
    from spillover.experiments import Experiment, Record

SYMBOLS = {"discount": "γ", "exploration": "ξ", "graph.sparsity": "λ"}


def final_table(
    records: Sequence["Record"],
    *,
    reference: str = "delayed-oracle",
    apart: Collection[str] = ("oracle", "delayed-oracle"),
) -> pd.DataFrame:
    """Final regret of each policy in each world at each delay, one row for each record.

    Columns: world, delay, policy, label, replications; final_regret, blind_regret (of rounds 1 to D + 1) and
    later_regret (the rest), each with _low and _high of its 95% interval; ratio to the reference policy's final regret
    and later_ratio to its later one (paired, NaN without it) with their intervals; best_share, the share of
    replications in which the policy has the lowest regret, policies in `apart` left out (ties are split evenly).

    >>> from spillover.experiments import example_results
    >>> table = final_table(example_results().records(), reference="random", apart=())
    >>> table[["delay", "policy", "replications"]]
      delay   policy  replications
    0     2  ndc-sem             2
    1     2   random             2
    2     6  ndc-sem             2
    3     6   random             2
    """
    rows = []
    for group in grouped(records).values():
        rivals = {r.policy: r for r in group if r.policy not in apart}
        shares = best_shares(list(rivals.values()))
        against = next((r for r in group if r.policy == reference), None)
        for record in group:
            final, blind = record.regret[:, -1], record.blind_regret
            row: dict[str, Any] = {name: getattr(record, name) for name in ("world", "delay", "policy", "label")}
            row["replications"] = len(final)
            row |= columns("final_regret", mean_interval(final))
            row |= columns("blind_regret", mean_interval(blind))
            row |= columns("later_regret", mean_interval(final - blind))
            for name, later in (("ratio", False), ("later_ratio", True)):
                unknown = Interval(*[np.array(np.nan)] * 3)
                row |= columns(name, paired_ratio(record, against, later=later) if against else unknown)
            row["best_share"] = shares.get(record.policy, np.nan)
            rows.append(row)
    return pd.DataFrame(rows)


def columns(name: str, interval: Interval) -> dict[str, float]:
    return {name: float(interval.mean), f"{name}_low": float(interval.low), f"{name}_high": float(interval.high)}


def grouped(records: Sequence["Record"]) -> dict[tuple[str, str], list["Record"]]:
    """Records by world and delay, in the order given: these can be compared replication by replication."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.world, record.delay), []).append(record)
    return groups


def check_paired(first: "Record", second: "Record") -> None:
    """Only the same replications of the same world can be paired."""
    same = first.world == second.world and np.array_equal(first.replications, second.replications)
    if not same:
        raise ValueError(
            f"records = {first.label!r} in {first.world!r} ({len(first.replications)} replications) and "
            f"{second.label!r} in {second.world!r} ({len(second.replications)}): "
            "must be the same replications of one world"
        )


def paired_ratio(record: "Record", reference: "Record", *, later: bool = False) -> Interval:
    """Ratio of the mean final regrets, with a 95% interval of paired replications.

    later: use the regrets after the blind rounds instead; NaN where delays are not constant.

    It is the ratio of the means, not the mean of the ratios, which a single world with almost no regret of the
    reference would dominate. The interval is that of a_r - ratio * b_r over the mean of b (the delta method).
    """
    check_paired(record, reference)
    own, other = (r.regret[:, -1] - (r.blind_regret if later else 0.0) for r in (record, reference))
    base = float(other.mean())
    if not base > 0:
        return Interval(*[np.array(np.nan)] * 3)
    ratio = own.mean() / base
    _, low, high = mean_interval((own - ratio * other) / base)
    return Interval(ratio, ratio + low, ratio + high)


def best_shares(records: Sequence["Record"]) -> dict[str, float]:
    """Share of the replications in which each policy has the lowest final regret; ties are split evenly."""
    if not records:
        return {}
    for record in records[1:]:
        check_paired(records[0], record)
    final = np.stack([r.regret[:, -1] for r in records])
    winners = final == final.min(axis=0)
    return dict(zip((r.policy for r in records), (winners / winners.sum(axis=0)).mean(axis=1).tolist(), strict=True))


def paired_difference(
    first: "Record",
    second: "Record",
    *,
    label: str | None = None,
    measure: Callable[["Record"], Array] | None = None,
) -> Difference:
    """First minus second, replication by replication; measure: of a record, (R,) (default: its final regret).

    >>> from spillover.experiments import example_results
    >>> ndc_sem, random = example_results().records(delay="2")
    >>> paired_difference(ndc_sem, random).label
    'NDC-SEM − random'
    """
    check_paired(first, second)
    value = measure or (lambda record: record.regret[:, -1])
    mean, low, high = mean_interval(value(first) - value(second))
    return Difference(label or f"{first.label} − {second.label}", float(mean), float(low), float(high))


def difference_table(differences: Sequence[Difference]) -> pd.DataFrame:
    """The numbers that `forest_figure` draws.

    >>> from spillover.figures import Difference
    >>> difference_table([Difference("NDC-SEM minus random", -120.0, -150.0, -90.0)]).columns.tolist()
    ['label', 'mean', 'low', 'high', 'clear']
    """
    frame = pd.DataFrame(list(differences), columns=list(Difference._fields))
    return frame.assign(clear=[d.clear for d in differences])


def parameter_table(
    experiment: "Experiment", policies: Sequence[str] | None = None, delays: Sequence[str] | None = None
) -> pd.DataFrame:
    """The parameters of each policy at each delay (the paper's Table I); delays with equal parameters share a row.

    >>> from spillover.experiments import example_results
    >>> parameter_table(example_results().experiment).columns.tolist()
    ['policy', 'delay', 'discount γ', 'exploration ξ', 'sparsity λ']
    """
    rows: list[dict[str, Any]] = []
    for name in policies if policies is not None else list(experiment.policies):
        entry = experiment.policies[name]
        same: dict[str, tuple[list[str], dict[str, Any]]] = {}
        for delay in delays if delays is not None else list(experiment.delays):
            policy = entry.policy(delay)
            tuned = {key: value_of(policy, key) for key in SYMBOLS if key in policy.grids}  # defaults included
            given = {**entry.parameters, **entry.at.get(delay, {})}
            parameters = {**tuned, **{key: part_class(value) for key, value in given.items()}}
            same.setdefault(repr(sorted(parameters.items())), ([], parameters))[0].append(delay)
        for at, parameters in same.values():
            cells = {heading(key): value for key, value in parameters.items()}
            rows.append({"policy": entry.label, "delay": ", ".join(at), **cells})
    return pd.DataFrame(rows).astype(object)


def heading(key: str) -> str:
    """The heading of a parameter, with the symbol that the paper has for it.

    >>> heading("graph.sparsity"), heading("pending")
    ('sparsity λ', 'pending')
    """
    return f"{key.rpartition('.')[2]} {SYMBOLS[key]}" if key in SYMBOLS else key


def part_class(value: Any) -> Any:
    """The class name of a part of a policy, whose hyperparameters have their own columns; other values as they are."""
    return type(value).__name__ if is_dataclass(value) else value


def show_final(frame: pd.DataFrame) -> pd.DataFrame:
    """`final_table` for readers: mean and interval in one cell, as text; few enough columns for a narrow page.

    >>> from spillover.experiments import example_results
    >>> shown = show_final(final_table(example_results().records(), reference="random", apart=()))
    >>> shown.columns.tolist()
    ['delay', 'policy', 'final regret', 'of which blind', 'ratio', 'ratio after the blind rounds', 'best in']
    """
    return pd.DataFrame(
        {
            "delay": frame["delay"],
            "policy": frame["label"],
            "final regret": spans(frame, "final_regret", ",.0f"),
            "of which blind": [format_value(v, ",.0f") for v in frame["blind_regret"]],
            "ratio": spans(frame, "ratio", ".2f"),
            "ratio after the blind rounds": spans(frame, "later_ratio", ".2f"),
            "best in": [format_value(v, ".0%") for v in frame["best_share"]],
        }
    )


def spans(frame: pd.DataFrame, name: str, form: str) -> list[str]:
    """Mean and interval of a measure as text."""
    triples = zip(frame[name], frame[f"{name}_low"], frame[f"{name}_high"], strict=True)
    return [format_span(mean, low, high, form) for mean, low, high in triples]


def html_table(frame: pd.DataFrame, *, caption: str = "", text: Collection[str] = ("policy", "label")) -> str:
    """A <table> with escaped cells and no index; columns not in `text` are aligned right, with tabular digits.

    The numbers of a column have one format (`shared_format`).

    >>> import pandas as pd
    >>> html_table(pd.DataFrame({"policy": ["a < b"], "regret": [12.0]}), caption="Regret").count("<tr>")
    2
    """
    validate.require(len(frame.columns) > 0, "frame", list(frame.columns), "a table with at least one column")
    cells = [column_texts(frame.iloc[:, k]) for k in range(len(frame.columns))]
    return html_columns([str(name) for name in frame.columns], cells, text=text, caption=caption)


def wide_table(frame: pd.DataFrame, *, caption: str = "", text: Collection[str] = ("policy", "label")) -> str:
    """`html_table` in a box that scrolls on a narrow page."""
    return f'<div class="wide">{html_table(frame, caption=caption, text=text)}</div>'


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table for a document.

    >>> print(markdown_table(["", "regret"], [["CUCB", 7912.0]]))
    | | regret |
    |---|---|
    | CUCB | 7,912 |
    """
    texts = list(zip(*(column_texts(column) for column in zip(*rows, strict=True)), strict=True))
    lines = [list(header), *(list(row) for row in texts)]
    shown = [re.sub(r"\| +\|", "| |", f"| {' | '.join(line)} |") for line in lines]
    return "\n".join([shown[0], f"|{'---|' * len(lines[0])}", *shown[1:]])
