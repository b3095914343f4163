"""A server with the page, and a stream to look at."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from spillover.dashboard import routes
from spillover.http import ServerSettings
from spillover.service import Outcome, Service, SqliteLog
from tests.service.http.servers import running

ARMS = ("newsletter", "radio", "search", "video")
EFFECTS = {"radio": {"search": 0.4}, "video": {"search": 0.6, "newsletter": 0.3}}
PLAN: tuple[tuple[str, ...], ...] = (
    ("radio", "search"),
    ("video", "newsletter"),
    ("search", "video"),
    ("newsletter", "radio"),
    ("video",),
)
MEANS = {"newsletter": 0.3, "radio": 0.4, "search": 0.5, "video": 0.45}


def serving(service: Service, port: int = 0, settings: ServerSettings | None = None) -> AbstractContextManager[str]:
    """The address of a server with the page. port: the same one again after a restart."""
    return running(service, settings, port=port, routes=routes())


@contextmanager
def new_service(folder: Path) -> Iterator[Service]:
    service = Service(SqliteLog(folder / "decisions.db"))
    try:
        yield service
    finally:
        service.log.close()


def outcome_of(chosen: Any, rng: np.random.Generator) -> tuple[dict[str, float], dict[str, float]]:
    """z and y of a round."""
    z = {arm: round(float(np.clip(rng.normal(MEANS[arm], 0.05), 0, 1)), 3) for arm in chosen}
    y = {arm: z.get(arm, 0.0) for arm in ARMS}
    for arm in chosen:
        for other, weight in EFFECTS.get(arm, {}).items():
            y[other] += weight * z[arm]
    return z, {arm: round(value, 4) for arm, value in y.items()}


def fill(service: Service, stream: str = "channels", rounds: int = 16, pending: int = 2) -> None:
    """A stream; the last rounds were decided here and are pending; one was overridden, one corrected."""
    rng = np.random.default_rng(7)
    service.create_stream(stream, {"arms": list(ARMS), "budget": 2})
    for day in range(1, rounds + 1):
        label = f"2026-10-{day:02}"
        chosen = PLAN[day % len(PLAN)]
        if day > rounds - 4:
            chosen = service.decide(stream, label, author="planner").event.chosen
        if day == rounds - 3:
            chosen = ("radio", "newsletter")
        service.execute(stream, label, chosen, author="ana")
        if day <= rounds - pending:
            z, y = outcome_of(chosen, rng)
            outcomes = [Outcome(round=label, arm=arm, z=z.get(arm), y=y[arm]) for arm in ARMS]
            service.report(stream, outcomes, author="warehouse")
    service.correct(stream, "2026-10-03", "radio", {"y": 0.45}, revision=2, reason="counted twice", author="ana")
