"""Files that old versions wrote open, say what they said, and go on."""

import json
from pathlib import Path

import pytest

from spillover.service import Outcome, Service, SqliteLog
from spillover.service.log import VERSION

FILES = sorted((Path(__file__).parent / "golden").glob("version-*.db"))


def test_there_is_a_file_for_every_schema_version() -> None:
    assert [path.stem for path in FILES] == [f"version-{k}" for k in range(1, VERSION + 1)]


@pytest.mark.parametrize("golden", FILES, ids=lambda path: path.stem)
def test_an_old_file_can_be_read_beside_a_server_of_its_version(golden, tmp_path) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(golden.read_bytes())
    service = Service(SqliteLog(path, readonly=True))
    assert service.explain("shop", "2026-01-05")["choose"] == list(service.decision("shop", "2026-01-05").event.chosen)
    service.close()
    assert path.read_bytes() == golden.read_bytes()


@pytest.mark.parametrize("golden", FILES, ids=lambda path: path.stem)
def test_an_old_file_opens_and_goes_on(golden, tmp_path) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(golden.read_bytes())
    service = Service(SqliteLog(path))
    assert service.audit("shop", decisions=False).problems == ()
    assert service.state("shop") == json.loads(golden.with_suffix(".json").read_text())
    assert service.explain("shop", "2026-01-02")["choose"] == list(service.decision("shop", "2026-01-02").event.chosen)
    assert len(service.decide("shop", "2026-01-06").event.chosen) == 1
    service.execute("shop", "2026-01-06")
    report = service.report("shop", [Outcome(round="2026-01-06", arm="radio", y=0.5)])
    assert report.statuses[0].status == "recorded"
    service.close()
