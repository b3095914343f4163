"""What a policy of one learner gets wrong is named: the policy, the function or field, and what is accepted."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import spillover as sp
from spillover.core import inner
from tests.core.explorers import CompiledExplorer, Explorer

PROBLEM = sp.Problem(n_arms=3, budget=1)
COMPILES = r"must be code that Numba can compile: {reason} \(test_messages\.py, line \d+\); with compiled = False "


def play(policy: Any) -> None:
    learner = sp.Learner(policy, PROBLEM)
    learner.report(learner.play(), np.zeros(3), np.zeros(3))


def missing_field(self, s, turn, x):
    x[0] = s.colour > 0


def method_of_the_policy(self, s, turn, x):
    x[0] = self.helper()


def plain_function(value):
    return value


def calls_a_plain_function(self, s, turn, x):
    x[0] = plain_function(True)


@inner
def inner_with_a_mistake(counts):
    return counts.colour


def calls_an_inner_with_a_mistake(self, s, turn, x):
    x[0] = inner_with_a_mistake(s.pulls)


def assigns_a_hyperparameter(self, s, turn, x):
    self.bonus = 2.0


def reads_a_file(self, s, turn, x):
    with open("arms.txt") as file:
        x[0] = len(file.read())


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (missing_field, r"Unknown attribute 'colour' of type fields rounds, n_arms, .*"),
        (method_of_the_policy, r"Unknown attribute 'helper' of type fields epsilon, bonus .*"),
        (calls_a_plain_function, r"Untyped global name 'plain_function': .*"),
        (calls_an_inner_with_a_mistake, r"Unknown attribute 'colour' of type array\(int64, 1d, C\)"),
        (assigns_a_hyperparameter, r"bonus of the policy cannot be assigned: what is learned belongs in the state"),
        (reads_a_file, r"The 'with \(context manager\) as \(variable\):' construct is not supported.*"),
    ],
)
def test_what_cannot_be_compiled(function, reason) -> None:
    class Own(CompiledExplorer):
        decide = function

    with pytest.raises(TypeError, match=rf"^decide = {function.__name__}: {COMPILES.format(reason=reason)}"):
        play(Own())


def test_how_it_is_compiled_is_one_of_three() -> None:
    class Own(CompiledExplorer):
        compiled = "fast"

    with pytest.raises(ValueError, match=r"^compiled = 'fast': must be True or False or 'without arrays'$"):
        play(Own())


def test_arrays_are_made_only_where_that_is_announced() -> None:
    class Own(CompiledExplorer):
        compiled = "without arrays"

    with pytest.raises(TypeError, match=r"^remember = .* compile: it makes arrays, so compiled must be True \("):
        play(Own())


@pytest.mark.parametrize("kind", [Explorer, CompiledExplorer])
def test_what_a_function_takes(kind) -> None:
    class Own(kind):
        def derive(self, s):
            pass

    with pytest.raises(TypeError, match=r"^derive = .*Own\.derive: must take \(self, s, turn\)$"):
        play(Own())


def test_the_class_of_a_method_is_named() -> None:
    class Own(CompiledExplorer):
        def learn_outcome(self, s, lesson, turn):
            s.clock = lesson.colour

    with pytest.raises(TypeError, match=r"^learn_outcome = .*\bOwn\.learn_outcome: must be code"):
        play(Own())


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (missing_field, AttributeError, "^colour: must be one of what a function of one learner sees here: rounds, "),
        (method_of_the_policy, AttributeError, "^helper: must be one of .* sees here: epsilon, bonus$"),
        (assigns_a_hyperparameter, ValueError, "read-only"),
    ],
)
def test_what_python_runs_says_the_same(function, error, message) -> None:
    class Own(Explorer):
        decide = function

    with pytest.raises(error, match=message):
        play(Own())


class Short(NamedTuple):
    rounds: Any
    n_arms: Any


@pytest.mark.parametrize("kind", [Explorer, CompiledExplorer])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clock": None}, r"^clock in the state of Own = None: must be a C-contiguous array of"),
        ({"last": "abc"}, r"^last in the state of Own = 'abc': must be a C-contiguous array of numbers"),
        ({"rounds": 0.0}, r"^rounds in the state of Own = 0\.: must be int64 of shape \(\)$"),
        ({"reward_range": 1.0}, r"^reward_range in the state of Own = .*: must be float64 of shape \(2,\)$"),
    ],
)
def test_a_field_of_the_state(kind, change, message) -> None:
    class Own(kind):
        def start(self, problem, rng):
            return super().start(problem, rng)._replace(**change)

    with pytest.raises(ValueError, match=message):
        play(Own())


@pytest.mark.parametrize("kind", [Explorer, CompiledExplorer])
def test_a_field_that_every_state_has(kind) -> None:
    class Own(kind):
        def start(self, problem, rng):
            return Short(0, problem.n_arms)

    with pytest.raises(ValueError, match=r"^fields of the state of Own = .*: must include budget, reward_range$"):
        play(Own())


@pytest.mark.parametrize("kind", [Explorer, CompiledExplorer])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda part: np.broadcast_to(part[0], part.shape),  # rows would share their memory
        lambda part: part[:, ::-1],
        lambda part: part[0],  # without the axis of the batch
        lambda part: part.astype(">f8"),
    ],
)
def test_arrays_whose_rows_cannot_be_written_one_by_one(kind, spoil) -> None:
    state = kind().init(PROBLEM, sp.Rng(0, [0, 1]), (2,))
    spoiled = state._replace(estimates=spoil(state.estimates))
    with pytest.raises(ValueError, match=rf"^estimates in the state of {kind.__name__} = .*with the axes \(2,\) of"):
        kind().select(spoiled, sp.Rng(0, [0, 1]))
