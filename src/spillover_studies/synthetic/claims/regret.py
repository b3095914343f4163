"""Claims on the final regret, and of the theoretical analysis: Theorem 1, the order in the delay, Lemma 1."""

import numpy as np

from spillover.experiments import Results
from spillover.metrics import Interval, mean_interval
from spillover.report.claims import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Variant,
    final_regret,
    format_ci,
    paired_interval,
    sign_verdict,
)
from spillover.rng import Purpose, Rng
from spillover.theory import WorldConstants, counter_lemma, regret_bound, world_constants
from spillover.types import Array
from spillover_studies.synthetic.measures import (
    BLIND,
    DELAYS,
    FRESH,
    ONCE,
    PICTURE,
    PRINTED,
    RIVALS,
    SEM_UCB,
    SEM_UCB_TUNED,
    STEEPER,
    TEXTS,
    TUNED,
    TUNINGS,
    at_every_delay,
    best_of_all,
    by_delay,
    fresh_worlds,
    joint,
    listed,
)

LEARNING_RIVALS = (SEM_UCB, *BLIND)


def differences(results: Results, delay: str, ours: str, world: str = FRESH) -> dict[str, Interval]:
    """Final regret of each rival minus ours, by label."""
    own = results.record(world, delay, ours)
    others = [results.record(world, delay, rival) for rival in RIVALS]
    return {other.label: paired_interval(other, own) for other in others}


def all_beaten(results: Results, ours: str, world: str) -> str:
    """Whether all rivals have more regret at all delays."""
    return at_every_delay(lambda d: differences(results, d, ours, world).values())


def closest(found: dict[str, Interval]) -> str:
    return min(found, key=lambda label: float(found[label].mean))


def outperforms(results: Results) -> Claim:
    """NDC-SEM against every rival, in three tunings, and with SEM-UCB tuned too."""
    wins = [str(best_of_all(results, delay, TUNED, RIVALS).sum()) for delay in DELAYS]
    variants = [tuning_variant(results, tuning, delay) for tuning in TUNINGS for delay in DELAYS]
    variants += [both_tuned(results, delay) for delay in DELAYS]
    here, verdict = in_one_world(results, PRINTED), all_beaten(results, PRINTED, PICTURE)
    variants.append(TEXTS.variant("given", one=verdict, conditions=TUNINGS[PRINTED], finding=here))
    return TEXTS.claim(
        "outperforms",
        all_beaten(results, TUNED, FRESH),
        variants,
        all_beaten(results, TUNED, PICTURE),
        closest=by_delay(lambda d: closest_text(differences(results, d, TUNED))),
        policies=len(RIVALS) + 1,
        wins=listed(wins),
        worlds=len(results.record("fresh", DELAYS[0], TUNED).replications),
        in_one_world=in_one_world(results, TUNED),
    )


def in_one_world(results: Results, ours: str) -> str:
    """The closest rival in the world of the figure, where replications differ in the rewards only."""
    runs = len(results.record(PICTURE, DELAYS[0], ours).replications)
    rival = by_delay(lambda d: closest_text(differences(results, d, ours, PICTURE)))
    return f"In one world, mean of {runs} runs: {rival}"


def closest_text(found: dict[str, Interval]) -> str:
    label = closest(found)
    return f"{label} minus NDC-SEM {format_ci(found[label])}"


def tuning_variant(results: Results, tuning: str, delay: str) -> Variant:
    found = differences(results, delay, tuning)
    wins = best_of_all(results, delay, tuning, RIVALS)
    return TEXTS.variant(
        "tuning",
        sign_verdict(*found.values()),
        delay=delay,
        tuning=TUNINGS[tuning],
        own=mean_interval(final_regret(results.record("fresh", delay, tuning))),
        closest=closest_text(found),
        beaten=sum(float(d.low) > 0 for d in found.values()),
        rivals=len(found),
        wins=wins.sum(),
        worlds=len(wins),
    )


def both_tuned(results: Results, delay: str) -> Variant:
    """SEM-UCB with as many cells on the same tuning worlds."""
    found = paired_interval(*(results.record("fresh", delay, name) for name in (SEM_UCB_TUNED, TUNED)))
    return TEXTS.variant("both_tuned", sign_verdict(found), delay=delay, found=found)


def delays_degrade(results: Results) -> Claim:
    """The regret of every policy that learns, at the longest delay minus that at the shortest one."""
    short, long = DELAYS[0], DELAYS[-1]

    def costs(world: str) -> dict[str, Interval]:
        pairs = [
            [results.record(world, delay, name) for delay in (long, short)]
            for name in (TUNED, PRINTED, *LEARNING_RIVALS)
        ]
        return {late.label: paired_interval(late, soon) for late, soon in pairs}

    found, here = costs(FRESH), costs(PICTURE)
    least = closest(here)
    return TEXTS.claim(
        "delays_degrade",
        sign_verdict(*found.values()),
        one=sign_verdict(*here.values()),
        long=long,
        short=short,
        costs="; ".join(f"{label} {format_ci(difference)}" for label, difference in found.items()),
        least=here[least],
        policy=least,
    )


def base_arms(results: Results) -> Claim:
    sets = results.record("fresh", "50", "super-arm-ucb")
    ours, theirs = (paired_interval(sets, results.record("fresh", "50", name)) for name in (TUNED, SEM_UCB))
    return TEXTS.claim("base_arms", sign_verdict(ours), difference=ours, against=theirs)


INSIDE = "ndc-sem-theorem"  # the policy with a xi for which the theorem says something


def study_constants(results: Results) -> list[WorldConstants]:
    """The constants of Theorem 1 in every fresh world of the study."""
    count = len(results.record("fresh", "50", INSIDE).replications)
    rng = Rng(results.experiment.seed, np.arange(count))
    worlds = fresh_worlds(results).draw(rng.at(Purpose.WORLD), (count,))
    return [world_constants(worlds, k) for k in range(count)]


def theorem(results: Results) -> Claim:
    """The bound beside the largest possible regret, and beside the regret measured in its domain."""
    constants = study_constants(results)
    policy = results.experiment.policies[INSIDE].policy("50")
    given = {"discount": float(policy.discount), "exploration": float(policy.exploration)}
    bounds = [regret_bound(c, **given, delay=results.experiment.delays["50"]) for c in constants]
    factors = np.array([b.printed / b.trivial for b in bounds])
    limit = 1 / (2 * (constants[0].budget + 1))
    printed = results.experiment.policies[PRINTED]
    outside = ", ".join(f"{float(printed.policy(d).exploration):g}" for d in ("50", "200", "400"))
    regret = by_delay(lambda d: f"{final_regret(results.record('fresh', d, INSIDE)).mean():,.0f}")
    exceeded = bool((final_regret(results.record("fresh", "50", INSIDE)) > [b.printed for b in bounds]).any())
    vacuous = bool((factors >= 1).all())
    return TEXTS.claim(
        "theorem",
        FAILS if exceeded else OPEN if vacuous else HOLDS,
        outside=outside,
        limit=limit,
        exploration=given["exploration"],
        low=factors.min(),
        high=factors.max(),
        worlds=len(factors),
        regret=regret,
    )


def order_of_delay(results: Results) -> Claim:
    """Constant delays: growth no faster than linear; random delays: no more regret than a constant delay D_max."""

    def final(delay: str, name: str = ONCE) -> Array:
        return final_regret(results.record("fresh", delay, name))

    tops = ("100", "200", "400")
    spared = {top: mean_interval(final(top) - final(f"uniform {top}")) for top in tops}
    table = ", ".join(f"{d}: {final(d).mean():,.0f}" for d in ("0", "25", "50", "100", "200", "300", "400"))
    random = "; ".join(
        f"up to {top}: {final(f'uniform {top}').mean():,.0f}, which is {format_ci(spared[top])} less than at the "
        f"constant delay {top}"
        for top in tops
    )
    steeper = slope_ratio(final("50"), final("200"), final("400"))
    growth = HOLDS if float(steeper.high) < STEEPER else FAILS if float(steeper.low) > STEEPER else OPEN
    below_mean = mean_interval(final("200") - final("uniform 400"))
    random_only = sign_verdict(*spared.values())
    return TEXTS.claim(
        "order_of_delay",
        joint(random_only, growth),
        (
            TEXTS.variant("random_delays", random_only),
            TEXTS.variant("constant_delays", growth, table=table, linear=steeper),
        ),
        random=random,
        below_mean=below_mean,
    )


def slope_ratio(short: Array, middle: Array, long: Array) -> Interval:
    """The slope from D = 200 to 400 over that from 50 to 200, with its interval by the delta method."""
    late, early = (long - middle) / 200.0, (middle - short) / 150.0
    ratio = late.mean() / early.mean()
    _, low, high = mean_interval((late - ratio * early) / early.mean())
    return Interval(np.asarray(ratio), ratio + low, ratio + high)


def lemma(results: Results) -> Claim:
    """A counterexample of nine rounds; the case that the theorem uses has a proof in docs/theory.md."""
    plays = np.isin(np.arange(1, 10), [7, 8, 9])[:, None]
    found = counter_lemma(plays, np.ones(9), discount=0.99, level=1, delay=1, window=9)
    left = int(found.left.item())
    verdict = FAILS if left > found.printed else HOLDS
    return TEXTS.claim("lemma", verdict, [TEXTS.variant("lemma", HOLDS)], left=left, right=found.printed)
