"""Write the golden file of the current schema version: python -m tests.service.golden.make_golden.

Files of old versions stay: every version of the package must open them.
"""

import json
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

from spillover.service import Outcome, Service, SqliteLog
from spillover.service.log import VERSION

FOLDER = Path(__file__).parent


def fill(service: Service) -> None:
    """Entries of every kind."""
    service.create_stream("shop", {"arms": ["radio", "video", "<b>"], "budget": 2, "max_age_rounds": 3}, author="ann")
    for label in ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"):
        service.decide("shop", label, unavailable=["radio"] if label == "2026-01-02" else ())
        service.execute("shop", label, ["video"] if label == "2026-01-03" else None)
    chosen = service.decision("shop", "2026-01-01").event.chosen
    items = [
        Outcome(round="2026-01-01", arm=arm, z=0.25 if arm in chosen else None, y=0.5)
        for arm in ("radio", "video", "<b>")
    ]
    service.report("shop", [*items, Outcome(round="2026-01-01", arm="tv", y=1.0)], key="first", author="bob")
    service.correct("shop", "2026-01-01", "video", {"y": 0.75}, revision=2, reason="refund")
    service.expire("shop", "2026-01-02", reason="lost")
    service.decide("shop", "2026-01-05")
    service.execute("shop", "2026-01-05", cancelled=True)
    service.change_settings("shop", {"budget": 1})


def main() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "golden.db"
        service = Service(SqliteLog(path), clock=lambda: "2026-01-01T00:00:00.000000+00:00")
        fill(service)
        state = service.state("shop")
        service.close()
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("VACUUM")
        connection.close()
        (FOLDER / f"version-{VERSION}.db").write_bytes(path.read_bytes())
        (FOLDER / f"version-{VERSION}.json").write_text(json.dumps(state, indent=1) + "\n")


if __name__ == "__main__":
    main()
