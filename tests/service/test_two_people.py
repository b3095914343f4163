"""Two people at once: what is said twice is recorded once, and what is said otherwise is refused with both versions."""

from typing import Any

import numpy as np
import pytest

from spillover.history.example import example_file
from spillover.service import Conflict, Invalid, Outcome, Service
from spillover.service.events import ExecutionCorrected
from tests.service.memory_log import MemoryLog
from tests.service.test_same_as_next import same_as_next

SHOP: dict[str, Any] = {"arms": ["radio", "social", "video"], "budget": 2}
LIMITS = [{"kind": "exclusive", "arms": ["radio", "video"], "label": "one of them"}]


@pytest.fixture
def service() -> Service:
    found = Service(MemoryLog())
    found.create_stream("shop", SHOP)
    return found


def last(service: Service) -> int:
    seq: int = service.overview("shop")["seq"]
    return seq


def reported(service: Service, label: int, **values: tuple[float | None, float]) -> None:
    items = [Outcome(round=label, arm=arm, z=z, y=y) for arm, (z, y) in values.items()]
    assert {status.status for status in service.report("shop", items).statuses} == {"recorded"}


# --- settings ---------------------------------------------------------------------------------------------------------


def test_settings_that_somebody_else_changed_are_not_changed_unseen(service) -> None:
    read_at = last(service)
    service.change_settings("shop", {"limits": LIMITS}, read_at=read_at, author="ann")
    with pytest.raises(Conflict, match=r"read_at = 1: must be at least 2, .* changed by 'ann'") as no:
        service.change_settings("shop", {"budget": 1}, read_at=read_at, author="bob")
    assert no.value.recorded["settings"]["limits"] == LIMITS
    assert (no.value.recorded["seq"], no.value.recorded["author"]) == (2, "ann")
    assert no.value.given == {"settings": {"budget": 1}}
    assert last(service) == 2
    service.change_settings("shop", {"budget": 1}, read_at=2)
    now = service.overview("shop")["settings"]
    assert (now["limits"], now["budget"]) == (LIMITS, 1)


def test_entries_that_are_no_settings_do_not_stand_in_the_way(service) -> None:
    read_at = last(service)
    service.execute("shop", 1, ["radio"])
    assert not service.change_settings("shop", {"budget": 1}, read_at=read_at).again


def test_settings_that_are_so_already_are_not_recorded_again(service) -> None:
    first = service.change_settings("shop", {"budget": 1}, key="ann")
    again = service.change_settings("shop", {"budget": 1}, read_at=1, key="bob")
    assert (again.again, again.entry) == (True, first.entry)
    assert service.change_settings("shop", {"seed": 0}).entry == first.entry
    assert last(service) == 2


@pytest.mark.parametrize("read_at", [0, -1, 2, True, 1.0, "1", 2**70])
def test_settings_cannot_be_read_at_what_is_no_entry(service, read_at) -> None:
    with pytest.raises(Invalid, match=r"read_at = .*: must be the number of an entry, 1 to 1"):
        service.change_settings("shop", {"budget": 1}, read_at=read_at)


# --- one rule for all -------------------------------------------------------------------------------------------------


def say(service: Service, what: str, key: str | None, *, otherwise: bool = False) -> Any:
    """One of the things that can be said once of a round; otherwise: something else instead."""
    return {
        "execute": lambda: service.execute("shop", 1, ["radio"] if otherwise else ["radio", "video"], key=key),
        "correct": lambda: service.correct("shop", 1, "radio", {"y": 1.0 if otherwise else 2.0}, revision=2, key=key),
        "correct execution": lambda: service.execute("shop", 1, ["social"], revision=2, reason=f"{otherwise}", key=key),
        "expire": lambda: service.expire("shop", 1, reason="lost" if otherwise else "", key=key),
        "create": lambda: service.create_stream("shop", SHOP | {"seed": int(otherwise)}, key=key),
    }[what]()


@pytest.mark.parametrize("what", ["execute", "correct", "correct execution", "expire", "create"])
def test_the_same_under_any_key_is_recorded_once_and_anything_else_is_refused_with_both(service, what) -> None:
    service.execute("shop", 1, ["video", "radio"], key="start", author="ann")
    reported(service, 1, radio=(0.5, 0.7))
    first = say(service, what, "one")
    for key in ("one", "two", None, "three"):
        again = say(service, what, key)
        assert (again.again, again.entry) == (True, first.entry)
    there = last(service)
    for key in ("four", None):
        with pytest.raises(Conflict) as no:
            say(service, what, key, otherwise=True)
        assert no.value.recorded != no.value.given
    assert last(service) == there
    assert service.audit("shop").passed


def test_the_same_outcome_under_any_key_is_recorded_once_also_if_it_is_late(service) -> None:
    service.execute("shop", 1, ["radio"])
    service.expire("shop", 1)
    found = [service.report("shop", [Outcome(round=1, arm="radio", y=0.5)], key=key) for key in ("a", "b", None)]
    assert [report.statuses[0].status for report in found] == ["late", "duplicate", "duplicate"]
    (status,) = service.report("shop", [Outcome(round=1, arm="radio", y=0.6)]).statuses
    assert status.reason == "y = 0.6: must be 0.5, which was reported before; correct it with revision 2"


def test_a_correction_with_a_value_that_is_none_is_refused_also_where_another_is_recorded(service) -> None:
    service.execute("shop", 1, ["radio"])
    reported(service, 1, radio=(0.5, 0.7))
    service.correct("shop", 1, "radio", {"y": 2}, revision=2)
    assert service.correct("shop", 1, "radio", {"y": 2.0}, revision=2).again
    with pytest.raises(Conflict, match="revision = 2: must be as in entry 4; read the value again"):
        service.correct("shop", 1, "radio", {"y": "many"}, revision=2)


def test_as_issued_and_the_issued_arms_are_the_same(service) -> None:
    chosen = service.decide("shop", 1).event.chosen
    first = service.execute("shop", 1, key="ann")
    assert service.execute("shop", 1, chosen, key="bob").entry == first.entry
    with pytest.raises(Conflict, match="round = '1': must be as in entry 3; correct it with revision 2") as no:
        service.execute("shop", 1, cancelled=True)
    assert no.value.recorded["event"]["how"] == "as-issued"
    assert no.value.given["event"]["how"] == "cancelled"


def test_nothing_was_done_is_not_the_same_as_cancelled(service) -> None:
    service.decide("shop", 1)
    service.execute("shop", 1, [])
    with pytest.raises(Conflict):
        service.execute("shop", 1, cancelled=True)


def test_an_imported_round_said_again_and_corrected(service, tmp_path) -> None:
    path = tmp_path / "history.csv"
    path.write_text(example_file())
    first = service.import_history("ads", path, {"budget": 2}, key="one")
    assert service.import_history("ads", path, {"budget": 2}, key="two").entry == first.entry
    line = service.state("ads")["rounds"][3]
    assert service.execute("ads", line["round"], line["chosen"]).again
    with pytest.raises(Conflict) as no:
        service.execute("ads", line["round"], [])
    assert no.value.recorded["event"] == {
        "how": "imported",
        "round": line["round"],
        "chosen": line["chosen"],
        "context": {},
    }
    service.execute("ads", line["round"], cancelled=True, revision=2)
    assert service.overview("ads")["counts"]["executed"] == len(service.state("ads")["rounds"]) - 1


def test_a_decision_asked_otherwise_shows_both(service) -> None:
    service.decide("shop", 1, unavailable=["video"])
    with pytest.raises(Conflict, match="other unavailable arms") as no:
        service.decide("shop", 1, unavailable=["radio"])
    assert no.value.recorded == {"unavailable": ["video"], "context": {}, "seq": 2}
    assert no.value.given == {"unavailable": ["radio"], "context": {}}


# --- executions that were recorded wrongly ----------------------------------------------------------------------------


def state(service: Service) -> dict[str, Any]:
    """What is known, without what says how it became known."""
    found = service.state("shop")
    rounds = [{k: v for k, v in line.items() if k not in ("revision", "seq")} for line in found["rounds"]]
    return {"rounds": rounds, "counts": service.overview("shop")["counts"], "export": service.export("shop").content}


def outcomes_of(service: Service, label: int) -> None:
    reported(service, label, radio=(None, 0.7), social=(0.4, 0.5), video=(0.2, 0.3))


def test_a_corrected_execution_leaves_what_the_right_one_would_have_left(service) -> None:
    right = Service(MemoryLog())
    right.create_stream("shop", SHOP)
    for found in (service, right):
        found.decide("shop", 1)
        wrong = found is service
        found.execute("shop", 1, ["radio"] if wrong else ["social", "video"], author="ann")
        if wrong:
            reported(found, 1, radio=(0.9, 0.7))
            receipt = found.execute("shop", 1, ["video", "social"], revision=2, reason="a slip", author="bob")
            assert isinstance(receipt.event, ExecutionCorrected)
            assert (receipt.event.revision, receipt.event.reason, receipt.entry.author) == (2, "a slip", "bob")
            reported(found, 1, social=(0.4, 0.5), video=(0.2, 0.3))
        else:
            outcomes_of(found, 1)
    shown, expected = state(service), state(right)
    assert shown["rounds"][0]["outcomes"].pop("radio") == {"z": None, "y": 0.7, "revision": 1}
    assert expected["rounds"][0]["outcomes"].pop("radio") == {"z": None, "y": 0.7, "revision": 1}
    assert shown == expected
    assert service.decide("shop", 2).answer == right.decide("shop", 2).answer
    assert service.audit("shop").passed
    assert [line["revision"] for line in service.state("shop")["rounds"]] == [2, 0]


def test_a_correction_that_is_taken_back_brings_the_own_rewards_back(service) -> None:
    service.execute("shop", 1, ["social", "video"])
    outcomes_of(service, 1)
    before = state(service)
    service.execute("shop", 1, ["radio"], revision=2)
    assert service.overview("shop")["counts"]["pending"] == 1
    service.execute("shop", 1, cancelled=True, revision=3)
    assert service.overview("shop")["counts"] | {"rounds": 0} == dict.fromkeys(before["counts"], 0) | {"cancelled": 1}
    with pytest.raises(Invalid, match="one that took place; this one was cancelled"):
        service.expire("shop", 1)
    service.execute("shop", 1, ["video", "social"], revision=4)
    assert state(service) == before


@pytest.mark.parametrize("revision", [0, 3, True, "2", 2.0])
def test_a_revision_is_the_next_one_or_one_that_is_there(service, revision) -> None:
    service.execute("shop", 1, ["radio"])
    with pytest.raises(Invalid, match=r"revision = .*: must be 1 to 2, where 2 corrects the last"):
        service.execute("shop", 1, ["video"], revision=revision)
    with pytest.raises(Invalid, match="revision = 2: must be 1: nothing is recorded of this round"):
        service.execute("shop", 2, ["video"], revision=2)
    with pytest.raises(Invalid, match="reason = 'x': must be left out"):
        service.execute("shop", 2, ["video"], reason="x")


def test_next_on_the_export_honours_corrected_executions(service, tmp_path) -> None:
    rng = np.random.default_rng(3)
    for label in range(1, 13):
        chosen = list(service.decide("shop", label).event.chosen)
        service.execute("shop", label)
        values = {arm: (float(rng.random()) if arm in chosen else None, float(rng.random())) for arm in SHOP["arms"]}
        reported(service, label, **values)
        if label % 3 == 0:
            kept = chosen[:1] if label % 2 else []
            service.execute("shop", label - 1, kept, revision=2)
        if label == 8:
            service.execute("shop", 4, cancelled=True, revision=2)
    for label in (7, 9, 12):
        same_as_next(tmp_path, service, "shop", str(label), "csv")
