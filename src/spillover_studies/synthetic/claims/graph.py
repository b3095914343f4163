"""Claims on the graph: how it is learned, what the initialisation shows of it, what it is good for."""

from dataclasses import replace

import numpy as np

from spillover.environments import SEMWorld
from spillover.experiments import Record, Results
from spillover.formatting import format_value
from spillover.metrics import Interval, graph_mse, mean_interval
from spillover.report.claims import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Variant,
    by_measures,
    final_regret,
    format_ci,
    paired_interval,
)
from spillover.report.claims import sign_verdict as sign
from spillover.report.tables import paired_ratio
from spillover.rng import Purpose, Rng
from spillover.types import Array, BoolArray
from spillover_studies.synthetic.measures import (
    BLIND,
    DELAYS,
    EXACT,
    FRESH,
    ONCE,
    PICTURE,
    SEM_UCB,
    TEXTS,
    TUNED,
    by_delay,
    fresh_worlds,
    interval_by_delay,
    joint,
    study_start,
)


def better_knowledge(results: Results) -> Claim:
    """NDC-SEM without its graph, tuned for itself; and the rivals that learn no graph."""

    def without(world: str) -> dict[str, Interval]:
        return {d: paired_interval(results.record(world, d, "no-graph-tuned"), ours(results, d, world)) for d in DELAYS}

    found, here = without(FRESH), without(PICTURE)
    variants = []
    for delay in DELAYS:
        learned = results.record("fresh", delay, SEM_UCB)
        blind = [results.record("fresh", delay, name) for name in BLIND]
        gaps = [paired_interval(record, learned) for record in blind]
        more = "; ".join(f"{r.label} {format_ci(d)} more" for r, d in zip(blind, gaps, strict=True))
        variants.append(TEXTS.variant("blind", sign(*gaps), delay=delay, gaps=more))
    fresh, picture = (interval_by_delay(each.__getitem__) for each in (found, here))
    verdict, one = sign(*found.values()), sign(*here.values())
    return TEXTS.claim("better_knowledge", verdict, variants, one, fresh=fresh, picture=picture)


def ours(results: Results, delay: str, world: str = FRESH) -> Record:
    return results.record(world, delay, TUNED)


def alleviates_delay(results: Results) -> Claim:
    """Graph x delay: does a longer delay cost less regret with the graph than without it?"""

    def cost(name: str, short: str, long: str, world: str = FRESH) -> Array:
        late, soon = (final_regret(results.record(world, delay, name)) for delay in (long, short))
        return np.asarray(late - soon)

    def saved(pair: tuple[str, str], short: str, long: str, world: str = FRESH) -> Interval:
        return mean_interval(cost(pair[0], short, long, world) - cost(pair[1], short, long, world))

    def finding(pair: tuple[str, str], short: str, long: str) -> str:
        with_graph, without = cost(pair[1], short, long).mean(), cost(pair[0], short, long).mean()
        interaction = format_ci(saved(pair, short, long))
        costs = (format_value(float(value), ",.0f") for value in (with_graph, without))
        return "{} with the graph, {} without it: {} saved".format(*costs, interaction)

    tuned, once = ("no-graph-tuned", TUNED), ("no-graph-once", ONCE)
    main, here = (saved(tuned, "50", "400", world) for world in (FRESH, PICTURE))
    without, with_graph = (
        paired_ratio(results.record("fresh", "400", name), results.record("fresh", "50", name)) for name in tuned
    )
    relative = HOLDS if with_graph.high < without.low else FAILS if with_graph.low > without.high else OPEN
    variants = [TEXTS.variant("cost", sign(saved(tuned, "50", "200")), finding=finding(tuned, "50", "200"))]
    for long in DELAYS:
        verdict = sign(saved(once, "0", long))
        variants.append(TEXTS.variant("cost_once", verdict, long=long, finding=finding(once, "0", long)))
    variants.append(TEXTS.variant("cost_ratio", relative, with_graph=with_graph, without=without))
    fresh = finding(tuned, "50", "400")
    return TEXTS.claim("alleviates_delay", sign(main), variants, sign(here), fresh=fresh, picture=here)


def learns_structure(results: Results) -> Claim:
    """The error of the graph over time, in every world."""

    def at(delay: str, until: int, world: str = FRESH) -> Array:
        record = ours(results, delay, world)
        return np.asarray(record.graph_error[:, np.searchsorted(record.rounds, min(until, record.rounds[-1]))])

    def learned(delay: str, until: int, world: str = FRESH) -> str:
        values = at(delay, until, world)
        count = f"{(values < EXACT).sum()} of {len(values)} {'worlds' if world == FRESH else 'runs'}"
        return f"{count} (mean error {values.mean():.1e})"

    changes, horizon = ours(results, "50").changes, ours(results, "50").horizon
    step = int(ours(results, "50").rounds[0])

    def by_round(end: int) -> Variant:
        until = end // step * step
        learned_by = in_every_world(*(at(delay, until) < EXACT for delay in DELAYS))
        return TEXTS.variant("by_round", learned_by, until=until, finding=by_delay(lambda d: learned(d, until)))

    def verdict(world: str) -> str:
        return in_every_world(*((at(delay, horizon, world) < EXACT) for delay in DELAYS))

    return TEXTS.claim(
        "learns_structure",
        verdict(FRESH),
        [by_round(change - 1) for change in changes],
        verdict(PICTURE),
        fresh=by_delay(lambda d: learned(d, horizon)),
        picture=by_delay(lambda d: learned(d, horizon, PICTURE)),
    )


def in_every_world(*learned: BoolArray) -> str:
    """Holds if so in every world at every delay."""
    return HOLDS if all(bool(values.all()) for values in learned) else FAILS


def convex(results: Results) -> Claim:
    return TEXTS.claim("convex", HOLDS)


def rich_data(results: Results) -> Claim:
    """The error of the graph after N rounds, with the matrix H and with random sets."""
    designed, random = (study_start(results, name) for name in (TUNED, "random-start"))
    gain = mean_interval(random.graph_error - designed.graph_error)
    graphs = drawn_worlds(results).adjacency(1)
    empty = graph_mse(np.zeros_like(graphs), graphs)
    any_data = mean_interval(empty - designed.graph_error)
    regret = {d: paired_interval(results.record("fresh", d, "random-start"), ours(results, d)) for d in DELAYS}
    verdicts = joint(*(sign(d) for d in regret.values()))
    return TEXTS.claim(
        "rich_data",
        by_measures(sign(gain), sign(any_data)),
        (
            TEXTS.variant("random_sets", sign(gain)),
            TEXTS.variant("empty_graph", sign(any_data)),
            TEXTS.variant("regret_of_sets", verdicts, finding=interval_by_delay(regret.__getitem__)),
        ),
        designed=designed.graph_error.mean(),
        random=random.graph_error.mean(),
        gain=gain,
        empty=empty.mean(),
        more=any_data,
    )


def full_rank(results: Results) -> Claim:
    start = study_start(results, TUNED)
    good = start.every_arm_pulled & start.full_rank
    return TEXTS.claim("full_rank", HOLDS if bool(good.all()) else FAILS, good=good.sum(), runs=len(good))


def identifiable(results: Results) -> Claim:
    """Whether the feedback of the first N rounds admits only one graph."""

    def soon(delay: str) -> Array:
        record, late = ours(results, delay), results.experiment.delays[delay].constant
        assert late is not None
        after = np.searchsorted(record.rounds, fresh_worlds(results).n_arms + late + 1)
        return record.graph_error[:, after]

    def exact_after_start(delay: str) -> str:
        return f"{(soon(delay) < EXACT).sum()} of {len(soon(delay))}"

    start = study_start(results, TUNED)
    beta = study_start(results, TUNED, replace(fresh_worlds(results), law="beta"))
    expected = np.prod(drawn_worlds(results).means(1)[:, 1:], axis=-1).mean()
    verdict = in_every_world(*(soon(delay) < EXACT for delay in DELAYS))
    in_beta = {"identified": beta.identified.sum(), "worlds": len(beta.identified)}
    variants = (
        TEXTS.variant("exact_after", verdict, finding=by_delay(exact_after_start)),
        TEXTS.variant("beta", in_every_world(beta.identified), **in_beta),
    )
    known = start.identified
    return TEXTS.claim(
        "identifiable",
        in_every_world(known),
        variants,
        identified=known.sum(),
        worlds=len(known),
        expected=expected,
    )


def drawn_worlds(results: Results) -> SEMWorld:
    """The fresh worlds of the study, as a batch."""
    count = len(ours(results, "50").replications)
    rng = Rng(results.experiment.seed, np.arange(count))
    return fresh_worlds(results).draw(rng.at(Purpose.WORLD), (count,))
