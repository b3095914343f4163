"""What cannot be is refused at once: the message names the argument, its value and what is accepted."""

import re

import numpy as np
import pytest

import spillover as sp
from spillover.graph import AdaptiveGraph, SparseGraph

NAN, INF = float("nan"), float("inf")


def refused(words, make, *arguments, **named):
    """A ValueError or TypeError in which all the words stand, in this order."""
    with pytest.raises((ValueError, TypeError)) as caught:
        make(*arguments, **named)
    pattern = ".*".join(re.escape(word) for word in words)
    assert re.search(pattern, str(caught.value), re.DOTALL), f"{caught.value!s} does not say {words}"


# --- policies --------------------------------------------------------------------------------------------------------

POSITIVE = "must be a finite number >= 0"
OPEN = "must be a number strictly between 0 and 1"


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.5, 1.5, NAN, INF, "0.9", None, True, [0.5, 1.0], np.array([])])
def test_discount(value):
    refused(["discount = ", OPEN], sp.NDCSEM, discount=value)


@pytest.mark.parametrize("value", [-1e-12, NAN, INF, "much", None, [[0.1], [-0.1]], 1j])
def test_exploration(value):
    refused(["exploration = ", POSITIVE], sp.NDCSEM, exploration=value)


@pytest.mark.parametrize("value", [-1e-12, NAN, INF, None, [0.1, -0.1]])
def test_sparsity(value):
    refused(["sparsity = ", POSITIVE], SparseGraph, sparsity=value)


def test_sparsity_by_name():
    refused(["sparsity = 'auto'", POSITIVE, 'graph="self-tuned"'], SparseGraph, sparsity="auto")
    refused(["sparsity = 'automatic'", POSITIVE], AdaptiveGraph, sparsity="automatic")


def test_graph_by_name():
    refused(["graph = 'thick'", "must be one of sparse, self-tuned"], sp.NDCSEM, graph="thick")
    refused(["graph = <class", "must be one of sparse"], sp.NDCSEM, graph=SparseGraph)


@pytest.mark.parametrize("value", [0, 1, 1.2, -0.1, NAN, "0.9"])
def test_row_bound(value):
    refused(["row_bound = ", OPEN], SparseGraph, row_bound=value)


def test_the_value_is_shown():
    refused(["discount = 1.5"], sp.NDCSEM, discount=1.5)
    refused(["exploration = -3"], sp.NDCSEM, exploration=-3)
    refused(["sparsity = [ 0.1 -0.1]"], SparseGraph, sparsity=np.array([0.1, -0.1]))


def test_known_edges():
    problem = sp.Problem(3, 1, acyclic=True)
    upper = np.triu(np.ones((3, 3), bool), 1)
    refused(["shape of required = (2, 2)", "must be (3, 3)"], SparseGraph(required=np.ones((2, 2))).init, problem)
    refused(["forbidden = ", "only 0 and 1"], SparseGraph(forbidden=np.full((3, 3), 0.5)).init, problem)
    refused(["required[1, 0] = True", "i < j"], SparseGraph(required=upper.T).init, problem)
    refused(["required[0, 1]", "forbidden"], SparseGraph(required=upper, forbidden=upper).init, problem)
    refused(["required[0, 0]", "self-loop"], SparseGraph(required=np.eye(3)).init, problem._replace(acyclic=False))


# --- problems --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [sp.NDCSEM(), sp.Uniform(), sp.policies.Oracle(), sp.policies.DelayedOracle()])
@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (sp.Problem(3, 4), ["budget = 4", "at most", "3"]),
        (sp.Problem(3, 0), ["budget = 0", "a whole number from 1"]),
        (sp.Problem(3, -2), ["budget = -2", "a whole number from 1"]),
        (sp.Problem(0, 1), ["n_arms = 0", "a whole number from 1"]),
        (sp.Problem(3.0, 1), ["n_arms = 3.0", "a whole number"]),  # type: ignore[arg-type]
        (sp.Problem(3, True), ["budget = True", "a whole number"]),
        (sp.Problem(3, "2"), ["budget = '2'", "a whole number"]),  # type: ignore[arg-type]
        (sp.Problem(3, 1, reward_range=(1.0, 0.0)), ["reward_range = (1.0, 0.0)", "low < high"]),
        (sp.Problem(3, 1, reward_range=(0.0, INF)), ["reward_range = (0.0, inf)", "finite"]),
        (sp.Problem(3, 1, reward_range=(0.0, NAN)), ["reward_range", "finite"]),
        (sp.Problem(3, 1, reward_range=(0.0, 1e-170)), ["reward_range = (0.0, 1e-170)", "at least 1e-40 apart"]),
        (sp.Problem(3, 1, reward_range=5.0), ["reward_range = 5.0", "a pair"]),
        pytest.param(sp.Problem(3, 1, reward_range=("a", "b")), ["reward_range", "a pair"]),
        (sp.Problem(3, 1, overall_range=(2.0, 1.0)), ["overall_range = (2.0, 1.0)", "low < high"]),
        (sp.Problem(3, 1, weights=[1.0, 2.0]), ["weights = [1.0, 2.0]", "3 arms"]),
        (sp.Problem(3, 1, weights=[1.0, 2.0, NAN]), ["weights", "finite"]),
    ],
)
def test_problems(policy, problem, words):
    refused(words, policy.init, problem, sp.Rng(0))


# --- feedback --------------------------------------------------------------------------------------------------------


def report(x, z, y, problem=None, age=0):
    problem = problem or sp.Problem(3, 2)
    policy = sp.NDCSEM()
    state = policy.played(policy.init(problem, sp.Rng(0)), np.array(x, bool))
    before = sp.state.copy_state(state)
    feedback = sp.Feedback(np.array(x, bool), np.array(z, float), np.array(y, float), np.array(age), np.array(True))
    try:
        return policy.update(state, feedback, sp.Rng(0))
    except (ValueError, TypeError):
        for name, leaf in sp.state.leaves(before).items():
            np.testing.assert_array_equal(leaf, sp.state.leaves(state)[name], err_msg=name)
        raise


def test_feedback():
    x, z, y = [1, 1, 0], [0.5, 0.2, 0.0], [0.6, 0.2, 0.0]
    report(x, z, y)
    refused(["z", "nan", "finite"], report, x, [NAN, 0.2, 0], y)
    refused(["y", "nan", "finite"], report, x, z, [0.6, NAN, 0])
    refused(["z", "0.1", "x = [1 1 0]", "0 for every arm that was not played"], report, x, [0.5, 0.2, 0.1], y)
    refused(["z", "1.5", "reward_range", "[0, 1]"], report, x, [1.5, 0.2, 0], y)
    refused(["z", "-0.1", "reward_range", "[0, 1]"], report, x, [0.5, -0.1, 0], y)
    refused(["shape of z = (2,)", "(3,)"], report, x, [0.5, 0.2], y)
    refused(["shape of y = (4,)", "(3,)"], report, x, z, [0.6, 0.2, 0, 0])


@pytest.mark.parametrize("value", [INF, -INF])
@pytest.mark.parametrize("name", ["z", "y"])
def test_feedback_that_is_infinite(name, value):
    good = {"x": [1, 1, 0], "z": [0.5, 0.2, 0.0], "y": [0.6, 0.2, 0.0]}
    refused([name, str(value), "finite"], report, **(good | {name: [value, 0.2, 0.0]}))


@pytest.mark.parametrize("age", [-1, 1, 7])
def test_feedback_of_a_round_that_was_not_played(age):
    refused(["age", str(age)], report, [1, 1, 0], [0.5, 0.2, 0.0], [0.6, 0.2, 0.0], age=age)


def test_feedback_of_the_wrong_number_of_arms():
    refused(["shape of x = (4,)", "(3,)"], report, [1, 1, 0, 0], [0.5, 0.2, 0, 0], [0.6, 0.2, 0, 0])


@pytest.mark.parametrize("policy", [sp.NDCSEM(), sp.Uniform()])
def test_a_decision_of_the_wrong_shape(policy):
    state = policy.init(sp.Problem(3, 2), sp.Rng(0))
    refused(["shape of x = (2,)", "(3,)"], policy.played, state, np.array([True, False]))


def test_the_reward_range_is_the_problems():
    problem = sp.Problem(3, 2, reward_range=(-5.0, 2000.0))
    report([1, 1, 0], [1999.0, -4.0, 0.0], [1999.0, -4.0, 0.0], problem)
    refused(["z", "2001", "reward_range", "2000"], report, [1, 1, 0], [2001.0, 0, 0], [2001.0, 0, 0], problem)


def test_feedback_of_a_batch_names_its_row():
    policy = sp.NDCSEM()
    state = policy.init(sp.Problem(2, 1), sp.Rng(0, np.arange(3)), (3,))
    x = np.array([[1, 0]] * 3, bool)
    state = policy.played(state, x)
    z = np.array([[0.5, 0], [0.5, 0], [7.0, 0]])
    late = sp.Feedback(x, z, z, np.zeros(3, int), np.array([True, True, True]))
    refused(["z of row 2", "7"], policy.update, state, late, sp.Rng(0, np.arange(3)))


# --- replay ----------------------------------------------------------------------------------------------------------

LOG = np.array([[1, 0, 1], [0, 1, 1]])
REWARDS = np.array([[0.5, 0, 0.5], [0, 0.25, 1.0]])


class Silent:
    """A policy that cannot say why."""

    init, select = sp.policies.CUCB.init, sp.policies.CUCB.select
    played, update = sp.policies.CUCB.played, sp.policies.CUCB.update

    def __repr__(self):
        return "Silent()"


def call_replay(policy=None, problem=None, x=LOG, z=REWARDS, y=REWARDS, **named):
    """Calls it, and takes nothing from it: the refusal must not wait for the first round."""
    sp.replay(policy or sp.NDCSEM(), problem or sp.Problem(3, 2), x, z, y, **named)


def test_replay_is_checked_when_it_is_called():
    call_replay()
    refused(["budget = 4", "at most"], call_replay, problem=sp.Problem(3, 4))
    refused(["shape of x = (2, 2)", "(2, 3)"], call_replay, x=LOG[:, :2])
    refused(["shape of z = (1, 3)", "(2, 3)"], call_replay, z=REWARDS[:1])
    refused(["shape of y = (2, 2)", "(2, 3)"], call_replay, y=REWARDS[:, :2])
    refused(["x = ", "only 0 and 1"], call_replay, x=2 * LOG)
    refused(["z of row 1", "reward_range"], call_replay, z=REWARDS * [[1], [3]])
    refused(["z of row 0", "finite"], call_replay, z=np.where(REWARDS == 0.5, NAN, REWARDS))
    refused(["y of row 1", "finite"], call_replay, y=np.where(REWARDS == 1.0, NAN, REWARDS))
    refused(["z of row 0", "not played"], call_replay, z=REWARDS[:, ::-1] + 0.1)
    refused(["seed = -1", "a whole number from 0"], call_replay, seed=-1)
    refused(["-1", "a whole number from 0"], call_replay, delay=-1)
    refused(["delay = 'soon'", "a number of rounds"], call_replay, delay="soon")
    refused(["delays", "whole numbers >= 0"], call_replay, delay=[0, -3])
    refused(["policy = Silent()", "explain"], call_replay, policy=Silent())


@pytest.mark.parametrize("name", ["x", "z", "y"])
@pytest.mark.parametrize("value", [None, "many", 7.0])
def test_replay_of_what_is_not_a_log(name, value):
    refused([f"{name} = ", "must be"], call_replay, **{name: value})


def test_replay_of_an_infinite_reward():
    refused(["y of row 1", "finite"], call_replay, y=np.where(REWARDS == 1.0, INF, REWARDS))


def test_replay_with_a_record_of_delays_that_is_too_short():
    refused(["delays = (1,)", "rounds"], call_replay, delay=[1])


# --- environments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_arms": 0}, ["n_arms = 0", "a whole number from 1"]),
        ({"n_arms": 4.0}, ["n_arms = 4.0", "a whole number from 1"]),
        ({"budget": 0}, ["budget = 0", "a whole number from 1"]),
        ({"budget": 11}, ["budget = 11", "at most n_arms = 10"]),
        ({"edge_density": 0.6}, ["edge_density = 0.6", "from 0 to 0.5"]),
        ({"edge_density": -0.1}, ["edge_density = -0.1", "from 0 to 0.5"]),
        ({"edge_density": NAN}, ["edge_density = nan", "from 0 to 0.5"]),
        ({"edge_density": "dense"}, ["edge_density = 'dense'", "from 0 to 0.5"]),
        ({"weight_range": (0.7, 0.4)}, ["weight_range = (0.7, 0.4)", "0 <= low <= high"]),
        ({"weight_range": (-0.1, 0.4)}, ["weight_range = (-0.1, 0.4)", "0 <= low <= high"]),
        ({"weight_range": 0.5}, ["weight_range = 0.5", "a pair"]),
        ({"weight_range": ("low", "high")}, ["weight_range", "a pair"]),
        ({"gain_range": "wide"}, ["gain_range", "a pair"]),
        ({"horizon": 0}, ["horizon = 0", "a whole number from 1"]),
        ({"horizon": 500}, ["changes = (1000, 2500, 4000)", "from 2 to", "500"]),
        ({"changes": (1,)}, ["changes = (1,)", "from 2 to"]),
        ({"changes": (20, 10)}, ["changes = (20, 10)", "increasing"]),
        ({"changes": (10, 10)}, ["changes = (10, 10)", "increasing"]),
        ({"changes": (10.5,)}, ["changes = (10.5,)", "increasing rounds"]),
        ({"changes": 10}, ["changes = 10", "increasing rounds"]),
        ({"graph_changes": (6000,)}, ["graph_changes = (6000,)", "the horizon, 5000"]),
        ({"changed": 11}, ["changed = 11", "from 0 to 10"]),
        ({"changed": "some"}, ["changed = 'some'", '"all" or a number']),
        ({"changed": True}, ["changed = True", "a whole number from 0 to 10"]),
        ({"law": "normal"}, ["law = 'normal'", "one of bernoulli, beta"]),
        ({"concentration": 0.0}, ["concentration = 0.0", "> 0"]),
        ({"gain_range": (0.0, 1.0)}, ["gain_range = (0.0, 1.0)", "0 < low <= high"]),
        ({"noise": -1.0}, ["noise = -1.0", POSITIVE]),
        ({"noise": NAN}, ["noise = nan", POSITIVE]),
        ({"noise": INF}, ["noise = inf", POSITIVE]),
        ({"noise": (0.1, 0.2)}, ["noise = (0.1, 0.2)", "a single number"]),
    ],
)
def test_synthetic_worlds(given, words):
    refused(words, sp.SyntheticSEM, **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"adjacency": [[0, -0.5], [0, 0]]}, ["adjacency = ", "-0.5", ">= 0"]),
        ({"adjacency": [[0.3, 0.5], [0, 0]]}, ["self-loops of adjacency = ['1']", "a zero diagonal"]),
        ({"adjacency": [[0, NAN], [0, 0]]}, ["adjacency = ", "nan", "finite"]),
        ({"adjacency": [[0, INF], [0, 0]]}, ["adjacency = ", "inf", "finite"]),
        ({"adjacency": [[0, 0.5]]}, ["shape of adjacency = (1, 2)", "(n, n)"]),
        ({"adjacency": []}, ["shape of adjacency = (0,)", "(n, n)"]),
        ({"adjacency": [0, 0.5]}, ["shape of adjacency = (2,)", "(n, n)"]),
        ({"adjacency": [[0, 0.5], [0.5, 0]]}, ["adjacency", "cycle", "acyclic=False"]),
        ({"adjacency": [[0, 1.0], [1.0, 0]], "acyclic": False}, ["spectral radius of adjacency = 1", "below 1"]),
        pytest.param({"adjacency": [["a", "b"], ["c", "d"]]}, ["adjacency", "numbers"]),
        pytest.param({"adjacency": [[0, 0.5], [0]]}, ["adjacency", "square"]),
        ({"means": [0.5, 1.5]}, ["means", "1.5", "from 0 to 1"]),
        ({"means": [0.5, -0.1]}, ["means", "-0.1", "from 0 to 1"]),
        ({"means": [0.5, NAN]}, ["means", "nan", "from 0 to 1"]),
        ({"means": [0.5]}, ["shape of means = (1,)", "(2,)"]),
        ({"means": [[0.5, 0.5]] * 3}, ["shape of means = (3, 2)", "(1, 2)"]),
        pytest.param({"means": "half"}, ["means", "numbers"]),
        pytest.param({"gain": "strong"}, ["gain", "numbers"]),
        pytest.param({"means": [0.5, 0.5], "changes": (9,)}, ["shape of means = (2,): must be (2, 2)"]),
        ({"budget": 3}, ["budget = 3", "at most 2"]),
        ({"budget": 0}, ["budget = 0", "a whole number from 1"]),
        ({"horizon": 0}, ["horizon = 0", "a whole number from 1"]),
        ({"changes": (6,), "horizon": 5, "means": [[0.5, 0.5]] * 2}, ["changes = (6,)", "from 2 to the horizon, 5"]),
        ({"gain": [1.0, 0.0]}, ["gain = [1.0, 0.0]", "> 0"]),
        ({"gain": [1.0]}, ["gain = [1.0]", "2 finite numbers"]),
        ({"law": "normal"}, ["law = 'normal'", "one of bernoulli, beta"]),
        ({"noise": -1}, ["noise = -1", POSITIVE]),
        ({"noise": [0.1]}, ["noise = [0.1]", "a single number"]),
        ({"confounding": 1e308}, ["confounding = 1e+308", "at most 1e+30 in size"]),
    ],
)
def test_fixed_worlds(given, words):
    refused(words, sp.FixedSEM, **({"adjacency": [[0, 0.5], [0, 0]], "means": [0.5, 0.5], "budget": 1} | given))


# --- simulate --------------------------------------------------------------------------------------------------------


class Untouched:
    """An environment that must not be drawn from: the call is refused before any world is."""

    def draw(self, rng, batch=()):
        raise AssertionError("a world was drawn")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"replications": 0}, ["replications = 0", "a whole number from 1"]),
        ({"replications": -5}, ["replications = -5", "a whole number from 1"]),
        ({"replications": 2.0}, ["replications = 2.0", "a whole number from 1"]),
        ({"first": -1}, ["first = -1", "a whole number from 0"]),
        ({"seed": -1}, ["seed = -1", "from 0 to 2^64 - 1"]),
        ({"seed": 2**64}, [f"seed = {2**64}", "from 0 to 2^64 - 1"]),
        ({"seed": 1.5}, ["seed = 1.5", "a whole number"]),
        ({"seed": "lucky"}, ["seed = 'lucky'", "a whole number"]),
        ({"seed": None}, ["seed = None", "a whole number"]),
        ({"seed": True}, ["seed = True", "a whole number"]),
        ({"delay": -1}, ["delay = -1", "a whole number from 0"]),
        ({"delay": 1.5}, ["delay = 1.5", "a number of rounds"]),
        ({"delay": None}, ["delay = None", "a number of rounds"]),
        ({"delay": [1, -2]}, ["delays = [1, -2]", "whole numbers >= 0"]),
    ],
)
def test_simulate(given, words):
    refused(words, sp.simulate, sp.NDCSEM(), Untouched(), **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"record": 0}, ["record = 0", "a whole number of rounds"]),
        ({"record": -5}, ["record = -5", "a whole number of rounds"]),
        ({"record": [0, 5]}, ["record = [0, 5]", "rounds from 1 to 20"]),
        ({"record": [21]}, ["record = [21]", "rounds from 1 to 20"]),
        pytest.param({"record": 1.5}, ["record = 1.5", "round"]),
        pytest.param({"record": [1.5]}, ["record = [1.5]", "round"]),
        pytest.param({"record": "often"}, ["record = 'often'", "round"]),
        pytest.param({"record": None}, ["record = None", "round"]),
        pytest.param({"delay": [1] * 10}, ["delays = (10,)", "(20,)"]),
        pytest.param({"delay": np.ones((1, 20)), "replications": 2}, ["delays = (1, 20)", "(2, 20)"]),
        pytest.param({"first": 3, "delay": np.ones((2, 20))}, ["delays = (2, 20)", "(4, 20)"]),
    ],
)
def test_simulate_before_any_round(given, words):
    class Watched(sp.Uniform):
        def select(self, state, rng):
            raise AssertionError("a round was played")

    refused(words, sp.simulate, Watched(), sp.SyntheticSEM(horizon=20, changes=()), **given)


def test_a_grid_given_as_a_list_is_a_grid():
    run = sp.simulate(sp.NDCSEM(discount=[0.5, 0.9]), sp.SyntheticSEM(horizon=20, changes=()), replications=2)
    assert run.regret.shape == (2, 2, 20)


def test_grids_that_do_not_fit():
    policy = sp.NDCSEM(discount=np.array([0.5, 0.6]), exploration=np.array([0.1, 0.2, 0.3]))
    refused(["discount", "exploration"], sp.simulate, policy, Untouched())


def test_what_is_asked_of_a_run():
    run = sp.simulate(sp.Uniform(), sp.SyntheticSEM(horizon=20, changes=()), replications=2)
    refused(["every = 0", "a whole number from 1"], run.to_frame, every=0)
    refused(["rounds = 21", "from 1 to 20"], run.blind_regret, 21)
    refused(["rounds = 0", "from 1 to 20"], run.blind_regret, 0)


@pytest.mark.parametrize("replication", [-1, 1.5, [0, -2]])
def test_streams(replication):
    refused(["replication = ", "whole numbers from 0"], sp.Rng, 0, replication)
