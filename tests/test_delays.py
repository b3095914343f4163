"""Delays: their distributions, records, and errors."""

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.delays import NEVER, BadNewsDelay, ConversionDelay, ParetoDelay, as_delay
from spillover.rng import Purpose, Rng
from spillover.testing import check_delay

UNLIKELY = 1e-3  # seeds are fixed: a test below this p-value fails always or never
MANY = 20_000


def draw(delay, t=1, replications=MANY, seed=0):
    return delay.draw(t, Rng(seed, np.arange(replications)).at(Purpose.DELAY, t), (replications,))


def test_uniform_includes_both_ends_and_is_uniform():
    values, counts = np.unique(draw(sp.UniformDelay(3, 8)), return_counts=True)
    assert values.tolist() == [3, 4, 5, 6, 7, 8]
    assert stats.chisquare(counts).pvalue > UNLIKELY
    assert (draw(sp.UniformDelay(4, 4)) == 4).all()


@pytest.mark.parametrize("mean", [0.3, 1.0, 6.5])
def test_geometric_follows_its_law(mean):
    found = draw(sp.GeometricDelay(mean))
    law = stats.geom(1 / (1 + mean), loc=-1)  # on 0, 1, 2, ...
    last = int(law.ppf(0.999))
    counts = [int((found == k).sum()) for k in range(last)] + [int((found >= last).sum())]
    expected = [*law.pmf(np.arange(last)), law.sf(last - 1)]
    assert stats.chisquare(counts, MANY * np.array(expected)).pvalue > UNLIKELY


def test_geometric_at_its_extremes():
    assert (draw(sp.GeometricDelay(0)) == 0).all()
    large = draw(sp.GeometricDelay(1e15))
    assert (large >= 0).all()
    assert 0.9e15 < large.mean() < 1.1e15


def test_pareto_has_its_tail():
    found = draw(ParetoDelay(25.0, 1.1))
    for late in (5, 50, 500, 5000):
        share = float((found >= late).mean())
        assert stats.binomtest(round(share * MANY), MANY, (1 + late / 25.0) ** -1.1).pvalue > UNLIKELY


def rewards_of(delay, z, x=(True, True, False)):
    return delay.draw_given(1, np.asarray(x), np.asarray(z, float), Rng(0)).tolist()


def test_only_conversions_arrive():
    assert rewards_of(ConversionDelay(4), [1, 0, 0]) == [4, NEVER, 4]
    assert rewards_of(ConversionDelay(4, silence=0.0), [1, 0, 0]) == [4, 4, 4]
    x, z = np.ones((MANY, 1), bool), np.zeros((MANY, 1))
    silent = ConversionDelay(0, 0.3).draw_given(1, x, z, Rng(1, np.arange(MANY)), (MANY,)) == NEVER
    assert stats.binomtest(int(silent.sum()), MANY, 0.3).pvalue > UNLIKELY


def test_bad_news_comes_late():
    delay = BadNewsDelay(10, 50)
    assert [rewards_of(delay, z) for z in ([1, 1, 0], [1, 0, 0], [0, 0, 0])] == [10, 30, 50]
    assert delay.largest == 50
    check_delay(delay)
    check_delay(ConversionDelay(sp.GeometricDelay(3.0), 0.5))
    check_delay(ParetoDelay(5.0))
    for extreme in (ParetoDelay(1e14, 1e-320), ParetoDelay(1e-320, 1e14), ParetoDelay(1.0, 5e-324)):
        check_delay(extreme)


@pytest.mark.parametrize("loss", [0.0, 0.2, 1.0])
def test_lossy_loses_its_share_and_leaves_the_rest(loss):
    found = draw(sp.LossyDelay(sp.UniformDelay(0, 4), loss))
    lost = found == NEVER
    assert stats.binomtest(int(lost.sum()), MANY, loss).pvalue > UNLIKELY
    if not lost.all():
        values, counts = np.unique(found[~lost], return_counts=True)
        assert values.tolist() == [0, 1, 2, 3, 4]
        assert stats.chisquare(counts).pvalue > UNLIKELY


def test_rounds_are_independent():
    delay = sp.UniformDelay(0, 99)
    today, tomorrow = draw(delay, t=1), draw(delay, t=2)
    assert stats.pearsonr(today, tomorrow).pvalue > UNLIKELY


def test_a_record_for_all_is_read_by_round():
    delay = sp.RecordedDelay([4, 0, 2])
    assert [draw(delay, t, 2).tolist() for t in (1, 2, 3)] == [[4, 4], [0, 0], [2, 2]]


def test_a_record_for_each_is_read_by_replication_whatever_the_block():
    record = np.arange(12).reshape(4, 3)
    delay = sp.RecordedDelay(record)
    for rows in (np.arange(4), np.array([3, 1]), np.array(2), np.array([[0, 1], [2, 3]])):
        for t in (1, 2, 3):
            found = delay.draw(t, Rng(5, rows).at(Purpose.DELAY, t), rows.shape)
            assert (found == record[rows, t - 1]).all()
            assert found.dtype == np.int64


def test_nan_infinity_and_never_are_lost():
    delay = sp.RecordedDelay([np.nan, 3.0, np.inf])
    assert [draw(delay, t, 1).tolist() for t in (1, 2, 3)] == [[NEVER], [3], [NEVER]]
    whole = sp.RecordedDelay(np.array([NEVER, 2]))
    assert [draw(whole, t, 1).tolist() for t in (1, 2)] == [[NEVER], [2]]


def test_simulation_reads_the_record_of_each_replication():
    environment = sp.SyntheticSEM(n_arms=3, budget=1, horizon=12, changes=())
    record = np.array([[0] * 12, [3] * 12, [NEVER] * 12])
    whole = sp.simulate(sp.NDCSEM(), environment, record, replications=3)
    for k, delay in enumerate((0, 3, sp.RecordedDelay([np.nan] * 12))):
        alone = sp.simulate(sp.NDCSEM(), environment, delay, replications=1, first=k)
        assert (whole.regret[k] == alone.regret[0]).all()
        block = sp.simulate(sp.NDCSEM(), environment, record, replications=1, first=k)
        assert (block.regret[0] == alone.regret[0]).all()


def test_what_people_write_becomes_a_delay():
    assert as_delay(4) == sp.ConstantDelay(4)
    assert as_delay(np.int64(4)) == sp.ConstantDelay(4)
    assert isinstance(as_delay([1, 2]), sp.RecordedDelay)
    assert isinstance(as_delay((1, 2)), sp.RecordedDelay)
    assert isinstance(as_delay(np.array([1, 2])), sp.RecordedDelay)
    delay = sp.UniformDelay(0, 1)
    assert as_delay(delay) is delay


@pytest.mark.parametrize("given", ["5", None, 2.5, True])
def test_what_is_no_delay_is_refused(given):
    with pytest.raises(ValueError, match=r"^delay = .*: must be a number of rounds, a record of delays, or a Delay"):
        as_delay(given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sp.ConstantDelay(-1), "rounds = -1: must be a whole number from 0 on"),
        (lambda: sp.ConstantDelay(1.0), r"rounds = 1\.0: must be a whole number"),  # type: ignore[arg-type]
        (lambda: sp.ConstantDelay("3"), "rounds = '3': must be a whole number"),  # type: ignore[arg-type]
        (lambda: sp.ConstantDelay(True), "rounds = True: must be a whole number"),
        (lambda: sp.UniformDelay(-2, 3), "low = -2: must be a whole number from 0 on"),
        (lambda: sp.UniformDelay(4, 3), "high = 3: must be a whole number from 4 on"),
        (lambda: sp.GeometricDelay(-0.5), r"mean = -0\.5: must be a number from 0 to 1e15"),
        (lambda: sp.GeometricDelay(float("nan")), "mean = nan: must be a number from 0 to 1e15"),
        (lambda: sp.GeometricDelay(float("inf")), "mean = inf: must be a number from 0 to 1e15"),
        (lambda: sp.GeometricDelay(1e18), r"mean = 1e\+18: must be a number from 0 to 1e15"),
        (lambda: sp.LossyDelay(sp.ConstantDelay(1), 1.5), r"loss = 1\.5: must be a probability, from 0 to 1"),
        (lambda: sp.LossyDelay(sp.ConstantDelay(1), -0.1), r"loss = -0\.1: must be a probability, from 0 to 1"),
        (lambda: sp.LossyDelay(sp.ConstantDelay(1), float("nan")), "loss = nan: must be a probability, from 0 to 1"),
        (lambda: ParetoDelay(0.0), r"scale = 0\.0: must be a number above 0, below 1e15"),
        (lambda: ParetoDelay(1.0, -1.0), r"tail = -1\.0: must be a number above 0, below 1e15"),
        (lambda: ConversionDelay(1, 2.0), r"silence = 2\.0: must be a probability, from 0 to 1"),
        (lambda: BadNewsDelay(5, 4), "bad = 4: must be a whole number from 5 on"),
        (lambda: sp.RecordedDelay([1, -1]), r"delays = \[1, -1\]: must be whole numbers >= 0"),
        (lambda: sp.RecordedDelay([0.5]), r"delays = \[0\.5\]: must be whole numbers >= 0"),
        (lambda: sp.RecordedDelay([]), r"delays = \[\]: must be whole numbers >= 0"),
        (lambda: sp.RecordedDelay(["a"]), r"delays = \['a'\]: must be whole numbers >= 0"),
        (lambda: sp.RecordedDelay(np.zeros((2, 2, 2))), r"(?s)delays = .*: must be .*\(replications, rounds\)"),
        # a number that int64 does not hold must not come out negative
        (lambda: sp.RecordedDelay(np.array([2**63], np.uint64)), r"delays = \[9223372036854775808\]: must be"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_record_that_ends_too_early_is_named():
    delay = sp.RecordedDelay([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="t = 3: must be at most 2, the rounds on record"):
        draw(delay, t=3, replications=2)
    with pytest.raises(ValueError, match="replication = 2: must be below 2, the rows on record"):
        draw(delay, t=1, replications=3)
