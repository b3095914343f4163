"""Claims on made-up results: each holds where it must, and fails where it must."""

import numpy as np
import pytest

from spillover.experiments import open_results
from spillover.report.claims import DEPENDS, FAILS, HOLDS, OPEN
from spillover_studies.synthetic.claims import changes, graph, regret
from spillover_studies.synthetic.measures import (
    BLIND,
    DELAYS,
    ONCE,
    ORACLE,
    PICTURE,
    PRINTED,
    RIVALS,
    SEM_UCB,
    SEM_UCB_TUNED,
    TUNED,
)
from spillover_studies.synthetic.numbers import standing, tunings

WINDOWS = 8  # of 50 rounds; the means change at 100, 200 and 300


@pytest.fixture
def invented(results):
    """Results whose records can be replaced; what is not replaced is that of the small study."""

    class Invented:
        def __init__(self):
            self.results = open_results(results.store.folder)

        def slopes(self, delay, name, *slopes, world="fresh"):
            """Regret a round in each window, the same in all worlds but for a little noise."""
            record = self.results.record(world, delay, name)
            rows = np.arange(len(record.regret))[:, None]
            values = np.array([slopes]) * (1 + 1e-3 * rows)
            self.put(record, regret=np.cumsum(50.0 * values, axis=-1), rounds=50 * np.arange(1, WINDOWS + 1))

        def final(self, delay, name, value, world="fresh"):
            """A final regret, with a straight curve to it."""
            self.slopes(delay, name, *[value / 400] * WINDOWS, world=world)

        def put(self, record, **values):
            self.results.loaded[record.world, record.delay, record.policy] = record._replace(**values)

        def ratio(self, delay, name, value):
            record = self.results.record("fresh", delay, name)
            rows = np.arange(len(record.regret))[:, None]
            self.put(record, optimality_ratio=np.full_like(record.optimality_ratio, value) * (1 + 1e-3 * rows))

    return Invented()


def all_regrets(invented, value_of):
    """value_of: of the policy's name and the delay."""
    for delay in DELAYS:
        for name in (TUNED, PRINTED, ONCE, SEM_UCB_TUNED, *RIVALS):
            invented.final(delay, name, value_of(name, delay))
        for name in (TUNED, PRINTED, *RIVALS):
            invented.final(delay, name, value_of(name, delay), world=PICTURE)


def test_outperforms_needs_every_rival_at_every_delay(invented):
    all_regrets(invented, lambda name, delay: 100.0 if "ndc" in name else 300.0)
    claim = regret.outperforms(invented.results)
    assert claim.verdict == claim.one == HOLDS
    assert {variant.verdict or variant.one for variant in claim.variants} == {HOLDS}
    assert "SEM-UCB minus NDC-SEM 200" in claim.finding
    invented.final("400", "cts", 50.0)
    claim = regret.outperforms(invented.results)
    assert (claim.verdict, claim.one) == (FAILS, HOLDS)
    assert standing(invented.results, TUNED) == (
        "has the least regret at D = 50 and 200 (200 and 200 less than SEM-UCB, the next), and has more regret than "
        "CTS at D = 400"
    )


def test_a_rival_that_is_tuned_as_well_is_named_where_it_is_not_beaten(invented):
    all_regrets(invented, lambda name, delay: 100.0 if "ndc" in name else 300.0)
    assert "tuned with the same effort" not in tunings(invented.results)[0]
    invented.final("400", SEM_UCB_TUNED, 50.0)
    assert tunings(invented.results)[0].endswith(
        ". Over SEM-UCB tuned with the same effort it has no clear lead at D = 400."
    )


def test_one_world_is_judged_by_itself(invented):
    all_regrets(invented, lambda name, delay: 100.0 if "ndc" in name else 300.0)
    invented.final("200", "cucb", 50.0, world=PICTURE)
    claim = regret.outperforms(invented.results)
    assert (claim.verdict, claim.one) == (HOLDS, FAILS)
    assert "D = 200: CUCB minus NDC-SEM −50" in claim.finding


def test_delays_degrade_if_every_policy_that_learns_loses_by_them(invented):
    all_regrets(invented, lambda name, delay: float(delay))
    assert regret.delays_degrade(invented.results).verdict == HOLDS
    assert regret.delays_degrade(invented.results).finding.count(" 350 [") == 7
    invented.final("400", "ftrl", 20.0)
    assert regret.delays_degrade(invented.results).verdict == FAILS


def test_a_rival_that_cannot_be_told_apart_is_named(invented):
    all_regrets(invented, lambda name, delay: 100.0 if "ndc" in name else 300.0)
    record = invented.results.record("fresh", "200", SEM_UCB)
    invented.put(record, regret=record.regret - np.array([[-900.0], [300.0], [1100.0]]) * record.regret / 300.0)
    assert regret.outperforms(invented.results).verdict == OPEN
    assert "cannot be told apart from SEM-UCB at D = 200" in standing(invented.results, TUNED)


def test_base_arms(invented):
    invented.final("50", TUNED, 100.0)
    invented.final("50", "super-arm-ucb", 200.0)
    assert regret.base_arms(invented.results).verdict == HOLDS
    invented.final("50", "super-arm-ucb", 50.0)
    assert regret.base_arms(invented.results).verdict == FAILS


def around_changes(invented, ours, theirs):
    """Slopes of NDC-SEM and of its rivals: a window before and one after each change are given."""
    for delay in DELAYS:
        invented.slopes(delay, "random", *[2.0] * WINDOWS)
        for name in (TUNED, PRINTED):
            invented.slopes(delay, name, 0.1, *ours * 3, 0.1)
        for name in (SEM_UCB, *BLIND, "no-discount"):
            invented.slopes(delay, name, 0.1, *theirs * 3, 0.1)


def test_complying_faster_is_a_matter_of_rounds(invented):
    around_changes(invented, ours=(0.1, 0.1), theirs=(0.1, 1.5))
    claim = changes.complies_faster(invented.results)
    assert claim.verdict == HOLDS
    assert "0 rounds; SEM-UCB 50 [50, 50] more" in claim.finding
    around_changes(invented, ours=(0.1, 1.5), theirs=(0.1, 0.1))
    assert changes.complies_faster(invented.results).verdict == FAILS


def test_smoother_is_a_matter_of_slopes(invented):
    around_changes(invented, ours=(0.1, 0.3), theirs=(0.1, 1.5))
    assert changes.smoother(invented.results).verdict == HOLDS
    around_changes(invented, ours=(0.1, 1.5), theirs=(0.1, 0.3))
    claim = changes.smoother(invented.results)
    assert claim.verdict == FAILS
    assert "2.00 → 2.00" in claim.bar  # the random policy is the smoothest of all, and no model


def test_a_policy_with_more_regret_can_be_smoother(invented):
    """What the measure does not say: after a change both are as steep, and NDC-SEM is better before."""
    around_changes(invented, ours=(0.1, 1.0), theirs=(0.8, 1.1))
    claim = changes.smoother(invented.results)
    assert claim.verdict == DEPENDS
    assert [v.verdict for v in claim.variants[:2]] == [FAILS, HOLDS]
    assert "no merit by itself" in claim.bar


def test_sem_ucb_cannot_adapt_if_it_misses_more_changes(invented):
    around_changes(invented, ours=(0.1, 0.1), theirs=(1.5, 1.5))
    for delay in DELAYS:
        invented.slopes(delay, SEM_UCB, *[1.5] * WINDOWS)
    claim = changes.sem_ucb_cannot_adapt(invented.results)
    assert claim.verdict == HOLDS
    assert "100% against 0%" in claim.finding
    for delay in DELAYS:
        invented.slopes(delay, TUNED, *[1.5] * WINDOWS)
        invented.slopes(delay, SEM_UCB, *[0.1] * WINDOWS)
    assert changes.sem_ucb_cannot_adapt(invented.results).verdict == FAILS


@pytest.mark.parametrize(("ratio", "verdict"), [(0.9, HOLDS), (0.75, FAILS)])
def test_closely_follows_tests_closeness(invented, ratio, verdict):
    """Being better than SEM-UCB is not enough."""
    for delay in DELAYS:
        invented.ratio(delay, ORACLE, 0.95)
        invented.ratio(delay, SEM_UCB, 0.4)
        for name in (TUNED, PRINTED):
            invented.ratio(delay, name, ratio)
    claim = changes.closely_follows(invented.results)
    assert claim.verdict == verdict
    assert {v.verdict for v in claim.variants if "lower bar" in v.conditions} == {HOLDS}


def test_discount_alleviates(invented):
    for delay in DELAYS:
        invented.final(delay, TUNED, 100.0)
        invented.final(delay, SEM_UCB_TUNED, 200.0)
    assert changes.discount_alleviates(invented.results).verdict == HOLDS
    invented.final("400", SEM_UCB_TUNED, 50.0)
    assert changes.discount_alleviates(invented.results).verdict == FAILS


def test_better_knowledge(invented):
    for delay in DELAYS:
        invented.final(delay, TUNED, 100.0)
        invented.final(delay, "no-graph-tuned", 200.0)
    assert graph.better_knowledge(invented.results).verdict == HOLDS
    invented.final("50", "no-graph-tuned", 50.0)
    assert graph.better_knowledge(invented.results).verdict == FAILS


def test_the_graph_alleviates_the_delay_if_the_delay_costs_less_with_it(invented):
    """Less regret at every delay is not enough: that is another claim."""
    for delay, with_graph, without in zip(DELAYS, (100, 110, 120), (300, 340, 400), strict=True):
        invented.final(delay, TUNED, with_graph)
        invented.final(delay, "no-graph-tuned", without)
    claim = graph.alleviates_delay(invented.results)
    assert claim.verdict == HOLDS
    assert "20 with the graph, 100 without it: 80" in claim.finding
    for delay, with_graph in zip(DELAYS, (100, 200, 250), strict=True):
        invented.final(delay, TUNED, with_graph)
    assert graph.alleviates_delay(invented.results).verdict == FAILS


@pytest.mark.parametrize(("errors", "verdict"), [((0, 0, 0), HOLDS), ((0.02, 0.02, 0.02), FAILS), ((0, 0, 0.1), FAILS)])
def test_learning_the_structure_is_asked_of_every_world(invented, errors, verdict):
    for delay in DELAYS:
        record = invented.results.record("fresh", delay, TUNED)
        invented.put(record, graph_error=np.repeat(np.array([errors], float).T, len(record.rounds), axis=1))
    assert graph.learns_structure(invented.results).verdict == verdict


def test_learning_late_is_not_hidden(invented):
    """The final error alone does not say when the graph was known."""
    for delay in DELAYS:
        record = invented.results.record("fresh", delay, TUNED)
        late = np.where(record.rounds > 350, 0.0, 0.02)
        invented.put(record, graph_error=np.tile(late, (len(record.regret), 1)))
    claim = graph.learns_structure(invented.results)
    assert claim.verdict == HOLDS
    assert [v.verdict for v in claim.variants] == [FAILS, FAILS, FAILS]


def delays_cost(invented, cost, random):
    for delay in ("0", "25", "50", "100", "200", "300", "400"):
        invented.final(delay, ONCE, cost(float(delay)))
    for top in ("100", "200", "400"):
        invented.final(f"uniform {top}", ONCE, random(float(top)))


def test_the_order_of_the_delay(invented):
    delays_cost(invented, lambda d: 100 + d, lambda top: 100 + 0.6 * top)
    assert regret.order_of_delay(invented.results).verdict == HOLDS
    delays_cost(invented, lambda d: 100 + d, lambda top: 100 + 1.5 * top)
    assert regret.order_of_delay(invented.results).verdict == FAILS  # random delays cost more than D_max
    delays_cost(invented, lambda d: 100 + d**2 / 100, lambda top: 100)
    claim = regret.order_of_delay(invented.results)
    assert claim.verdict == FAILS  # faster than linear
    assert [v.verdict for v in claim.variants] == [HOLDS, FAILS]


def test_theorem_1_cannot_be_contradicted_below_the_largest_regret(invented):
    claim = regret.theorem(invented.results)
    assert claim.verdict == OPEN
    assert "1e-10, 1e-06, 1e-18" in claim.finding
    invented.final("50", regret.INSIDE, 1e30)
    assert regret.theorem(invented.results).verdict == FAILS


def test_lemma_1_has_a_counterexample(results):
    claim = regret.lemma(results)
    assert claim.verdict == FAILS
    assert "the left side is 3, the right side 2.09" in claim.finding


def test_what_the_initialisation_shows(results):
    assert graph.full_rank(results).verdict == HOLDS
    claim = graph.identifiable(results)
    assert claim.verdict == FAILS
    assert claim.variants[-1].verdict == HOLDS  # Beta rewards
    assert "after the first N rounds" in graph.rich_data(results).finding
