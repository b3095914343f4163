"""Policies accept any valid feedback, however extreme: at most s arms, and never NaN."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import spillover as sp
from spillover.state import leaves
from tests.properties import examples
from tests.sampling import every
from tests.support import explained, sparse

# Of outcomes whose squares are smaller than the smallest normal number; what is learned is right all the same.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in fit")

NAMES = [name for name, make in sp.policies.POLICIES.items() if not make().traits.needs_world]
NEED_A_RANGE = [name for name in NAMES if sp.policies.POLICIES[name]().traits.needs_overall_range]

outcomes = st.one_of(
    st.floats(-1e12, 1e12),
    st.floats(-1e40, 1e40),
    st.floats(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, 1e12, -1e12, 1e40, -1e40, 1e-12, 1e-300, 5e-324]),
)
shares = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1e-300, 0.5]))
ages = st.one_of(st.integers(0, 12), st.integers(0, 10**6))
pauses = st.sampled_from([0, 0, 0, 1, 5, 80])  # rounds in which nothing is played
weights = st.one_of(st.floats(1e-12, 1e12), st.floats(0.1, 10))
ranges = st.sampled_from([(0.0, 1.0), (-3.0, 2.0), (0.0, 1e12), (-1e-6, 1e-6), (5.0, 6.0)])


@st.composite
def games(draw, declared, knows_graph):
    """A problem, and for each round what is played instead of the choice (or None) and what arrives at its end."""
    n = draw(st.integers(1, 6))
    batch: tuple[int, ...] = draw(st.sampled_from([(), (2,)]))
    low, high = draw(ranges)
    overall = draw(ranges) if declared else None
    total = draw(arrays.arrays(float, n, elements=weights, fill=st.nothing())) if knows_graph else None
    problem = sp.Problem(n, draw(st.integers(1, n)), draw(st.booleans()), (low, high), overall, total)
    rounds = draw(st.integers(1, 9))
    line = (rounds, *batch, n)
    x = draw(arrays.arrays(bool, line))
    b = low + (high - low) * draw(arrays.arrays(float, line, elements=shares))
    y = draw(arrays.arrays(float, line, elements=outcomes))
    age = draw(arrays.arrays(np.int64, line[:-1], elements=ages))
    arrived = draw(arrays.arrays(bool, line[:-1], elements=st.sampled_from([True, True, True, False])))
    overridden = draw(arrays.arrays(bool, rounds))
    pause = [draw(pauses) for _ in range(rounds)]
    arrivals = [draw(st.lists(st.integers(0, t), max_size=3)) for t in range(rounds)]
    return problem, batch, x, np.clip(b, low, high), y, age, arrived, overridden, pause, arrivals


def check(policy: Any, state: Any, problem: sp.Problem, batch: tuple[int, ...], rng: sp.Rng) -> sp.Choice:
    """The next choice, feasible, and a state without NaN."""
    choice: sp.Choice = policy.select(state, rng)
    assert choice.x.dtype == np.bool_
    assert choice.x.shape == (*batch, problem.n_arms)
    assert (choice.x.sum(axis=-1) <= problem.budget).all()
    carried = {"probability": choice.probability, "memo": choice.memo}
    found = leaves(state) | {name: value for name, value in carried.items() if value is not None}
    for name, leaf in found.items():
        assert not np.isnan(leaf).any(), name
    if hasattr(policy, "explain"):
        shown = explained(policy, state, rng)
        assert not np.isnan(shown.score).any()
        assert not np.isnan(shown.mean[shown.count > 0]).any()
    return choice


def run(policy: Any, game: Any) -> None:
    problem, batch, x, b, y, age, arrived, overridden, pause, arrivals = game
    rng = sp.Rng(3, np.arange(2) if batch else 0)
    state = policy.init(problem, rng.at(sp.rng.Purpose.START), batch)
    log: list[Any] = []
    rounds = 0
    for t in range(len(x)):
        choice = check(policy, state, problem, batch, rng.at(sp.rng.Purpose.CHOICE, t + 1))
        played = x[t] if overridden[t] else choice.x
        state = policy.played(state, played)
        for _ in range(pause[t]):
            state = policy.played(state, np.zeros_like(played))
        rounds += 1 + pause[t]
        log.append((played, np.where(played, b[t], 0.0), y[t], choice[1:]))
        for k in arrivals[t]:
            decision, z, overall, carried = log[k]
            old = np.where(arrived[k], age[k] % rounds, age[k])  # of any round so far, not only of the one it was
            piece = sp.Feedback(decision, z, overall, old, np.asarray(arrived[k]), *carried)
            state = policy.update(state, piece, rng.at(sp.rng.Purpose.LEARNING, k + 1))
    check(policy, state, problem, batch, rng.at(sp.rng.Purpose.CHOICE, len(x) + 1))


CASES = [(name, declared) for name in NAMES for declared in (True, False) if declared or name not in NEED_A_RANGE]


@pytest.mark.parametrize(("name", "declared"), every(3, CASES))
@given(data=st.data())
@examples(6)
def test_no_feedback_makes_it_fall_over(name, declared, data):
    policy = sp.policies.POLICIES[name]()
    run(policy, data.draw(games(declared, knows_graph=policy.traits.knows_graph)))


def one_huge_outcome(size: float) -> Any:
    """Nothing but zeros, and one outcome so large that errors of predictions overflow when they are squared twice."""
    rounds, batch, n = 5, (2,), 2
    x, y = np.zeros((rounds, *batch, n), bool), np.zeros((rounds, *batch, n))
    y[3, 0, 0] = size
    age, arrived = np.zeros((rounds, *batch), int), np.ones((rounds, *batch), bool)
    arrivals: list[list[int]] = [[], [0, 0], [0, 0, 0], [3], [4]]
    return (
        sp.Problem(n, 1, False),
        batch,
        x,
        np.ones(x.shape),
        y,
        age,
        arrived,
        np.zeros(rounds, bool),
        [0] * 5,
        arrivals,
    )


@pytest.mark.parametrize("size", [8.3e35, -1e40, 1e40, 1e-300])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEED_A_RANGE])
def test_one_huge_outcome(name, size):
    policy = sp.policies.POLICIES[name]()
    if not policy.traits.knows_graph:
        run(policy, one_huge_outcome(size))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("discounted-cucb", {"discount": 1e-12}),
        ("discounted-cucb", {"discount": 1 - 1e-12}),
        ("window-cucb", {"window": 1}),
        ("window-cucb", {"window": 3}),
        ("glr-cucb", {"false_alarms": 1 - 1e-12, "forced": 1.0}),
        ("glr-cucb", {"false_alarms": 1e-300, "forced": 0.0}),
        ("glr-sem-ucb", {"false_alarms": 1 - 1e-12, "forced": 1.0, "graph": sparse(0.0)}),
        ("sem-ucb", {"graph": sparse(0.0)}),
        ("sem-ucb", {"graph": sparse(1e12)}),
        ("sem-ucb", {"graph": "self-tuned"}),
        ("ndc-sem", {"discount": 1e-12, "exploration": 1e6}),
        ("ndc-sem", {"discount": 1e-12, "exploration": 1e6, "pending": True}),
        ("ndc-sem", {"pending": True}),
        ("ndc-sem", {"discount": 0.5, "exploration": 0.0, "graph": sparse(0.0)}),
    ],
)
@given(data=st.data())
@examples(4)
def test_nor_with_settings_at_their_edges(name, settings, data):
    policy = sp.policies.POLICIES[name](**settings)
    run(policy, data.draw(games(declared=False, knows_graph=policy.traits.knows_graph)))


def test_every_policy_is_tried():
    assert set(NAMES) | {"oracle", "delayed-oracle"} == set(sp.policies.POLICIES)
    assert len(NAMES) >= 16
