"""From a table to an evaluation: what it says, what it notes, what it refuses."""

import io
import re
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spillover as sp
from spillover.evaluation.posterior import Evidence, Process, drawn_paths, drawn_worlds, filtered
from spillover.evaluation.worlds import log_of, of_decisions, weighed
from spillover.history import read_history
from spillover.history.example import example_file
from tests.reference.off_policy_reference import OBP, estimates, obp_problem


@pytest.fixture(scope="module")
def table():
    return pd.read_csv(io.StringIO(example_file()))


def drawn_table(rounds=300, seed=4):
    """Random sets of two of three arms with known probabilities: effects 1, 2 and 0, one outcome, a baseline of 5."""
    g = np.random.Generator(np.random.Philox(seed))
    sets = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    probability = np.array([0.2, 0.3, 0.5])
    drawn = g.choice(3, rounds, p=probability)
    payoff = 5 + sets[drawn] @ [1.0, 2.0, 0.0] + 0.5 * g.standard_normal(rounds)
    columns = dict(zip(["a", "b", "c"], sets[drawn].T, strict=True))
    return pd.DataFrame({"round": np.arange(1, rounds + 1), **columns, "sales": payoff, "p": probability[drawn]})


def test_the_example_is_evaluated(table):
    found = sp.evaluate(table, always=[["video", "social"]], draws=60)
    (always,) = found.answers
    assert found.earned == pytest.approx(table["y"].sum())
    assert found.logged.interval[0] < found.earned < found.logged.interval[1]
    assert always.verdict == "better"
    assert always.arms == ("social", "video")
    assert found.bound.payoff >= found.fixed.payoff - 1e-9
    assert found.delay == 2  # as many rounds are pending
    assert all(len(line) <= 80 for line in str(found).splitlines()[:8])
    assert repr(found) == "Evaluation(38 rounds, always video, social: better)"
    assert list(found.to_frame().index) == ["as it was", "always video, social", "best fixed set", "upper bound"]


def test_the_decisions_of_the_log_compared_with_themselves_make_no_difference(table):
    log = log_of(read_history(table), 2)
    worlds = drawn_worlds(log, 40)
    assert of_decisions(worlds, log.amounts).payoff == pytest.approx(
        (worlds.expected(log.amounts) + worlds.without).sum(axis=1)
    )
    assert (worlds.effects.sum(axis=1)[:, None] * worlds.own == worlds.worth).all()


def test_smaller_may_be_better(table):
    found = sp.evaluate(table, always=[["video", "social"]], minimise=True, draws=60, reward_range=(0, 1))
    (always,) = found.answers
    assert found.earned == pytest.approx(table["y"].sum())
    assert always.difference > 0
    assert always.verdict == "worse"
    assert "would have done worse" in str(found)


def test_what_was_left_is_said_in_the_sign_of_the_table(table):
    """Costs are the negated outcomes of a table that is maximised: every number of the sentence has the other sign."""
    costs = table.assign(z=-table["z"], y=-table["y"])
    options: Any = {"always": [["video", "social"]], "draws": 60, "budget": 2}
    outcomes = str(sp.evaluate(table, **options, reward_range=(0, 1)))
    (more,) = (line for line in outcomes.splitlines() if line.startswith("Left on the table: at most "))
    reduced = str(sp.evaluate(costs, **options, minimise=True, reward_range=(-1, 0)))
    (less,) = (line for line in reduced.splitlines() if line.startswith("Left on the table: "))
    numbers = [float(text) for text in re.findall(r"-?\d[\d.]*(?<!\.)", more)]
    ends = sorted(-number for number in numbers[2:])
    assert [float(text) for text in re.findall(r"-?\d[\d.]*(?<!\.)", less)] == [-numbers[0], -numbers[1], *ends]
    assert min(numbers) > 0


def test_an_arm_that_was_never_chosen_cannot_be_told():
    data = drawn_table().assign(d=0)
    found = sp.evaluate(data, columns="outcome=sales,chosen=a;b;c;d", always=[["a", "d"]], draws=60)
    (always,) = found.answers
    assert always.untried == ("d",)
    assert always.verdict == "cannot tell"
    assert "50% of its choices were never tried (d)" in str(found)
    assert any("Never chosen in the log: d" in warning for warning in found.warnings)


def test_the_model_and_the_propensities_agree_with_the_truth():
    columns = "outcome=sales,chosen=a;b;c"
    found = sp.evaluate(drawn_table(), columns=columns, always=[["a", "b"]], propensity="p", draws=60)
    (always,) = found.answers
    truth = 300 * (5 + 3)
    assert always.weighed is not None
    assert always.weighed.dr is not None
    assert always.interval[0] < truth < always.interval[1]
    for estimate in (always.weighed.ips, always.weighed.snips, always.weighed.dr):
        assert estimate.low < truth < estimate.high
    assert always.weighed.enough
    assert found.to_dict()["answers"][0]["by_propensity"]["matching_rounds"] == always.weighed.matching


def test_a_policy_is_replayed_on_the_log_where_propensities_are_known():
    found = sp.evaluate(drawn_table(60), columns="outcome=sales,chosen=a;b;c", propensity="p", draws=30)
    (answer,) = found.answers
    assert answer.name == "payoff-regression"
    assert answer.weighed is not None
    assert 0 < answer.weighed.matching <= 60
    assert "By propensities" in str(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": 0.0}, "propensity = 0 in round 1: must be a probability above 0"),
        ({"p": 1.5}, "propensity = 1.5 in round 1: must be a probability above 0"),
    ],
)
def test_propensities_that_are_none_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        sp.evaluate(drawn_table(40).assign(**change), columns="outcome=sales,chosen=a;b;c", propensity="p")


def test_bad_input_is_refused(table):
    with pytest.raises(ValueError, match="always = 'vidio': must be one of the arms of the table"):
        sp.evaluate(table, always=[["vidio"]])
    with pytest.raises(ValueError, match="draws = 1: must be"):
        sp.evaluate(table, draws=1)
    with pytest.raises(ValueError, match="rounds with all of their outcomes = 5: must be from 10"):
        sp.evaluate(table[table["round"] <= sorted(table["round"].unique())[4]])
    with pytest.raises(ValueError, match="policy = 'nonsense': must be one of"):
        sp.evaluate(table, policy="nonsense")


def test_the_same_seed_gives_the_same_answer(table):
    first, second = (sp.evaluate(table, policy="ndc-sem", draws=30, seed=3) for _ in range(2))
    assert first.to_dict() == second.to_dict()


def test_own_rewards_alone_are_enough(table):
    """Without y there is no spill-over: payoffs are sums of z."""
    found = sp.evaluate(table.drop(columns="y"), always=[["video", "search"]], draws=40)
    (always,) = found.answers
    own = table[table["chosen"] == 1].groupby("arm")["z"].mean()
    assert found.earned == pytest.approx(table["z"].sum())
    assert always.interval[0] < 38 * (own["video"] + own["search"]) < always.interval[1]


def test_limits_hold_for_policies(table):
    found = sp.evaluate(table, policy="ndc-sem", unavailable=["video"], draws=20)
    assert "video" not in found.answers[0].arms
    assert "video" not in found.fixed.arms


def shares(seed=0, rounds=40):
    """Shares of a market: whatever is chosen, those of a round add up to 1."""
    rng = np.random.default_rng(seed)
    x = rng.permuted(np.tile([1, 0, 0], (rounds, 1)), axis=1)
    sizes = np.exp(0.4 * x + 0.1 * rng.normal(size=x.shape))
    parts = sizes / sizes.sum(axis=1, keepdims=True)
    names = ("north", "south", "west")
    table = {"week": range(rounds)} | {f"promo_{name}": x[:, j] for j, name in enumerate(names)}
    return table | {f"share_{name}": parts[:, j] for j, name in enumerate(names)}


def test_of_shares_nothing_is_left_on_the_table():
    found = sp.evaluate(shares(), always=[["north"]], draws=60)
    for answer in (*found.answers, found.fixed, found.bound):
        assert answer.verdict == "the same"
        assert (answer.difference, answer.difference_interval) == (0.0, (0.0, 0.0))
        assert answer.payoff == pytest.approx(40.0)
    assert "always north would have brought the same: no decision changes the sum of the outcomes." in str(found)
    assert "Left on the table: nothing, as no decision changes the sum of the outcomes." in str(found)
    assert any("add up to the same number" in warning for warning in found.warnings)


def cases(seed):
    """Cases, most of which any one of three measures avoids: together, the effects are more than there are cases."""
    x = np.array([[t % 4 == j for j in range(3)] for t in range(40)])
    found = np.random.default_rng(seed).poisson(np.where(x.any(axis=1), 3.0, 10.0))
    return {"week": range(40)} | {f"law_{j}": x[:, j] for j in range(3)} | {"cases": found}


@pytest.mark.parametrize("seed", range(3))
def test_no_more_is_left_than_the_whole_total(seed, monkeypatch):
    def evaluated():
        return sp.evaluate(cases(seed), minimise=True, budget=3, always=[["0", "1"]], draws=40)

    found = evaluated()
    assert 0.0 < found.bound.gain[1] <= found.earned
    assert min(answer.interval[0] for answer in found.rows) >= 0.0
    assert min(answer.course.low.min() for answer in found.rows) >= 0.0
    monkeypatch.setattr("spillover.evaluation.worlds.possible_payoff", lambda *_, **__: (-np.inf, np.inf))
    free = evaluated()
    assert free.bound.gain[1] > free.earned  # what the model alone would say


def units(rounds=12):
    """Units that were chosen once, for good, some never."""
    starts = (4, 5, 6, 7, 99, 99, 99)
    x = np.array([[int(t >= start) for start in starts] for t in range(rounds)])
    y = 5.0 + np.arange(7) + np.arange(rounds)[:, None] + 2.0 * x + 0.01 * np.sin(np.arange(rounds * 7)).reshape(-1, 7)
    return {"week": range(rounds)} | {f"law_{j}": x[:, j] for j in range(7)} | {f"sales_{j}": y[:, j] for j in range(7)}


def together(rounds=40):
    """Two arms that were always chosen together."""
    x = np.array([[t % 2, t % 2, t // 2 % 2] for t in range(rounds)])
    y = 1.0 + x + 0.1 * np.sin(np.arange(rounds * 3)).reshape(-1, 3)
    return {"week": range(rounds)} | {f"law_{j}": x[:, j] for j in range(3)} | {f"sales_{j}": y[:, j] for j in range(3)}


@pytest.mark.parametrize(
    ("table_of", "codes"),
    [(shares, {"constant-sum"}), (units, {"pooled-effect"}), (together, {"always-together"})],
)
def test_decisions_and_evaluations_repeat_the_same_findings_of_the_table(table_of, codes):
    decision = sp.next_decision(table_of(), budget=1)
    evaluation = sp.evaluate(table_of(), budget=1, always=[[decision.history.arms[0]]], draws=40)
    decisive = decision.assessment.decisive(sees_rewards=False)
    assert codes <= {finding.code for finding in decisive}
    for finding in decisive:
        for said in (decision, evaluation):
            assert finding.sentence in said.warnings if finding.warning else finding.sentence.rstrip(".") in said.notes


# --- Estimates by propensities: those of obp, hand-computed cases, unbiasedness by enumeration, and refusals --------


def ours(action, reward, propensity, target, model):
    here = np.arange(len(action))
    found = weighed(
        reward,
        propensity,
        target[here, action],
        model=(target * model).sum(axis=1),
        predicted=model[here, action],
    )
    assert found.dr is not None
    return {"ips": found.ips.value, "snips": found.snips.value, "dr": found.dr.value}


def test_the_estimates_are_those_of_obp_and_of_the_definitions():
    problem = obp_problem()
    found, reference = ours(*problem), estimates(*problem)
    assert reference == pytest.approx(OBP, rel=1e-12)
    for name, value in found.items():
        assert value == pytest.approx(OBP[name], rel=1e-12)


def test_a_case_by_hand():
    found = weighed([3.0, 1.0, 2.0], [0.5, 0.25, 0.5], [1, 1, 0], model=[2.0, 2.0, 2.0], predicted=[2.0, 2.0, 1.0])
    assert found.dr is not None
    assert found.ips.value == pytest.approx((6 + 4 + 0) / 3)
    assert found.snips.value == pytest.approx(10 / 6)
    assert found.dr.value == pytest.approx((4 - 2 + 2) / 3)
    assert found.effective == pytest.approx(36 / 20)
    assert found.matching == 2
    assert not found.enough


def test_ips_and_dr_are_unbiased_over_all_logs_that_can_happen():
    """Two rounds, three sets: every log, weighted by its probability, gives the target's payoff, whatever the model."""
    logging, target = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.0, 0.9])
    payoff, model = np.array([1.0, 5.0, 2.0]), np.array([0.3, -2.0, 7.0])
    expected = np.zeros(2)
    for log in product(range(3), repeat=2):
        chosen = list(log)
        found = weighed(
            payoff[chosen], logging[chosen], target[chosen], model=[target @ model] * 2, predicted=model[chosen]
        )
        assert found.dr is not None
        expected += logging[chosen].prod() * np.array([found.ips.value, found.dr.value])
    assert expected == pytest.approx([target @ payoff] * 2)


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.2, np.nan])
def test_numbers_that_are_no_propensities_are_refused(wrong):
    with pytest.raises(ValueError, match=r"propensity = .*must be 2 probabilities above 0 and at most 1"):
        weighed([1.0, 2.0], [0.5, wrong], [1, 0])


def test_without_any_matching_round_there_is_no_estimate():
    found = weighed([1.0, 2.0], [0.5, 0.5], [0, 0])
    assert (found.matching, found.effective, found.enough) == (0, 0.0, False)
    assert np.isnan(found.snips.value)


# --- The posterior of paths equals that of the joint normal distribution of all stretches ---------------------------


def example(n=2, stretches=4):
    g = np.random.default_rng(3)
    roots = g.standard_normal((stretches, n, n))
    matrix = roots @ np.swapaxes(roots, -1, -2)
    matrix[1] = 0.0  # nothing was observed there
    vector = g.standard_normal((stretches, n)) * (np.arange(stretches) != 1)[:, None]
    return Evidence(matrix, vector), Process(np.array(0.7), np.array(0.6))


def joint(evidence, process):
    """Mean and covariance of all stretches, and the log marginal likelihood, by one large normal distribution."""
    stretches, n = evidence.vector.shape
    lag = np.abs(np.subtract.outer(np.arange(stretches), np.arange(stretches)))
    prior = np.kron(process.variance * process.decay**lag, np.eye(n))
    matrix = np.zeros((stretches * n, stretches * n))
    for b in range(stretches):
        matrix[b * n : (b + 1) * n, b * n : (b + 1) * n] = evidence.matrix[b]
    vector = evidence.vector.ravel()
    covariance = np.linalg.inv(np.linalg.inv(prior) + matrix)
    size = np.linalg.slogdet(np.eye(len(prior)) + prior @ matrix)[1]
    return covariance @ vector, covariance, 0.5 * (vector @ covariance @ vector - size)


def test_the_last_stretch_and_the_likelihood_are_exact():
    evidence, process = example()
    mean, covariance, likelihood = joint(evidence, process)
    found = filtered(evidence, process)
    assert found.mean[-1] == pytest.approx(mean[-2:])
    assert found.covariance[-1] == pytest.approx(covariance[-2:, -2:])
    assert float(found.likelihood) == pytest.approx(likelihood)


def test_drawn_paths_have_the_joint_distribution():
    evidence, process = example()
    mean, covariance, _ = joint(evidence, process)
    count = 4000
    many = Evidence(*(np.broadcast_to(values, (count, *values.shape)) for values in evidence))
    each = Process(np.full(count, process.variance), np.full(count, process.decay))
    paths = drawn_paths(filtered(many, each), each, np.random.default_rng(1)).reshape(count, -1)
    distance = np.vecdot(paths - mean, np.linalg.solve(covariance, (paths - mean).T).T)
    assert stats.kstest(distance, stats.chi2(len(mean)).cdf).pvalue > 0.001
    assert paths.mean(axis=0) == pytest.approx(mean, abs=0.06)
