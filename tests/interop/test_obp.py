"""Logged feedback of Open Bandit Pipeline, in dictionaries of the shapes that its documentation gives.

The package itself cannot be installed next to current versions of what it needs.
"""

import importlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from spillover.history import read_history
from spillover.interop.obp import log_from_obp
from spillover.tabular import from_networkx, to_networkx

COLUMNS = ["round", "arm", "chosen", "reward", "propensity"]


def bandit(rounds=60, actions=4, positions=3, seed=0):
    """As `OpenBanditDataset.obtain_batch_bandit_feedback` returns it."""
    random = np.random.default_rng(seed)
    return {
        "n_rounds": rounds,
        "n_actions": actions,
        "action": random.integers(actions, size=rounds),
        "position": random.integers(positions, size=rounds),
        "reward": random.integers(2, size=rounds),
        "pscore": np.full(rounds, 1 / actions),
        "context": random.normal(size=(rounds, 2)),
        "action_context": np.eye(actions, dtype=int),
    }


def slates(rounds=30, actions=5, length=2, seed=0):
    """As `SyntheticSlateBanditDataset.obtain_batch_bandit_feedback` returns it."""
    random = np.random.default_rng(seed)
    shown = np.argsort(random.uniform(size=(rounds, actions)), axis=1)[:, :length]
    return {
        "n_rounds": rounds,
        "n_unique_action": actions,
        "slate_id": np.repeat(np.arange(rounds), length),
        "context": random.normal(size=(rounds, 2)),
        "action_context": np.eye(actions, dtype=int),
        "action": shown.ravel(),
        "position": np.tile(np.arange(length), rounds),
        "reward": random.integers(2, size=rounds * length),
        "expected_reward_factual": random.uniform(size=rounds * length),
        "pscore_cascade": np.tile([1 / actions, 1 / (actions * (actions - 1))], rounds),
        "pscore": np.full(rounds * length, 1 / (actions * (actions - 1))),
        "pscore_item_position": np.full(rounds * length, 1 / actions),
    }


def test_a_record_is_a_round():
    feedback = bandit()
    log = log_from_obp(feedback)
    assert log.columns.tolist() == COLUMNS
    assert log["round"].tolist() == list(range(1, 61))
    assert log["arm"].tolist() == [str(action) for action in feedback["action"]]
    assert (log["chosen"] == 1).all()
    np.testing.assert_array_equal(log["reward"], feedback["reward"])
    np.testing.assert_array_equal(log["propensity"], feedback["pscore"])
    # inverse propensity weighting of obp: mean of r 1(a = pi) / p
    ours = (log["reward"] * (log["arm"] == "2") / log["propensity"]).sum() / log["round"].nunique()
    assert ours == np.mean(feedback["reward"] * (feedback["action"] == 2) / feedback["pscore"])


def test_the_records_of_one_position():
    feedback = bandit()
    log = log_from_obp(feedback, position=1)
    there = feedback["position"] == 1
    np.testing.assert_array_equal(log["round"], np.flatnonzero(there) + 1)
    np.testing.assert_array_equal(log["reward"], feedback["reward"][there])
    without = log_from_obp(bandit() | {"position": None})  # as SyntheticBanditDataset has it
    assert len(without) == 60


def test_a_slate_is_a_set():
    feedback = slates()
    log = log_from_obp(feedback, arms=list("abcde"))
    assert log["round"].tolist() == [t for t in range(1, 31) for _ in range(2)]
    assert log.loc[log["round"] == 4, "arm"].tolist() == ["abcde"[k] for k in feedback["action"][6:8]]
    assert set(log["propensity"]) == {0.2}
    assert set(log_from_obp(feedback, propensity="slate")["propensity"]) == {1 / 20}


def test_every_arm_and_the_context():
    feedback = slates()
    log = log_from_obp(feedback, every_arm=True, context=True)
    assert log.columns.tolist() == [*COLUMNS, "context_1", "context_2"]
    assert len(log) == 30 * 5
    assert log.groupby("round")["chosen"].sum().eq(2).all()
    hidden = log[log["chosen"] == 0]
    assert hidden[["reward", "propensity"]].isna().all(axis=None)
    np.testing.assert_array_equal(log["context_2"], np.repeat(feedback["context"][:, 1], 5))
    shown = log[log["chosen"] == 1].drop(columns=["context_1", "context_2"]).reset_index(drop=True)
    short = log_from_obp(feedback).sort_values(["round", "arm"], ignore_index=True)
    pd.testing.assert_frame_equal(shown, short)


@pytest.mark.parametrize("every_arm", [False, True])
def test_the_log_is_a_history(every_arm):
    feedback = slates()
    log = log_from_obp(feedback, every_arm=every_arm).drop(columns="propensity")
    history = read_history(log, columns="round=round,arm=arm,chosen=chosen,outcome=reward")
    x = np.zeros((30, 5), bool)
    x[feedback["slate_id"], feedback["action"]] = True
    np.testing.assert_array_equal(history.x, x)
    np.testing.assert_array_equal(history.y[feedback["slate_id"], feedback["action"]], feedback["reward"])
    assert np.isnan(history.y[~x]).all()


def without(feedback, key):
    return {name: value for name, value in feedback.items() if name != key}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: log_from_obp(without(bandit(), "pscore")), "keys of feedback = .*: must be with 'pscore'"),
        (lambda: log_from_obp(slates() | {"pscore_item_position": None}), "with 'pscore_item_position' and its values"),
        (lambda: log_from_obp(bandit() | {"n_rounds": 59}), r"shape of action = \(60,\): must be \(59,\)"),
        (lambda: log_from_obp(bandit() | {"n_actions": 2}), "action = .*: must be from 0 to 1, as there are 2 actions"),
        (lambda: log_from_obp(bandit() | {"action": np.full(60, 0.5)}), "action = .*: must be whole numbers from 0 on"),
        (lambda: log_from_obp(bandit() | {"pscore": np.zeros(60)}), "pscore = .*: must be probabilities above 0"),
        (lambda: log_from_obp(bandit() | {"reward": np.full(60, np.nan)}), "reward = .*: must be finite numbers"),
        (lambda: log_from_obp(bandit(), arms=["a"]), "arms = .*: must be 4 different names"),
        (lambda: log_from_obp(bandit() | {"position": None}, position=0), "position = 0: must be None"),
        (lambda: log_from_obp(bandit(), propensity="set"), "propensity = 'set': must be one of 'item', 'slate'"),
        (lambda: log_from_obp(slates() | {"n_rounds": 29}), "slate_id = .*: must be from 0 to 28"),
        (lambda: log_from_obp(slates() | {"action": np.zeros(60, int)}), "arms that are in a slate twice"),
        (lambda: log_from_obp(bandit() | {"context": np.zeros(60)}, context=True), r"shape of context = \(60,\)"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- Nothing of other libraries is loaded before it is used, and a missing one is named with what to install --------


OPTIONAL = ("gymnasium", "networkx", "sklearn", "polars", "pyarrow", "pandas", "openpyxl")


def test_the_core_loads_none_of_them():
    code = "import sys, spillover; spillover.simulate, spillover.Learner, spillover.SwitchingSEM, spillover.FixedSEM; "
    code += "import spillover.interop, spillover.interop.agents; "
    code += "import spillover.interop.obp, spillover.tabular; print(sorted(sys.modules.keys() & set(sys.argv[1:])))"
    found = subprocess.run([sys.executable, "-c", code, *OPTIONAL], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("library", ["gymnasium", "sklearn"])
def test_a_module_without_its_library_says_what_to_install(monkeypatch, library):
    name = f"spillover.interop.{library}"
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.base", None)
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=rf'pip install "spillover\[{library}\]"'):
        importlib.import_module(name)


@pytest.mark.parametrize("convert", [to_networkx, from_networkx])
def test_networks_say_what_to_install(monkeypatch, convert):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r'pip install "spillover\[networkx\]"'):
        convert([[0, 1], [0, 0]])


WITHOUT_PANDAS = """
import sys
class Missing:  # a None in sys.modules confuses compiled code
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
sys.meta_path.insert(0, Missing())
import networkx, polars, spillover as sp
from spillover.interop.obp import log_from_obp
network = networkx.DiGraph([("a", "b")])
print(sp.FixedSEM.from_networkx(network, means={"a": 0.5, "b": 0.2}, budget=1).arms)
print(sp.FixedSEM(adjacency=polars.DataFrame({"a": [0, 1], "b": [0, 0]}), means=[0.5, 0.2], budget=1).arms)
try:
    log_from_obp({})
except ImportError as error:
    print(error)
"""


def test_tables_and_networks_need_no_pandas():
    found = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True, check=True)
    one, other, message = found.stdout.splitlines()
    assert one == other == "('b', 'a')"
    assert message.endswith('(pandas): pip install "spillover[research]"')
