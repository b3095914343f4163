"""One arm, chosen in every round: it is the only one that can have changed, however small the evidence for it is."""

import numpy as np
import pytest

import spillover as sp


@pytest.mark.parametrize("observes", ["both", "overall"])
def test_beliefs_in_one_arm_stay_finite(observes):
    noise = np.random.default_rng(0).normal(0.0, 0.15, 400)
    outcomes = (0.5 + 0.00025 * np.arange(400) + noise).clip(0, 1)
    problem = sp.Problem(n_arms=1, budget=1, acyclic=False, observes=observes, baseline=observes == "overall")
    learner = sp.Learner(sp.SwitchingSEM(), problem, seed=0)
    for t, outcome in enumerate(outcomes, 1):
        learner.play([1])
        learner.report(t, z=[outcome] if observes == "both" else None, y=[outcome])
    assert np.isfinite(learner.state.belief.mass).all()
    assert np.isfinite(learner.state.belief.changed).all()
    assert np.isfinite(learner.explain().score).all()
