"""A call that is interrupted at any line, or fails, leaves the learner as it was; no outcome counts twice."""

import copy
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.learner.running import to_the_end
from tests.core.explorers import BOTH
from tests.live.learners import LIVE, content, learner_of, live, outcome
from tests.recorder import Recorder
from tests.sampling import few_or_many, often

SOURCE = str(Path(sp.__file__).parent)
OFTEN = ("ndc-sem", "cts", "switching-sem")  # in `make test`; the others in `make test-long`


def interrupted_at(line: int, call: Callable[[], object]) -> bool:
    """Make a call, and press Ctrl-C before the given one of the lines of the package; whether it came so far."""
    left = line

    def trace(frame, event, _):
        nonlocal left
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt  # which also ends the tracing
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def every_line(learner: Any, call: Callable[[Any], object], step: int, content: Callable[..., Any] = content) -> int:
    """Interrupt a call at every `step`-th of its lines, in a copy each; nothing of it is done, or all of it."""
    before, done = content(learner), copy.deepcopy(learner)
    call(done)
    after, line = content(done), 1
    assert after != before
    while interrupted_at(line, partial(call, one := copy.deepcopy(learner))):
        found = content(one)
        assert found in (before, after), f"torn at line {line} of the call"
        if found == before:
            call(one)
            assert content(one) == after, f"not the same again after line {line}"
        line += step
    return line - 1


steps = pytest.mark.parametrize("step", few_or_many(7, 1))
names = pytest.mark.parametrize("name", often(OFTEN, LIVE))


@steps
@names
def test_ctrl_c_at_every_line_of_a_report(name, step):
    learner = learner_of(name)
    live(learner, 12)
    number = learner.pending[0]
    x = learner.waiting[number].x
    given = outcome(learner.problem, x, np.random.default_rng(3))
    assert every_line(learner, lambda one: one.report(number, **given), step) > 20


@steps
@names
def test_ctrl_c_at_every_line_of_a_decision(name, step):
    learner = learner_of(name)
    live(learner, 12)
    assert every_line(learner, lambda one: one.play(), step) > 10
    assert every_line(learner, lambda one: one.choose(available=[0, 2]), step) > 5


@steps
@pytest.mark.parametrize("policy", BOTH, ids=repr)
def test_ctrl_c_at_every_line_with_a_policy_that_returns_the_state_that_it_was_given(policy, step):
    learner = sp.Learner(policy, sp.Problem(n_arms=4, budget=2))
    live(learner, 12)
    number, x = learner.pending[0], learner.waiting[learner.pending[0]].x
    assert every_line(learner, lambda one: one.report(number, 0.5 * x, 0.5 * x), step) > 20
    assert every_line(learner, lambda one: one.play(), step) > 10


@steps
@pytest.mark.parametrize("policy", [Recorder(), pytest.param(sp.InstrumentalSEM(), marks=pytest.mark.long)])
def test_ctrl_c_at_every_line_of_a_part_of_an_outcome_and_of_a_context(policy, step):
    problem = sp.Problem(n_arms=3, budget=2, observes="overall", context=2, baseline=True)
    learner = sp.Learner(policy, problem)
    for k in range(4):
        learner.play(context=[0.1 * k, -1.0])
    learner.report(2, y=[np.nan, 0.5, np.nan])
    assert every_line(learner, lambda one: one.report(2, y=[0.25, np.nan, np.nan]), step) > 20
    assert every_line(learner, lambda one: one.report(3, y=[np.nan, 0.5, 0.75]), step) > 20
    assert every_line(learner, lambda one: one.observe([0.3, 0.4]), step) > 5
    assert every_line(learner, lambda one: one.play([1, 0, 1], context=[0.5, 0.5]), step) > 10


@steps
def test_ctrl_c_at_every_line_of_a_choice_after_a_play_that_waits_for_an_outcome(step):
    learner = learner_of("switching-sem")
    live(learner, 12)
    done = copy.deepcopy(learner)
    done.play()
    chosen, after, line, interrupted = done.choose(), content(done), 1, True
    while interrupted:
        one = copy.deepcopy(learner)
        one.play()
        interrupted = interrupted_at(line, one.choose)
        np.testing.assert_array_equal(one.choose(), chosen)
        assert content(one) == after
        line += step
    assert line > 10


class Failing(Recorder):
    """Rewrites half of its state, as `update` may, and then fails; or only until it is told not to."""

    def update(self, state, feedback, rng):
        state.outcomes[:1] += 100.0
        if feedback.y[0] == 9.0:
            raise RuntimeError("halfway")
        state.outcomes[1:] += feedback.y[1:]
        return state


def test_an_update_that_fails_halfway_is_undone():
    learner = sp.Learner(Failing(), sp.Problem(n_arms=3, budget=2, observes="overall"))
    for k in range(12):
        learner.report(learner.play(), y=[float(k % 5), 1.0, 2.0])
        number, before = learner.play(), content(learner)
        with pytest.raises(RuntimeError, match="halfway"):
            learner.report(number, y=[9.0, 1.0, 2.0])
        assert content(learner) == before
    np.testing.assert_array_equal(learner.state.outcomes[1:], [12.0, 24.0])
    assert learner.pending == list(range(2, 25, 2))


def test_a_call_that_is_refused_changes_nothing():
    problem = sp.Problem(n_arms=3, budget=2, observes="overall", context=1)
    learner = sp.Learner(Recorder(), problem)
    learner.play(context=[1.0])
    before = content(learner)
    for call in (
        lambda: learner.play([1, 1], context=[2.0]),
        lambda: learner.play(dose=[-1.0, 1.0, 1.0], context=[2.0]),
        lambda: learner.choose(available=[7], context=[2.0]),
        lambda: learner.report(1, y=[1.0, 2.0]),
        lambda: learner.report(True, y=[1.0, 2.0, 3.0]),
        lambda: learner.report(1.0, y=[1.0, 2.0, 3.0]),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match="must be"):
            call()
        assert content(learner) == before


def test_a_second_ctrl_c_does_not_tear_a_call_either():
    pressed: list[bool] = []
    done: list[bool] = []

    def action():
        if len(pressed) < 2:
            pressed.append(True)
            raise KeyboardInterrupt
        done.append(True)

    with pytest.raises(KeyboardInterrupt):
        to_the_end(action)
    assert done == [True]


@pytest.mark.parametrize("name", ["ndc-sem", "ftrl"])
def test_copies_and_pickles_go_on_by_themselves(name):
    learner = learner_of(name)
    live(learner, 9)
    before = content(learner)
    for other in (copy.copy(learner), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert content(other) == before
        live(other, 5)
        assert content(learner) == before
        once = copy.deepcopy(learner)
        live(once, 5)
        assert content(other) == content(once)
