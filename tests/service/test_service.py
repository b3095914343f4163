"""What a stream remembers, what it learns from, and what it refuses."""

import re
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spillover.history.example import example_file
from spillover.policies.cucb import CUCB
from spillover.recommendation import next_decision
from spillover.service import Conflict, Invalid, NotFound, Outcome, Service, SqliteLog, decisions, open_streams
from spillover.service import service as service_module
from spillover.service.decisions import Learning, made, whole_answer
from spillover.service.events import DecisionExecuted, Entry, OutcomeCorrected
from spillover.service.ledger import Ledger, round_key
from spillover.service.outcomes import medians
from spillover.service.overview import bands_of, state_of
from spillover.service.tables import Coming, history_of
from tests.service.memory_log import MemoryLog
from tests.service.stories import Story

SHOP: dict[str, Any] = {"arms": ["video", "radio", "social"], "budget": 2}


@pytest.fixture
def service() -> Service:
    found = Service(MemoryLog())
    found.create_stream("shop", SHOP)
    return found


def history(service, stream="shop"):
    return history_of(service.open_streams.ledger_at(stream, None))


def played(service, *rounds, chosen=("radio", "social"), stream="shop", z=0.5, y=0.7):
    """Rounds with all their outcomes."""
    for label in rounds:
        service.execute(stream, label, chosen)
        items = [Outcome(round=label, arm=arm, z=z if arm in chosen else None, y=y) for arm in SHOP["arms"]]
        assert {status.status for status in service.report(stream, items).statuses} == {"recorded"}


def test_a_round_is_decided_once(service) -> None:
    first = service.decide("shop", 1, unavailable=["video"])
    again = service.decide("shop", "1", unavailable=["video"], key="another")
    assert (first.again, again.again) == (False, True)
    assert first.entry == again.entry
    assert first.event.chosen == ("radio", "social") or first.event.chosen == ("social", "radio")
    with pytest.raises(Conflict, match="round = '1': was decided with other unavailable arms"):
        service.decide("shop", 1)


@pytest.mark.parametrize("policy", [None, "ndc-sem", "cucb", "super-arm-ucb"])
def test_an_arm_that_is_not_available_is_not_decided(policy) -> None:
    service = Service(MemoryLog())
    service.create_stream("shop", SHOP | {"policy": policy, "overall_range": [0, 1]})
    played(service, *range(1, 10))
    wanted = service.decide("shop", 10).event.chosen
    for label, arm in enumerate(wanted, 11):  # nothing new is known, so they would be chosen again
        chosen = service.decide("shop", label, unavailable=[arm]).event.chosen
        assert chosen
        assert arm not in chosen
    with pytest.raises(Invalid, match="unavailable = 'television': must be one of the arms of the stream"):
        service.decide("shop", 20, unavailable=["television"])


def test_an_impossible_decision_of_a_policy_is_refused_by_name_and_not_recorded(monkeypatch) -> None:
    service = Service(MemoryLog())
    service.create_stream("shop", SHOP | {"policy": "cucb"})
    service.execute("shop", 1, SHOP["arms"])  # a person may do anything
    select = CUCB.select

    def all_arms(policy: CUCB, state: Any, rng: Any) -> Any:
        choice = select(policy, state, rng)
        return choice._replace(x=np.ones_like(choice.x))

    monkeypatch.setattr(CUCB, "select", all_arms)
    with pytest.raises(Invalid, match=r"decision of CUCB = \[1 1 1\]: must be at most 2 of the 3 arms"):
        service.decide("shop", 2)
    assert service.overview("shop")["seq"] == 2


def test_a_stream_that_is_let_go_of_while_a_decision_waits_misses_nothing(monkeypatch) -> None:
    service = Service(MemoryLog(), keep=1)
    for name in ("shop", "other"):
        service.create_stream(name, SHOP)
    played(service, *range(1, 8))
    service.decide("shop", 8)
    exclusive, interrupted = service.log.exclusive, list[bool]()

    def others_then_exclusive(stream: str) -> AbstractContextManager[object]:
        """What other threads may do before this one has the stream."""
        if not interrupted:
            interrupted.append(True)
            service.overview("other")
            service.correct("shop", 2, "radio", {"z": 1.0, "y": 0.0}, revision=2)
            service.decide("shop", 9)
        return exclusive(stream)

    monkeypatch.setattr(service.log, "exclusive", others_then_exclusive)
    service.decide("shop", 10)
    assert interrupted
    assert service.audit("shop").passed


def test_a_key_gives_the_first_answer_again_and_is_refused_for_another_request(service) -> None:
    decision = service.decide("shop", 1, key="d")
    done = service.execute("shop", 1, ["video"], key="e")
    items = [Outcome(round=1, arm="video", z=0.5, y=1.0), Outcome(round=1, arm="radio", z=0.5)]
    report = service.report("shop", items, key="r")
    correction = service.correct("shop", 1, "video", {"y": 2.0}, revision=2, key="c")
    lost = service.expire("shop", 1, key="x")
    changed = service.change_settings("shop", {"seed": 3}, key="s")
    before = service.log.head("shop")
    assert service.decide("shop", 1, key="d").entry == decision.entry
    assert service.execute("shop", 1, ["video"], key="e").entry == done.entry
    assert service.report("shop", items, key="r").statuses == report.statuses
    assert service.correct("shop", 1, "video", {"y": 2.0}, revision=2, key="c").entry == correction.entry
    assert service.expire("shop", 1, key="x").entry == lost.entry
    assert service.change_settings("shop", {"seed": 3}, key="s").entry == changed.entry
    for call in (
        lambda: service.decide("shop", 2, key="d"),
        lambda: service.execute("shop", 1, ["radio"], key="e"),
        lambda: service.report("shop", items[:1], key="r"),
        lambda: service.correct("shop", 1, "video", {"y": 3.0}, revision=3, key="c"),
        lambda: service.expire("shop", 1, reason="other", key="x"),
        lambda: service.change_settings("shop", {"seed": 4}, key="s"),
    ):
        with pytest.raises(Conflict, match="must be a new one: it was used for another request"):
            call()
    assert service.log.head("shop") == before


def test_a_stream_is_created_once(service) -> None:
    assert service.create_stream("shop", SHOP).again
    with pytest.raises(Conflict, match="there is a stream of this name, with other settings"):
        service.create_stream("shop", SHOP | {"budget": 1})
    assert service.streams() == ["shop"]


def test_what_was_executed_is_learned_not_what_was_proposed(service) -> None:
    proposed = service.decide("shop", 1).event.chosen
    other = [arm for arm in SHOP["arms"] if arm not in proposed]
    receipt = service.execute("shop", 1, other)
    assert isinstance(receipt.event, DecisionExecuted)
    assert receipt.event.how == "overridden"
    assert [history(service).arms[k] for k in np.flatnonzero(history(service).x[0])] == other
    assert service.execute("shop", 2, ["radio"]).event.how == "overridden"  # never decided
    as_issued = service.decide("shop", 3).event
    assert service.execute("shop", 3).event.how == "as-issued"
    assert set(as_issued.chosen) == {history(service).arms[k] for k in np.flatnonzero(history(service).x[2])}


def test_a_cancelled_round_did_not_take_place(service) -> None:
    service.decide("shop", 1)
    service.execute("shop", 1, cancelled=True)
    assert service.overview("shop")["counts"] == {
        "rounds": 1,
        "executed": 0,
        "pending": 0,
        "late": 0,
        "cancelled": 1,
        "expired": 0,
    }
    report = service.report("shop", [Outcome(round=1, arm="radio", y=1.0)])
    assert report.statuses[0].reason == "round = 1: must be one that took place; this one was cancelled"
    assert report.entry is None


def test_a_missing_outcome_is_excluded_and_never_zero(service) -> None:
    played(service, 1, 2, 3)
    service.execute("shop", 4, ["radio"])
    service.report("shop", [Outcome(round=4, arm="radio", z=0.5, y=0.5)])  # y of the others is not known
    found = history(service)
    assert found.arrived.tolist() == [True, True, True, False]
    assert found.pending == ("4",)
    service.report("shop", [Outcome(round=4, arm=arm, y=0.0) for arm in ("video", "social")])
    assert history(service).arrived.all()


def test_late_outcomes_are_recorded_and_not_learned(service) -> None:
    service.change_settings("shop", {"max_age_rounds": 2})
    service.execute("shop", 1, ["radio"])
    played(service, 2, 3)
    assert service.report("shop", [Outcome(round=1, arm="radio", z=0.5)]).statuses[0].status == "recorded"
    played(service, 4)
    late = service.report("shop", [Outcome(round=1, arm=arm, y=0.5) for arm in SHOP["arms"]])
    assert {status.status for status in late.statuses} == {"late"}
    assert late.entry is not None
    assert history(service).pending == ("1",)
    receipt = service.correct("shop", 2, "radio", {"z": 0.9}, revision=2)
    assert isinstance(receipt.event, OutcomeCorrected)
    assert receipt.event.learned
    assert not service.correct("shop", 1, "radio", {"z": 0.9}, revision=2).event.learned


def test_an_expired_round_is_left_out_unless_it_is_complete(service) -> None:
    played(service, 1, 2)
    service.execute("shop", 3, ["radio"])
    service.execute("shop", 4, ["radio"])
    service.expire("shop", 2)
    service.expire("shop", 3, reason="the tracker was down")
    assert history(service).rounds == ("1", "2", "4")
    late = service.report("shop", [Outcome(round=3, arm="radio", z=0.5)])
    assert late.statuses[0].status == "late"
    assert service.overview("shop")["counts"]["expired"] == 2


def test_corrections_are_numbered_and_the_last_one_counts(service) -> None:
    played(service, 1)
    with pytest.raises(Invalid, match="revision = 1: must be 2, one more than the last"):
        service.correct("shop", 1, "radio", {"y": 0.9}, revision=1)
    service.correct("shop", 1, "radio", {"y": 0.9}, revision=2, reason="refunds")
    service.correct("shop", 1, "radio", {"y": 0.8, "z": 0.4}, revision=3)
    found = history(service)
    assert found.y[0, found.arms.index("radio")] == 0.8
    assert found.z[0, found.arms.index("radio")] == 0.4
    service.correct("shop", 1, "radio", {"y": None}, revision=4)
    assert history(service).pending == ("1",)
    refused = service.report("shop", [Outcome(round=1, arm="video", y=0.1)]).statuses[0]
    assert refused.reason.endswith("which was reported before; correct it with revision 2")
    service.execute("shop", 2, ["radio"])
    with pytest.raises(Invalid, match="must be of an outcome that was reported"):
        service.correct("shop", 2, "radio", {"y": 0.8}, revision=2)


@pytest.mark.parametrize(
    ("item", "reason", "field"),
    [
        ({"round": 1, "arm": "video", "z": 0.5}, "z = 0.5: must be left out, as 'video' was not executed", "z"),
        ({"round": 1, "arm": "radio", "z": 1.5}, "z = 1.5: must be a number from 0 to 1", "z"),
        ({"round": 1, "arm": "radio", "y": 1e41}, "y = 1e+41: must be a number from -1e+40 to 1e+40", "y"),
        ({"round": 1, "arm": "radoi", "y": 1.0}, "arm = 'radoi': must be one of the arms of the stream", "arm"),
        ({"round": 1, "y": 1.0}, "arm = None: must be one of the arms of the stream", "arm"),
        ({"round": 1, "arm": "radio"}, "y = None: must be given, or z", "y"),
        ({"round": 7, "arm": "radio", "y": 1.0}, "round = 7: must be a round that was decided or executed", "round"),
        ({"round": 2, "arm": "radio", "y": 1.0}, "round = 2: must be executed first", "round"),
        ({"round": "x", "arm": "radio", "y": 1.0}, "round = 'x': must be a whole number, a date", "round"),
    ],
)
def test_outcomes_that_cannot_be_are_refused_one_by_one(service, item, reason, field) -> None:
    service.execute("shop", 1, ["radio"])
    service.decide("shop", 2)
    report = service.report("shop", [Outcome(**item), Outcome(round=1, arm="radio", z=0.25)])
    assert [status.status for status in report.statuses] == ["refused", "recorded"]
    assert report.statuses[0].reason.startswith(reason)
    assert report.statuses[0].field == field


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.5", True])
def test_what_is_no_number_is_refused(service, value) -> None:
    service.execute("shop", 1, ["radio"])
    with pytest.raises(Invalid, match=r"y = .*: must be a number"):
        service.report("shop", [Outcome(round=1, arm="radio", y=value)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": []}, "arms = "),
        ({"arms": ["a", "A"]}, "different from each other"),
        ({"arms": ["a\nb"]}, "on one line"),
        ({"budget": 4}, "budget = 4: must be a whole number from 1 to 3"),
        ({"budget": True}, "budget = True"),
        ({"observes": "z"}, "observes = 'z': must be 'both', 'own', 'overall' or 'payoff'"),
        ({"policy": "os:system"}, "policy = 'os:system': String should match"),
        ({"policy": "oracle"}, "needs the true world"),
        ({"policy": "ndc-sem", "set": ["discount=7"]}, "discount = 7"),
        ({"set": ["graph=os:system"]}, "without colons"),
        ({"reward_range": [1.0, 0.0]}, "range = "),
        ({"limits": [{"kind": "exclusive", "arms": ["radio", "tv"]}]}, "tv"),
        ({"context": ["round"]}, "context = 'round'"),
        ({"seed": -1}, "seed = -1"),
        ({"max_age_rounds": 0}, "max_age_rounds = 0"),
        ({"colour": 1}, "colour = 1: must be left out"),
        ({"policy": "ndc-sem", "observes": "overall"}, "policy = NDCSEM: must be one that does not need"),
        ({"policy": "cucb", "observes": "payoff"}, "policy = CUCB: must be one that does not need"),
        ({"policy": "super-arm-ucb", "arms": [f"arm {k}" for k in range(100)], "budget": 9}, "number of sets = "),
        ({"limits": [{"kind": "include", "arms": SHOP["arms"]}]}, "no set of arms"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, message) -> None:
    service = Service(MemoryLog())
    with pytest.raises(Invalid, match=re.escape(message)):
        service.create_stream("new", SHOP | changes)
    assert service.streams() == []


@pytest.mark.parametrize("observes", ["both", "own", "overall"])
def test_a_policy_that_needs_a_range_can_be_named_with_it(observes) -> None:
    service = Service(MemoryLog())
    service.create_stream("new", SHOP | {"policy": "cts", "observes": observes, "overall_range": [-1, 2]})
    assert service.decide("new", 1).event.policy == "cts"


def many(count: int) -> list[str]:
    return [f"arm {k}" for k in range(count)]


@pytest.mark.parametrize(
    ("most", "settings"),
    [
        (1_000, {}),
        (1_000, {"observes": "payoff"}),
        (100, {"observes": "overall"}),
        (100, {"context": ["price"]}),
        (100, {"policy": "instrumental-sem"}),
    ],
)
def test_there_are_no_more_arms_than_a_server_can_learn(service, most, settings) -> None:
    """As many as are accepted can be decided on, also when there is something to learn."""
    with pytest.raises(Invalid, match=rf"arms = {most + 1}: must be at most {most:,} names"):
        service.create_stream("large", {"arms": many(most + 1), "budget": 2} | settings)
    assert service.streams() == ["shop"]
    service.create_stream("large", {"arms": many(most), "budget": 2} | settings)
    context = {"price": 1.0} if "context" in settings else {}
    for round in (1, 2):
        chosen = service.decide("large", round, context=context).event.chosen
        service.execute("large", round)
        whole = [Outcome(round=round, arm=None, y=0.5)]
        sees_own = settings.get("observes", "both") == "both"
        parts = [
            Outcome(round=round, arm=arm, y=0.5, z=0.5 if sees_own and arm in chosen else None) for arm in many(most)
        ]
        report = service.report("large", whole if settings.get("observes") == "payoff" else parts)
        assert {status.status for status in report.statuses} == {"recorded"}


def test_settings_change_from_one_decision_to_the_next(service) -> None:
    played(service, 1, 2, 3)
    assert len(service.decide("shop", 4).event.chosen) == 2
    service.change_settings("shop", {"budget": 1, "policy": "cucb"})
    event = service.decide("shop", 5).event
    assert len(event.chosen) == 1
    assert event.policy == "cucb"
    with pytest.raises(Invalid, match=r"arms = .*: must be left as it is"):
        service.change_settings("shop", {"arms": ["a"]})


def test_rounds_of_a_stream_are_of_one_kind(service) -> None:
    service.decide("shop", "2026-01-05")
    with pytest.raises(Invalid, match="round = '7': must be written as 2026-01-05 is"):
        service.decide("shop", 7)
    with pytest.raises(Invalid, match="must be a whole number, a date"):
        service.decide("shop", "05/01/2026")
    assert service.decide("shop", "2026-01-05T00:00:00").again


def test_rounds_count_in_their_own_order_not_in_that_of_their_execution(service) -> None:
    played(service, 3, 1, 2)
    assert history(service).rounds == ("1", "2", "3")


def test_unknown_streams_and_rounds_are_not_found(service) -> None:
    for call in (
        lambda: service.decide("none", 1),
        lambda: service.report("none", [Outcome(round=1, arm="a", y=1.0)]),
        lambda: service.events("none"),
        lambda: service.state("none"),
        lambda: service.audit("none"),
    ):
        with pytest.raises(NotFound, match="stream = 'none': must be the name of a stream"):
            call()
    with pytest.raises(NotFound, match="round = '9'"):
        service.explain("shop", 9)
    assert list(service.open_streams.streams) == ["shop"]


def test_reasons_are_kept_as_they_were_then() -> None:
    service = Service(MemoryLog())
    service.create_stream("shop", SHOP)
    played(service, 1, 2, 3)
    decision = service.decide("shop", 4)
    answer = service.explain("shop", 4)
    assert service.log.kept_answer("shop", decision.entry.seq) is not None
    assert service.events("shop")[-1].event.kind == "decision-issued"  # the log shows what people did
    for arm in answer["reasons"]["arms"]:
        band = service.overview("shop")["bands"][arm["arm"]]
        assert [(point["round"], point["interval"]) for point in band] == [("4", arm["total_interval"])]
        assert None not in arm["total_interval"]
    played(service, 5, 6, y=0.1)
    assert service.explain("shop", 4) == decision.answer == answer
    assert answer["choose"] == list(decision.event.chosen)
    assert service.audit("shop").passed
    service.close()


def test_an_imported_history_is_decided_as_next_decides_its_file(service, tmp_path) -> None:
    path = tmp_path / "history.csv"
    path.write_text(example_file())
    first = service.import_history("ads", path, {"budget": 2}, key="k")
    again = service.import_history("ads", path, {"budget": 2}, key="k")
    assert (first.again, again.again, again.entry) == (False, True, first.entry)
    expected = next_decision(path, budget=2, explore=True)
    decision = service.decide("ads", expected.history.following)
    assert list(decision.event.chosen) == expected.choose
    found = decision.answer
    wanted = expected.to_dict()
    assert found["reasons"]["health"] == wanted["reasons"]["health"]
    assert found["pending"] == wanted["pending"]
    assert service.export("ads").content.decode().count("\n") == 6 * 40 + 1
    for key in (None, "k"):
        with pytest.raises(Conflict, match="must be a new one"):
            service.import_history("ads", path, {"budget": 1}, key=key)


@pytest.mark.parametrize("round", [1, "2026-10-12", "2026-10", "2026-W42", "2026Q4", "2026-10-12 08:00"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"observes": "own", "minimise": True}, {"observes": "overall"}, {"observes": "payoff", "doses": True}],
)
def test_what_is_learned_before_the_first_round_is_what_next_says(settings, round) -> None:
    """It is learned once, before it is known which round is asked for."""
    service = Service(MemoryLog())
    service.create_stream("shop", SHOP | settings)
    ledger, coming = service.open_streams.ledger_at("shop", None), Coming(round_key(round).label, {}, ("radio",))
    assert made(ledger, coming, Learning()).answer() == whole_answer(ledger, coming)


def test_the_usual_value_is_the_median_of_those_that_are_known() -> None:
    values, count = np.random.default_rng(1).normal(size=(5, 21)), np.array([1, 2, 3, 20, 21])
    values[np.arange(21) >= count[:, None]] = np.nan
    assert medians(values, count).tolist() == np.nanmedian(values, axis=1).tolist()


def test_what_is_read_of_an_open_stream_folds_no_entry_again(service, monkeypatch) -> None:
    played(service, *range(1, 8))
    service.decide("shop", 8)
    folded: list[int] = []
    take = Ledger.apply

    def apply(ledger: Ledger, entry: Entry) -> None:
        folded.append(entry.seq)
        take(ledger, entry)

    monkeypatch.setattr(Ledger, "apply", apply)
    answer = service.explain("shop", 8)
    assert service.outlook("shop")["choose"] == answer["choose"]
    assert service.export("shop").seq == service.state("shop")["seq"] == service.overview("shop")["seq"]
    assert service.course("shop")["rounds"] == [str(round) for round in range(1, 8)]
    assert folded == []
    assert service.state("shop", at=2)["seq"] == 2  # only for what was known earlier entries are folded again
    assert folded == [1, 2]


def test_what_was_read_stays_as_it_was(service) -> None:
    """A ledger of its own: what is recorded later does not change it."""
    played(service, 1, 2)
    ledger = service.open_streams.ledger_at("shop", None)
    before = state_of(ledger)
    played(service, *range(3, 30))
    service.correct("shop", 1, "radio", {"y": 0.9}, revision=2)
    service.execute("shop", 2, ["video"], revision=2)
    service.expire("shop", 2)
    assert state_of(ledger) == before


def test_what_was_learned_longest_ago_is_let_go_of_where_it_is_too_much(monkeypatch) -> None:
    service = Service(MemoryLog(), keep=4)
    monkeypatch.setattr(open_streams, "LEARNED_BYTES", 250_000)  # of two such streams
    for name in "abc":
        service.create_stream(name, SHOP)
        played(service, 1, 2, stream=name)
        service.decide(name, 3)
    sheets = service.open_streams.streams
    assert [sheets[name].learning.prepared is None for name in "abc"] == [True, False, False]
    service.decide("b", 4)
    service.decide("a", 4)
    assert [sheets[name].learning.prepared is None for name in "abc"] == [False, False, True]
    service.open_streams.forget("b")
    service.decide("c", 4)
    assert [sheets[name].learning.prepared is None for name in "ac"] == [False, False]


def test_a_stream_that_was_forgotten_goes_on_as_it_was() -> None:
    """With room for one stream in memory, with all of them forgotten again and again, and with neither."""
    found = []
    for keep, forgets in ((1, False), (10, True), (10, False)):
        service = Service(MemoryLog(), clock=lambda: "now", keep=keep)
        stories = [Story(service, name, seed) for name, seed in (("a", 5), ("b", 6))]
        for _ in range(3):
            for story in stories:
                story.live(3) if not story.decided else None
            if forgets:
                service.open_streams.forget()
        found.append([service.log.head(name).digest for name in ("a", "b")])
    assert found[0] == found[1] == found[2]


def test_an_outcome_far_from_the_usual_is_flagged_and_recorded(service) -> None:
    rng = np.random.default_rng(0)
    for label in range(1, 31):
        played(service, label, y=float(rng.normal(1.0, 0.1)))
    service.execute("shop", 31, ["radio"])
    items = [Outcome(round=31, arm="radio", y=1000.0), Outcome(round=31, arm="video", y=1.1)]
    report = service.report("shop", items, key="k")
    assert [status.status for status in report.statuses] == ["recorded", "recorded"]
    assert report.statuses[0].flag.startswith("y = 1000 is far from the usual 0.9")
    assert report.statuses[1].flag == ""
    assert service.report("shop", items, key="k").statuses == report.statuses


def test_the_course_of_the_estimates_ends_with_what_is_estimated_now(service) -> None:
    rng = np.random.default_rng(0)
    for label in range(1, 25):
        played(service, label, chosen=[("radio", "social"), ("video",)][label % 2], z=float(rng.uniform()))
    course = service.course("shop", points=5)
    assert course["rounds"] == ["1", "7", "12", "18", "24"]
    event = service.decide("shop", 25).event
    for arm, points in course["arms"].items():
        assert points[-1]["total"] == event.scores[arm]["total"]
        assert points[-1]["interval"] == event.scores[arm]["interval"]
    assert course["changes"][-1] == event.changes


def test_bands_have_the_intervals_of_the_decisions_or_those_that_earlier_versions_kept_apart(service) -> None:
    played(service, 1, 2)
    event = service.decide("shop", 3).event
    assert bands_of([event], {})["radio"][0]["interval"] == event.scores["radio"]["interval"]
    scores = {arm: {"total": parts["total"]} for arm, parts in event.scores.items()}
    older = replace(event, scores=scores)
    assert bands_of([older], {})["radio"][0]["interval"] is None
    assert bands_of([older], {"3": {"radio": [0.1, 0.2]}})["radio"][0]["interval"] == [0.1, 0.2]


def test_linear_algebra_uses_one_thread_until_the_last_service_is_closed(monkeypatch) -> None:
    class Threads:
        """Stands for the libraries of linear algebra, and for a limit that is set on them."""

        number = 2

        def limit(self, *, limits: int) -> "Threads":
            self.number = limits
            return self

        def restore_original_limits(self) -> None:
            self.number = 2

    threads = Threads()
    monkeypatch.setattr(decisions, "controller", lambda: threads)
    monkeypatch.setattr(service_module, "ONE_THREAD", decisions.OneThread())
    first, second = Service(MemoryLog()), Service(MemoryLog())
    for _ in range(2):  # a service that is closed twice counts once
        first.close()
        assert threads.number == 1
    second.close()
    assert threads.number == 2


def test_two_services_on_one_log_see_what_the_other_records(tmp_path) -> None:
    log = SqliteLog(tmp_path / "decisions.db")
    services = [Service(log), Service(log)]
    services[0].create_stream("shop", SHOP)
    for label in range(1, 5):
        services[label % 2].execute("shop", label, ["radio"])
        assert [service.state("shop")["seq"] for service in services] == [label + 1, label + 1]
    for service in services:
        service.close()


def test_reasons_that_were_asked_for_are_there_after_a_restart(tmp_path, monkeypatch) -> None:
    service = Service(SqliteLog(tmp_path / "decisions.db"))
    service.create_stream("shop", SHOP)
    played(service, 1, 2)
    decision = service.decide("shop", 3)
    asked = decision.answer
    played(service, 4, y=0.1)
    service.close()
    service = Service(SqliteLog(tmp_path / "decisions.db"))
    monkeypatch.setattr(Service, "answer_to", None)  # it need not be computed again
    assert service.explain("shop", 3) == asked
    service.close()
