"""Rows of named arrays are read and written alike in Python and in compiled code."""

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import spillover as sp
from spillover.core import CorePolicy, Turn, choose_top, later, uniform
from spillover.core.batches import LiveCore
from spillover.core.record import Row, table_of
from spillover.rng import Purpose
from spillover.state import copy_state, leaves
from tests.core.explorers import CompiledExplorer


class Part(NamedTuple):
    number: Any
    square: Any


class Whole(NamedTuple):
    rounds: Any
    n_arms: Any
    budget: Any
    reward_range: Any
    real: Any
    single: Any
    whole: Any
    small: Any
    truth: Any
    truths: Any
    line: Any
    cube: Any
    part: Part


@dataclass(frozen=True, kw_only=True)
class Writer(CorePolicy):
    """Reads and writes a field of each kind."""

    step: float = 0.5
    count: int = 3
    on: bool = True
    table: Any = ((1.0, 2.0), (3.0, 4.0))

    def start(self, problem: sp.Problem, rng: sp.Rng) -> Whole:
        n, draws = problem.n_arms, rng.uniform(4)
        return Whole(
            rounds=0,
            n_arms=n,
            budget=problem.budget,
            reward_range=np.array(problem.reward_range, float),
            real=draws[0],
            single=np.float32(draws[1]),
            whole=int(100 * draws[2]),
            small=np.int8(3),
            truth=bool(draws[3] < 0.5),
            truths=np.zeros(n, np.bool_),
            line=rng.uniform(n),
            cube=np.zeros((2, n, 3)),
            part=Part(0.0, np.zeros((n, n))),
        )

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        x[0] = True

    def note_play(self, s: Any, x: Any) -> None:
        s.real += self.step
        s.single = s.single * 2.0
        s.whole = s.whole // 2 + self.count
        s.small += 1
        s.truth = not s.truth and self.on
        s.truths = ~s.truths
        s.line[1:] = s.line[:-1] + self.table[1, 0]
        s.cube[1, :, 2] = s.line
        s.cube[0] += 1.0
        s.part.number -= self.table[0, 1]
        s.part.square[0] = s.line
        s.part.square = s.part.square.T.copy()
        s.line *= 0.5

    def learn_outcome(self, s: Any, lesson: Any, turn: Any) -> None:
        s.real = 0.0


class CompiledWriter(Writer):
    compiled = True


@pytest.mark.parametrize("batch", [(), (1,), (4,), (2, 1), (1, 3), (2, 3)])
def test_fields_of_all_kinds_are_read_and_written(batch) -> None:
    rng = sp.Rng(3, np.arange(np.prod(batch, dtype=int)).reshape(batch)).at(Purpose.START)
    found = []
    for policy in (Writer(), CompiledWriter()):
        state = policy.init(sp.Problem(n_arms=3, budget=1), rng.restarted(), batch)
        before = copy_state(state)
        for _ in range(3):
            state = policy.played(state, np.ones((*batch, 3), np.bool_))
        assert all((leaf != leaves(before)[name]).any() for name, leaf in leaves(state).items() if name in CHANGED)
        found.append(leaves(state))
    plain, compiled = found
    for name, leaf in plain.items():
        np.testing.assert_array_equal(leaf, compiled[name], err_msg=name)
        assert leaf.dtype == compiled[name].dtype


CHANGED = ("rounds", "real", "single", "whole", "small", "truths", "line", "cube", "part.number", "part.square")


def test_an_axis_of_one_row_may_have_any_stride() -> None:
    rng = sp.Rng(3, np.arange(4)).at(Purpose.START)
    state = CompiledWriter().init(sp.Problem(n_arms=3, budget=1), rng, (4,))
    widened = type(state)(*(type(v)(*(w[:, None] for w in v)) if isinstance(v, tuple) else v[:, None] for v in state))
    assert widened.line.strides[1] != widened.line.strides[0]
    x = np.ones((4, 3), np.bool_)
    wide, usual = CompiledWriter().played(widened, x[:, None]), CompiledWriter().played(state, x)
    for name, leaf in leaves(usual).items():
        np.testing.assert_array_equal(leaves(wide)[name][:, 0], leaf, err_msg=name)
    direct = table_of(Part(np.zeros((4, 1)), np.zeros((4, 3, 3))[:, None]), 2)
    assert direct[[1, 3]].tolist() == [8, 72]


def test_a_state_is_not_changed_by_what_may_not_change_it() -> None:
    policy, rng = CompiledExplorer(), sp.Rng(3, np.arange(4))
    state = policy.init(sp.Problem(n_arms=3, budget=1), rng.at(Purpose.START), (4,))
    before = {name: leaf.copy() for name, leaf in leaves(state).items()}
    policy.played(state, policy.select(state, rng.at(Purpose.CHOICE, 1)).x)
    for name, leaf in leaves(state).items():
        np.testing.assert_array_equal(leaf, before[name], err_msg=name)


def test_a_row_has_no_attributes_of_its_own() -> None:
    with pytest.raises(AttributeError):
        Row(Part(np.zeros(2), np.zeros((2, 3))), 0).other = 1.0


def test_threads_share_a_policy() -> None:
    """Each learner has memory of its own, also while functions are compiled or loaded for the first time."""

    class Threaded(CompiledExplorer):
        pass

    def decide(seed: int) -> None:
        learner = sp.Learner(Threaded(), sp.Problem(n_arms=4, budget=2), seed=seed)
        for _ in range(30):
            x = learner.choose()
            learner.report(learner.play(), 0.5 * x, 0.5 * x)
        found[seed] = learner.state

    found: dict[int, Any] = {}
    threads = [threading.Thread(target=decide, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(found)
    for seed in range(4):
        decide(seed)
        for name, leaf in leaves(found[seed]).items():
            np.testing.assert_array_equal(leaf, leaves(together[seed])[name], err_msg=name)


def test_learners_that_one_thread_makes_work_in_memory_of_their_own() -> None:
    learners = [sp.Learner(CompiledExplorer(), sp.Problem(n_arms=4, budget=2)) for _ in range(2)]
    one, other = (learner.running for learner in learners)
    assert isinstance(one, LiveCore)
    assert isinstance(other, LiveCore)
    assert not any(np.shares_memory(*pair) for pair in zip(one.room, other.room, strict=True))


def test_draws_are_those_of_the_generator() -> None:
    rng = sp.Rng(8).at(Purpose.CHOICE, 5)
    turn = Turn(*rng.address(), np.empty((4, 6)), np.empty(16), None)
    again = rng.restarted()
    np.testing.assert_array_equal([uniform(turn, i) for i in range(6)], again.uniform(6))
    np.testing.assert_array_equal([uniform(later(turn), i) for i in range(6)], again.uniform(6))
    x = np.zeros(6, np.bool_)
    choose_top(np.array([0.3, -1.0, 0.9, 0.0, 0.5, 0.1]), 2, turn, x)
    assert np.flatnonzero(x).tolist() == [2, 4]
