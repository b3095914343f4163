"""Recorded logs with what NDC-SEM must hold along them, computed by an independent implementation.

The logs are in `golden/`, whose README says what is in them; every file is a case.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import spillover as sp
from spillover.graph import SparseGraph
from tests.reference import graph_reference

FILES = sorted((Path(__file__).parent / "golden").glob("*.json"))


def held_along(trace):
    """What the policy holds as it decides each round, and the log as arrays."""
    policy = sp.NDCSEM(
        discount=trace["gamma"],
        exploration=trace["xi"],
        graph=SparseGraph(sparsity=trace["lam"], row_bound=trace.get("row_bound", 0.95)),
    )
    problem = sp.Problem(trace["n"], trace["s"], trace["acyclic"])
    log = [np.array(trace[f"rounds_{name}"], float) for name in "xzy"]
    shown = list(sp.replay(policy, problem, *log, delay=trace["D"]))
    assert len(shown) == len(log[0]) + 1
    return shown, log


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_trace(path):
    trace = json.loads(path.read_text())
    shown, (_, Z, Y) = held_along(trace)
    n = trace["n"]
    allowed = graph_reference.allowed_edges(n, trace["acyclic"])
    penalty = graph_reference.penalties(n, trace["lam"])
    bound = np.inf if trace["acyclic"] else trace["row_bound"]
    assert trace["checks"]
    unique = clear = 0
    for check in trace["checks"]:
        t = check["round"]
        held = shown[t - 1]
        seen = max(0, t - 1 - trace["D"])
        count = np.array(check["discounted_count"])
        index = np.array([np.inf if value is None else value for value in check["index"]])
        mean = np.array([np.nan if value is None else value for value in check["beta_hat"]], float)
        observed = count > 0
        np.testing.assert_allclose(held.mean[observed], mean[observed], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(held.count, count, rtol=1e-8)
        np.testing.assert_allclose(held.clock, check["discounted_time"], rtol=1e-8)
        np.testing.assert_allclose(held.index, index, rtol=1e-8, atol=1e-8)
        objective = graph_reference.objective(Z[:seen], Y[:seen], held.adjacency, penalty)
        assert objective == pytest.approx(check["objective"], rel=1e-8, abs=1e-8)
        worst, infeasible = graph_reference.worst_conditions(
            Z[:seen], Y[:seen], held.adjacency, penalty, allowed, bound
        )
        assert worst <= 1e-8
        assert infeasible <= 1e-9
        if graph_reference.unique_minimiser(Y[:seen], allowed):
            unique += 1
            np.testing.assert_allclose(held.adjacency, check["adjacency"], atol=1e-6)
            np.testing.assert_allclose(held.weights, check["weights"], rtol=1e-6, atol=1e-6)
        if check["margin"] > 1e-6 and t > n:
            clear += 1
            assert set(np.flatnonzero(held.chosen)) == set(check["chosen"])
    assert unique >= 1
    assert clear >= 1


def test_the_traces_are_there():
    names = ["continuous_rewards", "cyclic_bound_binds", "cyclic_graph", "paper_shape"]
    assert [path.stem for path in FILES] == names
