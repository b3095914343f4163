"""Files: the rounds of a stream with the options with which `spillover next` reads them, and a history as events."""

import csv
import io
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spillover.history import History, read_history
from spillover.history.context import BUILT_IN
from spillover.service.errors import Invalid, naming, require
from spillover.service.events import RoundsImported
from spillover.service.ledger import Ledger
from spillover.service.settings import Settings
from spillover.service.tables import Coming, columns_option, table_of

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


def quoted_name(name: str) -> str:
    """A name for an option: in double quotes if it would be split."""
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',;="*') else name


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
