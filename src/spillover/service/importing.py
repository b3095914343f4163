"""Rounds from a history file, as events of a stream."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spillover.history import History, read_history
from spillover.history.context import BUILT_IN
from spillover.service.errors import Invalid, naming
from spillover.service.events import RoundsImported

ROUNDS_IN_AN_EVENT = 500


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
