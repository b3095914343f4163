"""Streams in which arms get amounts: what is recorded, exported and imported, and what is refused."""

from typing import Any

import pytest

from spillover.service import Invalid, Outcome, Service
from tests.service.memory_log import MemoryLog
from tests.service.test_same_as_next import same_as_next

SPEND: dict[str, Any] = {"arms": ["radio", "video"], "budget": 2, "observes": "overall", "doses": True}
ROUNDS: tuple[dict[str, float], ...] = ({"radio": 120.1}, {"video": 80}, {"radio": 40.3, "video": 10}, {"radio": 60})


@pytest.fixture
def service() -> Service:
    found = Service(MemoryLog())
    found.create_stream("spend", SPEND)
    return found


def played(service: Service) -> None:
    """Four rounds with different amounts, of which the last one is pending."""
    for label, amounts in enumerate(ROUNDS, 1):
        service.decide("spend", label)
        service.execute("spend", label, amounts=amounts)
        if label < 4:
            y = {"radio": round(amounts.get("radio", 0) / 100, 3), "video": amounts.get("video", 0) / 50}
            service.report("spend", [Outcome(round=label, arm=arm, y=value) for arm, value in y.items()])


def test_amounts_are_recorded_and_learned_as_next_does(service, tmp_path) -> None:
    played(service)
    service.decide("spend", 5)
    same_as_next(tmp_path, service, "spend", "5", "csv")
    lines = service.state("spend")["rounds"]
    assert [line["amounts"] for line in lines[:3]] == [
        {"radio": 120.1},
        {"video": 80.0},
        {"radio": 40.3, "video": 10.0},
    ]
    assert service.audit("spend").passed
    assert service.export("spend").content.decode().splitlines()[:3] == [
        "round,arm,dose,y",
        "1,radio,120.1,1.201",
        "1,video,0.0,0.0",
    ]


def test_an_import_takes_the_amounts_of_the_file(service, tmp_path) -> None:
    played(service)
    path = tmp_path / "spend.csv"
    path.write_bytes(service.export("spend").content)
    columns = {"round": "round", "arm": "arm", "dose": "dose", "outcome": "y"}
    service.import_history("again", path, {"budget": 2}, columns=columns)
    assert service.export("again").content == service.export("spend").content
    assert service.outlook("again")["choose"] == service.outlook("spend")["choose"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "amounts = None: must be given for the arms that were executed"),
        ({"chosen": ["radio"]}, "chosen = None: must be left out: give the amounts"),
        ({"amounts": {"radio": 0}}, r"amounts\.radio = 0: must be a number above 0"),
        ({"amounts": {"radio": float("nan")}}, r"amounts\.radio = nan: must be a number above 0"),
        ({"amounts": {"tv": 1}}, "amounts = 'tv': must be those of arms of the stream"),
        ({"amounts": {"radio": 1}, "cancelled": True}, "cancelled = True: must be false"),
    ],
)
def test_amounts_that_cannot_be_are_refused(service, given, message) -> None:
    service.decide("spend", 1)
    with pytest.raises(Invalid, match=message):
        service.execute("spend", 1, **given)
    assert service.execute("spend", 1, cancelled=True).event.to_dict().keys() == {"round", "how", "chosen", "context"}


def test_amounts_need_a_policy_that_learns_from_them(service) -> None:
    plain = {"arms": ["a", "b"], "budget": 1}
    for more in ({}, {"policy": "cucb"}, {"observes": "own"}):
        with pytest.raises(
            Invalid, match="doses = True: must be false: only without z, with context, or with a policy"
        ):
            service.create_stream("plain", plain | more | {"doses": True})
    service.create_stream("plain", plain)
    with pytest.raises(Invalid, match=r"amounts = .*: must be left out: what is executed in this stream is yes or no"):
        service.execute("plain", 1, amounts={"a": 1.0})
    assert "doses" not in service.overview("plain")["settings"]  # its hash is that of the first version
