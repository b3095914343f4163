"""The search for new causes of a row, in Python: there an index outside of an array is an error."""

import numpy as np

from spillover.kernels.candidates import gather_suspects


def test_arms_whose_outcomes_are_too_small_to_be_squared_are_no_suspects():
    """They were entered once for each outcome, which went on behind the list."""
    n, outcomes = 3, 4
    arms, y = np.tile(np.arange(n, dtype=np.int32), outcomes), np.array([0.5, 1e-200, 0.0] * outcomes)
    start, count = np.arange(outcomes) * n, np.full(outcomes, n)
    past = (arms, y, y, start, count, np.arange(outcomes), np.array([arms.size]))
    active_at = np.tile(np.arange(outcomes), (n, 1))
    activity = (active_at, np.ones((n, outcomes)), np.ones((n, outcomes)), np.full(n, outcomes), np.ones(n))
    suspects, evidence = np.full(n, -1, np.int32), np.zeros((n, 2))
    found, _ = gather_suspects.py_func(0, 1e-3, past, activity, np.ones(outcomes), False, suspects, evidence)
    assert found == 0
    found, _ = gather_suspects.py_func(1, 1e-3, past, activity, np.ones(outcomes), False, suspects, evidence)
    assert suspects[:found].tolist() == [0]
    assert evidence.tolist() == [[2.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
