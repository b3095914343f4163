"""Health signals: each is given where it is true, and only there."""

from dataclasses import replace

import numpy as np
import pytest

import spillover as sp
from spillover.reasons import Pending, Signal, health
from spillover.reasons.health import dimensions
from tests.reasons.examples import made_up
from tests.support import sparse

NAMES = ("a", "b", "c")
SHOWN = made_up(np.zeros((3, 3)), [0.5, 0.4, 0.3], [1, 0, 0], index=[0.6, 0.4, 0.3])
ALL = np.ones(3, bool)


def codes(*arguments, shown=SHOWN, budget=1) -> dict[str, Signal]:
    return {signal.code: signal for signal in health(shown, NAMES, budget, *arguments)}


def test_no_warnings():
    found = codes(Pending(5, {}, 5, 0, 0), {"gram": np.eye(3), "latest": [4, 5, 5], "changes_seen": 0})
    assert set(found) == {"graph-identified", "exploration", "changes-seen"}
    assert not any(signal.warning for signal in found.values())
    assert found["exploration"].value == pytest.approx(0.1 / 0.6)


def test_arms_without_data():
    shown = made_up(np.zeros((3, 3)), [0.5, np.nan, np.nan], [0, 1, 0], index=[0.6, np.inf, np.inf])
    found = codes(Pending(4, {4: np.array([0, 0, 1], bool)}), shown=shown)
    assert found["arms-unknown"].arms == ("b",)
    assert found["arms-under-way"].arms == ("c",)
    assert found["mostly-exploration"].value == 1.0


def test_forgotten_outcomes_are_not_first_outcomes():
    shown = made_up(np.zeros((3, 3)), [np.nan] * 3, [0, 1, 0], index=[1.0, 1.0, 1.0])
    observed = np.array([1, 0, 0], bool)
    found = codes(Pending(4, {4: np.array([1, 0, 1], bool)}, observed=observed), shown=shown)
    assert found["arms-forgotten"].sentence == "The policy has forgotten all outcomes of a."
    assert (found["arms-unknown"].arms, found["arms-under-way"].arms) == (("b",), ("c",))


def test_a_graph_that_is_not_identified_and_arms_that_move_together():
    y = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 1.0], [0.5, 1.0, 3.0]])
    found = codes(None, {"gram": y.T @ y})
    assert found["graph-not-identified"].value == 2
    assert found["arms-together"].arms == ("a", "b")
    y[0] = [1.0, 0.0, 0.0]
    assert set(codes(None, {"gram": y.T @ y})) == {"graph-identified", "exploration"}


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_rank_does_not_depend_on_units(scale):
    y = np.random.default_rng(1).normal(size=(4, 6)) * np.array([scale, 1, 1, 1, 1, 1])
    for rounds in range(5):
        some = y[:rounds]
        assert dimensions(some.T @ some)[0] == rounds


def test_idle_arms_count_what_is_under_way():
    signals = {"latest": np.array([1, 60, 2])}
    assert codes(Pending(100, {}, 100), signals)["arms-idle"].arms == NAMES
    waiting = {99: np.array([0, 0, 1], bool)}
    found = codes(Pending(100, waiting, 99), signals)["arms-idle"]
    assert (found.arms, found.value) == (("a", "b"), 99.0)
    assert "arms-idle" not in codes(Pending(31, {}, 31), signals)  # 30 rounds, ten fair turns, are not yet long


def test_delays_against_changes_and_memory():
    late = Pending(100, {}, 10, 500, 80)
    assert codes(late, {"changes_seen": np.array(3)})["delay-exceeds-changes"].value == pytest.approx(50 / 25)
    unchanged = codes(late, {"changes_seen": np.array(0)})["changes-seen"]
    assert (unchanged.warning, unchanged.value) == (False, None)
    assert codes(late, {"memory": 20.0})["delay-exceeds-memory"].value == pytest.approx(2.5)
    assert "delay-exceeds-memory" not in codes(late, {"memory": 60.0})
    assert Pending(10, {4: ALL}, 1, 0, 0).delay == 3.0  # what is under way is as late as it is by now


@pytest.mark.parametrize(
    ("changes", "rounds", "timed", "sentence"),
    [
        (0, 40, False, "No change was detected in 40 rounds."),
        (0, 40, True, "No change was detected in 40 rounds."),
        (1, 180, False, "1 change was detected in 180 rounds."),
        (2, 1800, True, "2 changes were detected in 1,800 rounds."),
        (
            3,
            100,
            True,
            "3 changes were detected in 100 rounds, and outcomes take about 50.0 rounds: "
            "most are outdated when they arrive.",
        ),
        (0, 1, True, "No change was detected in 1 round."),
    ],
)
def test_only_detected_changes_are_reported(changes, rounds, timed, sentence):
    found = codes(Pending(rounds, {}, 10, 500, 80, timed), {"changes_seen": changes})
    (signal,) = [signal for code, signal in found.items() if "changes" in code]
    assert signal.sentence == sentence


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        ([0.5, 0.4], "None of the chosen arms' scores is exploration: they are all learned from data."),
        ([0.501, 0.401], "Less than 1% of the chosen arms' scores is exploration; the rest is learned from data."),
        ([0.6, 0.5], "18% of the chosen arms' scores is exploration; the rest is learned from data."),
        ([500.0, 400.0], "More than 99% of the chosen arms' scores is exploration; the rest is learned from data."),
    ],
)
def test_how_much_is_exploration_in_words(index, sentence):
    shown = made_up(np.zeros((3, 3)), [0.5, 0.4, 0.3], [1, 1, 0], index=[*index, 0.3])
    (signal,) = [signal for code, signal in codes(shown=shown).items() if "exploration" in code]
    assert signal.sentence == sentence


def test_scores_that_are_all_exploration():
    shown = made_up(np.zeros((3, 3)), [0.5, np.nan, np.nan], [0, 1, 1], index=[0.6, 1.0, 1.0])
    unknown = replace(shown, score=np.ones(3))
    assert codes(shown=unknown)["mostly-exploration"].sentence == "The chosen arms' scores are all exploration."
    for chosen, words in (([1, 1, 0], "1 of 2 chosen arms has"), ([0, 1, 1], "2 of 2 chosen arms have")):
        shown = made_up(np.zeros((3, 3)), [0.5, np.nan, np.nan], chosen, index=[0.6, np.inf, np.inf])
        sentence = codes(shown=shown)["mostly-exploration"].sentence
        assert sentence == f"{words} an infinite score, which is all exploration."


def test_a_policy_on_sets_reports_sets_without_data_not_arms():
    learner = sp.Learner(sp.policies.POLICIES["super-arm-ucb"](), sp.Problem(3, 2))
    learner.report(learner.play([1, 1, 0]), z=[0.5, 0.5, 0], y=[0.5, 0.5, 0])
    learner.report(learner.play([1, 0, 1]), z=[0.5, 0, 0.5], y=[0.5, 0, 0.5])
    learner.play([0, 1, 1])
    (signal,) = [signal for signal in learner.reasons(NAMES).health if signal.code.startswith("arms-")]
    assert signal.sentence == "No data on the best sets with b, c: no outcome of them yet."


def test_outcomes_that_may_be_lost():
    waiting = {3: ALL, 70: ALL, 99: ALL}
    found = codes(Pending(100, waiting, 97, 400, 20))
    assert found["pending"].value == 97
    assert found["outcomes-overdue"].value == 1  # round 3; round 70 waits for 30 rounds, less than twice 20
    assert "outcomes-overdue" not in codes(Pending(100, waiting, 9, 30, 20))


def test_a_plan_gives_its_reason():
    found = codes(shown=made_up(np.zeros((3, 3)), [np.nan] * 3, [1, 0, 0], plan="a test"))
    assert found["planned"].sentence == "A plan decided this round, not the scores: a test."


def test_pending_rounds_are_named_by_their_labels():
    waiting = {2: ALL, 3: ALL}
    by_number = codes(Pending(4, waiting))["pending"].sentence
    assert by_number == "2 outcomes are pending; the oldest is of round 2, 2 rounds ago."
    by_label = codes(Pending(4, waiting, labels=["may", "june", "july", "august"]))["pending"].sentence
    assert by_label == "2 outcomes are pending: june, july."


def test_a_policy_that_does_not_learn_has_no_warnings():
    learner = sp.Learner(sp.Uniform(), sp.Problem(3, 1))
    assert learner.reasons().health == ()


@pytest.mark.parametrize("policy", [sp.policies.GLRCUCB(), sp.policies.GLRSEMUCB()])
def test_restarts_are_counted(policy):
    world = sp.FixedSEM(
        adjacency=np.zeros((2, 2)), means=[[0.05, 0.9], [0.9, 0.05]], budget=2, horizon=600, changes=(301,)
    )
    rng = sp.Rng(2)
    alarms = [int(r.state.detector.alarms) for r in sp.rounds(policy, world.draw(rng), 0, rng, ())]
    restarts = [int(r.state.detector.restart) for r in sp.rounds(policy, world.draw(rng), 0, rng, ())]
    assert alarms[-1] == len(set(restarts)) - 1 >= 1
    *_, last = sp.rounds(policy, world.draw(rng), 0, rng, ())
    assert policy.signals(last.state)["changes_seen"] == alarms[-1]


@pytest.mark.parametrize("sparsity", [1e-3, "auto"])
def test_the_gram_of_all_outcomes(sparsity):
    """Including those held out for the choice of the sparsity."""
    policy, y = sp.NDCSEM(graph=sparse(sparsity)), np.random.default_rng(3).random((20, 3))
    learner = sp.Learner(policy, sp.Problem(3, 1))
    for row in y:
        learner.report(learner.play([1, 0, 0]), z=[0.5, 0, 0], y=row)
    np.testing.assert_allclose(policy.signals(learner.state)["gram"], y.T @ y)
    assert policy.signals(learner.state)["memory"] == pytest.approx(1 / 0.015)


def test_doubts_about_rewards_are_said():
    found = codes(None, {"confounded": np.array(True), "baseline": np.array(True)})
    assert found["confounded"].warning
    assert "hidden common cause" in found["confounded"].sentence
    assert "not 0 where nothing is chosen" in found["baseline"].sentence
    quiet = codes(None, {"confounded": np.array(False), "baseline": np.array(False)})
    assert not {"confounded", "baseline"} & set(quiet)


def test_an_order_that_outcomes_contradict_is_said_with_the_arms():
    against = np.zeros((3, 3), bool)
    assert "order-contradicted" not in codes(None, {"against_order": against})
    against[1, 0] = against[2, 0] = True
    found = codes(None, {"against_order": against})["order-contradicted"]
    assert (found.warning, found.value, found.arms) == (True, 2.0, ("a",))
    assert ": a affects b, a affects c." in found.sentence
    many = health(
        made_up(np.zeros((4, 4)), [0.5] * 4, [1, 0, 0, 0]), "abcd", 1, None, {"against_order": np.tri(4, k=-1)}
    )
    (found,) = [signal for signal in many if signal.code == "order-contradicted"]
    assert "a affects b, a affects c, b affects c and 3 more." in found.sentence


@pytest.mark.parametrize(
    ("slopes", "factor"),
    [
        ([100.0, 98.0, 102.0], 100.0),
        ([100.0, 1.0, np.nan], 100.0),  # as many as not
        ([0.01, 0.02, 1.0], 0.015),
        ([100.0, 1.0, 1.0], None),  # one arm of three is a large direct effect
        ([100.0, 0.01, 1.0], None),
        ([2.0, 0.5, 1.9], None),
        ([np.nan, np.nan, np.nan], None),
    ],
)
def test_units_that_differ_are_said_with_the_factor(slopes, factor):
    found = codes(None, {"own_slopes": np.array(slopes)}).get("units-differ")
    assert (None if found is None else found.value) == factor
    assert found is None or "different units" in found.sentence
