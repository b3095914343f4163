"""Arms that report at different times: no outcome is lost, repeated or early, against an obvious slow twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.delays import NEVER, ArmDelays
from spillover.simulation.protocol import Mailbox
from spillover.testing import check_delay
from spillover.types import Choice, Outcome
from tests.properties import examples
from tests.recorder import Recorder

ARMS = 3


def posted(horizon, batch):
    """Decisions and outcomes whose values say where they come from."""
    generator = np.random.default_rng(horizon)
    cell = np.arange(np.prod(batch, dtype=int) * ARMS).reshape(*batch, ARMS)
    for t in range(1, horizon + 1):
        x = generator.random((*batch, ARMS)) < 0.5
        context = np.full((*batch, 2), float(t))
        yield (
            t,
            Choice(x, memo=np.full((*batch, 1), float(t))),
            Outcome(-1.0 * t - cell / 1000, t + cell / 1000, context),
        )


def run_against_twin(delays, batch):
    """delays: (rounds, *batch, ARMS). Every delivery is compared with what each replication should know."""
    horizon = len(delays)
    mailbox, history = Mailbox(horizon, batch, in_parts=True), {}
    news: dict[tuple[int, ...], int] = {}
    for t, choice, outcome in posted(horizon, batch):
        history[t] = choice, outcome
        mailbox.post(t, choice, outcome, delays[t - 1])
        expected = {
            (cell, s)
            for cell in np.ndindex(*batch)
            for s in range(1, t + 1)
            if any(int(d) == t - s for d in delays[s - 1][cell])
        }
        met = set()
        for piece, played_at in mailbox.deliver(t):
            for cell in np.ndindex(*batch):
                s = int(played_at[cell])
                if not piece.arrived[cell]:
                    assert not piece.fresh[cell].any()
                    assert not piece.complete[cell]
                    assert not piece.y[cell].any()
                    continue
                met.add((cell, s))
                late = [int(d) for d in delays[s - 1][cell]]
                known = np.array([d <= t - s for d in late])
                np.testing.assert_array_equal(piece.fresh[cell], [d == t - s for d in late])
                assert bool(piece.complete[cell]) == all(d <= t - s or d == NEVER for d in late)
                for ours, theirs in ((piece.y, history[s][1].y), (piece.z, history[s][1].z)):
                    np.testing.assert_array_equal(ours[cell], np.where(known, theirs[cell], np.nan))
                assert piece.age[cell] == t - s
                assert piece.memo[cell] == s
                assert (piece.context[cell] == s).all()
                np.testing.assert_array_equal(piece.x[cell], history[s][0].x[cell])
                for arm in np.flatnonzero(piece.fresh[cell]):
                    news[(*cell, s, int(arm))] = news.get((*cell, s, int(arm)), 0) + 1
        assert met == expected
    arriving = {
        (*cell, s, arm)
        for cell in np.ndindex(*batch)
        for s in range(1, horizon + 1)
        for arm in range(ARMS)
        if int(delays[s - 1][cell][arm]) <= horizon - s
    }
    assert set(news) == arriving
    assert set(news.values()) <= {1}
    assert not mailbox.due


delay_values = st.one_of(st.integers(0, 3), st.integers(0, 15), st.just(NEVER))


@examples(25)
@given(st.sampled_from([(), (1,), (3,), (2, 2)]), st.integers(1, 12), st.data())
def test_every_delivery_equals_the_slow_twin(batch, horizon, data):
    size = horizon * int(np.prod(batch, dtype=int)) * ARMS
    flat = data.draw(st.lists(delay_values, min_size=size, max_size=size))
    run_against_twin(np.array(flat, np.int64).reshape(horizon, *batch, ARMS), batch)


@pytest.mark.parametrize(
    "delays", [[0, 0, 0], [0, 2, 5], [NEVER, 0, 1], [NEVER] * 3, [4, 4, 0]], ids=lambda d: "-".join(map(str, d))
)
def test_fixed_delays_equal_the_slow_twin(delays):
    run_against_twin(np.tile(np.array(delays, np.int64), (10, 4, 1)), (4,))


DELAYS = ArmDelays((0, 3, sp.UniformDelay(1, 4), 2))
WORLD = sp.SyntheticSEM(n_arms=4, budget=2, edge_density=0.2, horizon=25, changes=())


def played(policy, delay, batch=(3,)):
    rng = sp.Rng(5, np.arange(3))
    world = WORLD.draw(rng.at(sp.rng.Purpose.WORLD), batch)
    return list(sp.rounds(policy, world, delay, rng, batch))


def test_a_policy_that_accepts_parts_has_each_outcome_once_by_the_end():
    policy = Recorder()
    outcomes = [step.outcome for step in played(policy, ArmDelays((0, 3, 1, 2)))]
    state = np.zeros((3, 4))
    for piece in policy.calls("update"):
        state += np.where(piece.fresh, piece.y, 0.0)
    late = np.array([0, 3, 1, 2])
    expected = sum(np.where(late <= 25 - t, outcome.y, 0.0) for t, outcome in enumerate(outcomes, 1))
    np.testing.assert_allclose(state, expected, rtol=1e-12)


def test_other_policies_learn_a_round_with_its_last_outcome():
    patient = Recorder(missing=False)
    played(patient, ArmDelays((0, 3, 1, 2)))
    whole = Recorder(missing=False)
    played(whole, 3)
    ours, theirs = patient.calls("update"), whole.calls("update")
    assert len(ours) == len(theirs) == 22
    for one, two in zip(ours, theirs, strict=True):
        assert one.fresh is None
        for name in ("x", "z", "y", "age", "arrived"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_the_delays_of_a_policy_of_today_are_those_of_the_slowest_arm():
    slow = sp.simulate(sp.NDCSEM(), WORLD, 3, replications=4)
    parts = sp.simulate(sp.NDCSEM(), WORLD, ArmDelays((0, 3, 1, 2)), replications=4)
    np.testing.assert_array_equal(slow.regret, parts.regret)


def test_the_contract():
    check_delay(DELAYS)
    check_delay(sp.LossyDelay(DELAYS, 0.5))
    assert DELAYS.largest == 4
    assert ArmDelays((0, sp.GeometricDelay(2.0))).largest is None
    assert DELAYS.constant is None


def test_lost_rounds_are_lost_for_all_arms():
    drawn = sp.LossyDelay(DELAYS, 0.5).draw(1, sp.Rng(0, np.arange(200)), (200,))
    lost = drawn == NEVER
    assert (lost.all(axis=-1) == lost.any(axis=-1)).all()
    assert 0.3 < lost[:, 0].mean() < 0.7


def test_wrong_delays_are_named():
    with pytest.raises(ValueError, match=r"delays = \(\): must be a delay for each arm"):
        ArmDelays(())
    with pytest.raises(ValueError, match="delays = 3: must be a delay for each arm"):
        ArmDelays(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delay = 'x': must be a number of rounds"):
        ArmDelays((1, "x"))
    with pytest.raises(ValueError, match=r"shape of delays = \(3, 2\): must be \(3, 4\), as x has"):
        played(Recorder(), ArmDelays((0, 1)))
