"""A stream as a table, a history or a file, as `spillover next` reads it; and a history as events."""

import csv
import io
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spillover.history import History, read_history
from spillover.history.columns import quoted_name
from spillover.history.context import BUILT_IN
from spillover.history.record import complete_outcomes, shows_baseline
from spillover.history.rounds import calendar
from spillover.service.errors import Invalid, naming, require
from spillover.service.events import RoundsImported
from spillover.service.ledger import Ledger
from spillover.service.settings import Settings, is_number

FIRST = "1"  # the round to decide where none is named and none was played


class Coming(NamedTuple):
    """The round to decide, and what is known of it before."""

    label: str | None  # None: the one that follows in the calendar
    context: Mapping[str, Any]
    unavailable: tuple[str, ...] = ()


def learned_rounds(ledger: Ledger) -> list[str]:
    """The rounds of the history, in order: those that took place, without those of which too little will arrive."""
    if not ledger.expired:
        return ledger.played
    return [label for label in ledger.played if label not in ledger.expired or usable(ledger, label)]


def usable(ledger: Ledger, label: str) -> bool:
    """Whether something can be learned from an expired round: with z only if it is complete."""
    if ledger.settings.plain:
        return ledger.missing(label) == 0
    row = ledger.rows[label]
    known = ledger.z[row] if ledger.settings.observes == "own" else ledger.y[row]
    return bool(np.isfinite(known).any())


def decision_column(settings: Settings) -> str:
    """What a column with decisions is called: they are yes or no, or amounts."""
    return "dose" if settings.doses else "chosen"


def decision_cells(ledger: Ledger, rows: Sequence[int], count: int, arms: slice = slice(None)) -> Any:
    """What was done: 1 or 0, or an amount."""
    import pyarrow as pa

    if ledger.settings.doses:
        return cells(ledger.dose[rows, arms], count, pa.float64())
    return cells(ledger.x[rows, arms], count, pa.int8())


def table_of(ledger: Ledger, coming: Coming | None = None) -> Any:
    """The export as an Arrow table. coming: the round to decide; it has rows where its context must be said, and
    before the first round.
    """
    labels = learned_rounds(ledger)
    rows = [ledger.rows[label] for label in labels]
    undecided = []
    if coming is not None and (not labels or (ledger.settings.context and coming.label is not None)):
        undecided = [coming.label or FIRST]
    contexts = [ledger.context[label] for label in labels] + [coming.context for _ in undecided if coming is not None]
    form = wide_columns if ledger.settings.observes == "payoff" else long_columns
    return form(ledger, rows, [*labels, *undecided], contexts)


def long_columns(
    ledger: Ledger, rows: Sequence[int], labels: Sequence[str], contexts: Sequence[Mapping[str, Any]]
) -> Any:
    """One row for each round and arm."""
    import pyarrow as pa

    settings, n, count = ledger.settings, len(ledger.settings.arms), len(labels)
    columns: dict[str, Any] = {
        "round": pa.array(labels, pa.string()).take(np.repeat(np.arange(count), n)),
        "arm": pa.array(settings.arms, pa.string()).take(np.tile(np.arange(n), count)),
        decision_column(settings): decision_cells(ledger, rows, count),
    }
    if settings.sees_own:
        columns["z"] = cells(ledger.z[rows], count, pa.float64())
    if settings.sees_overall:
        columns["y"] = cells(ledger.y[rows], count, pa.float64())
    for name in settings.given_context:
        columns[name] = context_cells([known.get(name) for known in contexts]).take(np.repeat(np.arange(count), n))
    return pa.table(columns)


def wide_columns(
    ledger: Ledger, rows: Sequence[int], labels: Sequence[str], contexts: Sequence[Mapping[str, Any]]
) -> Any:
    """One row for each round, with a column for each arm."""
    import pyarrow as pa

    settings, count = ledger.settings, len(labels)
    columns: dict[str, Any] = {"round": pa.array(labels, pa.string())}
    for k, arm in enumerate(settings.arms):
        columns[f"{decision_column(settings)}.{arm}"] = decision_cells(ledger, rows, count, slice(k, k + 1))
    columns["payoff"] = cells(ledger.y[rows, :1], count, pa.float64())
    for name in settings.given_context:
        columns[name] = context_cells([known.get(name) for known in contexts])
    return pa.table(columns)


def cells(values: Any, rounds: int, kind: Any) -> Any:
    """Values row by row, empty where one is not known and in the rounds to decide after the others."""
    import pyarrow as pa

    whole = np.full((rounds, values.shape[1]), np.nan)
    whole[: len(values)] = values
    flat = whole.ravel()
    return pa.array(flat, pa.float64(), mask=np.isnan(flat)).cast(kind)


def context_cells(values: Sequence[Any]) -> Any:
    """Context as numbers if all are numbers, else as texts."""
    import pyarrow as pa

    if all(is_number(value) for value in values):
        return pa.array([float(value) for value in values], pa.float64())
    return pa.array([str(value) for value in values], pa.string())


def columns_option(settings: Settings) -> str | None:
    """The value of --columns; None for the plain form, whose columns need no explanation."""
    decided = decision_column(settings)
    if settings.observes == "payoff":
        return f"round=round,{decided}={decided}.*,outcome=payoff"
    if settings.plain:
        return None
    names = ["round", "arm", decided, *(["z"] if settings.sees_own else []), *(["y"] if settings.sees_overall else [])]
    return ",".join(f"{'outcome' if name == 'y' else name}={name}" for name in names)


# --- histories -------------------------------------------------------------------------------------------------------


def history_of(ledger: Ledger, coming: Coming | None = None) -> History:
    """The history of a stream. coming: the round to decide, where its context or its name is part of the table."""
    settings, labels = ledger.settings, learned_rounds(ledger)
    if settings.plain and labels:
        return with_calendar(plain_history(ledger, labels))
    return read_history(
        table_of(ledger, coming or Coming(None, {})),
        columns=columns_option(settings),
        context=list(settings.context) or None,
        minimise=settings.minimise,
        reward_range=settings.question.reward_range,
        overall_range=settings.question.overall_range,
    )


def plain_history(
    ledger: Ledger,
    labels: Sequence[str],
    known: History | None = None,
    unchanged: int = 0,
) -> History:
    """The history of a stream with own rewards as far as a policy learns from it; see `with_calendar`.

    The cells become a history by the functions that read them from a file, without the detour. known: an earlier
    history of the stream, of which so many rounds are unchanged.
    """
    settings = ledger.settings
    start = 0 if known is None else all_arrived(known, unchanged)
    rows = [ledger.rows[label] for label in labels[start:]]
    overall = ledger.y[rows] if settings.sees_overall else None
    new = complete_outcomes(ledger.x[rows], ledger.z[rows], overall, labels[start:], goes_on=start > 0)
    parts: list[Any] = [ledger.x[rows], *(-part if settings.minimise else part for part in (new.z, new.y)), new.arrived]
    if known is not None and start > 0:
        before = (known.x, known.z, known.y, known.arrived)
        parts = [np.concatenate([old[:start], part]) for old, part in zip(before, parts, strict=True)]
    x, z, y, arrived = parts
    return History(
        arms=settings.arms,
        rounds=tuple(labels),
        x=x,
        z=z,
        y=y,
        arrived=arrived,
        has_overall=settings.sees_overall,
        following=None,
        notes=tuple(new.notes),
        minimise=settings.minimise,
        has_baseline=settings.sees_overall and shows_baseline(x, z, y, arrived),
    )


def all_arrived(history: History, most: int) -> int:
    """How many of the first rounds have arrived without a gap, `most` at most."""
    pending = np.flatnonzero(~history.arrived[:most])
    return int(pending[0]) if len(pending) else most


def with_calendar(history: History) -> History:
    """The same with what people want to know of its rounds: gaps between them, and the one that follows."""
    dates = calendar(history.rounds)
    notes = (*dates.notes, *history.notes)
    return replace(history, rounds=dates.labels, following=dates.following, notes=notes)


ROUNDS_IN_AN_EVENT = 500
FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet", "jsonl": "application/x-ndjson"}
LIMITS = "limits.toml"


@dataclass(frozen=True, kw_only=True)
class Export:
    """A file, its media type, the options for `spillover next`, and the content of the limits file if they name one."""

    content: bytes
    media_type: str
    options: tuple[str, ...]
    limits: str
    seq: int  # the last entry that it contains

    @property
    def command(self) -> str:
        """The command that decides the next round from the file."""
        return f"spillover next FILE {shlex.join(self.options)}"


def exported(ledger: Ledger, form: str = "csv", coming: Coming | None = None) -> Export:
    """The rounds of a stream as a file. coming: the round to decide, for the options and, with context, the table."""
    require(form in FORMATS, "format", form, f"one of {', '.join(FORMATS)}")
    content = {"csv": as_csv, "parquet": as_parquet, "jsonl": as_lines}[form](table_of(ledger, coming))
    return Export(
        content=content,
        media_type=FORMATS[form],
        options=tuple(next_options(ledger.settings, coming)),
        limits=limits_file(ledger.settings),
        seq=ledger.head.seq,
    )


def next_options(settings: Settings, coming: Coming | None = None) -> list[str]:
    """The options of `spillover next` that stand for the settings."""
    found = ["--budget", str(settings.budget)]
    found += ["--policy", settings.policy] if settings.policy is not None else []
    for text in settings.set:
        found += ["--set", text]
    for name, given in (("--range", settings.reward_range), ("--overall-range", settings.overall_range)):
        found += [name, *(repr(float(end)) for end in given)] if given is not None else []
    if (columns := columns_option(settings)) is not None:
        found += ["--columns", columns]
    found += ["--context", ",".join(quoted_name(name) for name in settings.context)] if settings.context else []
    found += ["--minimise"] if settings.minimise else []
    found += ["--limits", LIMITS] if settings.limits else []
    found += ["--effort", str(settings.effort)] if settings.effort is not None else []
    found += [] if settings.greedy else ["--explore"]
    found += ["--seed", str(settings.seed)]
    if coming is not None:
        for arm in coming.unavailable:
            found += ["--unavailable", arm]
        found += ["--round", coming.label] if coming.label is not None else []
    return found


def as_csv(table: Any) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return text.getvalue().encode()


def as_lines(table: Any) -> bytes:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in table.to_pylist()).encode()


def as_parquet(table: Any) -> bytes:
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue()


def limits_file(settings: Settings) -> str:
    """The limits as TOML."""
    parts = []
    for entry in settings.limits:
        parts.append("\n".join(["[[limits]]", *(f"{toml(name)} = {toml(value)}" for name, value in entry.items())]))
    return "\n\n".join(parts) + "\n" if parts else ""


def toml(value: Any) -> str:
    """A value in TOML, on one line.

    >>> print(toml({"a b": [1, 2.5, "x", True]}))
    {"a b" = [1, 2.5, "x", true]}
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def read_file(path: str | Path, **reading: Any) -> History:
    """The history in a file, if it can become a stream."""
    with naming():
        return read_history(str(path), **reading)


def settings_from(history: History, context: tuple[str, ...]) -> dict[str, Any]:
    """The settings that a history implies."""
    observes = history.observes if history.has_overall else "own"
    numbers = [name for name in context if name not in BUILT_IN]
    for name in numbers:
        if name not in history.context_names:
            raise Invalid(f"context = {name!r}: must be a column of numbers that is the same for all arms", "context")
    return {
        "arms": list(history.arms),
        "observes": observes,
        "context": list(context),
        "minimise": history.minimise,
        "doses": history.dose is not None,
    }


def import_events(history: History, context: tuple[str, ...], source: str) -> Iterator[RoundsImported]:
    """The rounds of a history as events."""
    known = [rounds_of(history, row, context) for row in range(len(history.rounds))]
    for start in range(0, len(known), ROUNDS_IN_AN_EVENT):
        yield RoundsImported(source=source, rounds=tuple(known[start : start + ROUNDS_IN_AN_EVENT]))


def rounds_of(history: History, row: int, context: tuple[str, ...]) -> dict[str, Any]:
    """A round of a history: what was chosen, and what came out in the sign of the file."""
    sign = -1.0 if history.minimise else 1.0
    arrived, played = bool(history.arrived[row]), history.x[row]
    z = y = None
    if history.z is not None and arrived:
        z = known_values(sign * np.where(played, history.z[row], np.nan))
    if history.has_overall and arrived:
        y = known_values(sign * (history.y[row, :1] if history.observes == "payoff" else history.y[row]))
    places = {name: k for k, name in enumerate(history.context_names)}
    amounts = {} if history.dose is None else {"amounts": amounts_of(history, row)}
    return amounts | {
        "round": history.rounds[row],
        "chosen": [history.arms[k] for k in np.flatnonzero(played)],
        "context": {name: float(history.context[row, places[name]]) for name in context if name in places},
        "z": z,
        "y": y,
    }


def amounts_of(history: History, row: int) -> dict[str, float]:
    """The amounts of a round in the units of the file, of which a history has multiples: to 15 digits."""
    given = history.dose[row] * history.reference_dose
    return {history.arms[k]: float(f"{given[k]:.15g}") for k in map(int, np.flatnonzero(history.x[row]))}


def known_values(values: Any) -> list[float | None]:
    """Numbers, and None for those that are not known."""
    return [None if value != value else value for value in (values + 0.0).tolist()]  # + 0.0: no negative zeros
