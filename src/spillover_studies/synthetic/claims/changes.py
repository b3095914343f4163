"""Claims on what happens at and after changes of the means."""

import numpy as np

from spillover.experiments import Results
from spillover.metrics import Interval, mean_interval
from spillover.report.claims import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Variant,
    format_ci,
    paired_interval,
    sign_verdict,
)
from spillover.types import Array, BoolArray
from spillover_studies.synthetic.measures import (
    BLIND,
    CLOSE,
    DELAYS,
    EXACT,
    FRESH,
    ORACLE,
    PICTURE,
    PRINTED,
    SEM_UCB,
    SEM_UCB_TUNED,
    SHARE,
    TEXTS,
    TUNED,
    TUNINGS,
    Slopes,
    at_every_delay,
    by_delay,
    interval_by_delay,
    joint,
    recovery,
)

LEARNING = (SEM_UCB, *BLIND)  # the random policy has nothing to lose at a change
HALFWAY = 0.7  # between the random policy's ratio, 0.4, and the oracle's


def waits(results: Results, delay: str, name: str, share: float = SHARE, world: str = FRESH) -> Array:
    """Mean rounds until recovered, (replications,)."""
    record, random = (results.record(world, delay, policy) for policy in (name, "random"))
    return np.asarray(recovery(record, random, share)[0].mean(axis=-1))


def faster(results: Results, delay: str, ours: str, share: float = SHARE, world: str = FRESH) -> dict[str, Interval]:
    """Rounds that each rival takes longer, by label."""
    own = waits(results, delay, ours, share, world)
    return {
        results.record(world, delay, rival).label: mean_interval(waits(results, delay, rival, share, world) - own)
        for rival in LEARNING
    }


def complies_faster(results: Results) -> Claim:
    """Rounds from a change until the regret a round is low again."""

    def finding(ours: str, delay: str, share: float = SHARE, world: str = FRESH) -> str:
        found = faster(results, delay, ours, share, world)
        label = min(found, key=lambda name: float(found[name].mean))
        rounds = waits(results, delay, ours, share, world).mean()
        return f"{rounds:,.0f} rounds; {label} {format_ci(found[label])} more"

    def verdict(ours: str, share: float = SHARE, world: str = FRESH) -> str:
        return at_every_delay(lambda d: faster(results, d, ours, share, world).values())

    def other_bar(share: float) -> Variant:
        text = by_delay(lambda d: finding(TUNED, d, share))
        return TEXTS.variant("other_bar", verdict(TUNED, share), bar=share, finding=text)

    printed = by_delay(lambda d: finding(PRINTED, d))
    variants = [TEXTS.variant("given", verdict(PRINTED), conditions=TUNINGS[PRINTED], finding=printed)]
    return TEXTS.claim(
        "complies_faster",
        verdict(TUNED),
        (*variants, other_bar(0.2), other_bar(0.5)),
        verdict(TUNED, world=PICTURE),
        fresh=by_delay(lambda d: finding(TUNED, d)),
        picture=by_delay(lambda d: finding(TUNED, d, world=PICTURE)),
    )


def smoother(results: Results) -> Claim:
    """Compare slopes of the curve: the rise at a change, and the slope after it."""

    def slopes(delay: str, name: str, world: str = FRESH) -> Slopes:
        return Slopes(results.record(world, delay, name), blind=results.experiment.delays[delay].constant or 0)

    def jumps(delay: str, ours: str = TUNED, world: str = FRESH) -> dict[str, Interval]:
        own = slopes(delay, ours, world).jump
        return {rival: mean_interval(slopes(delay, rival, world).jump - own) for rival in LEARNING}

    def after(delay: str, world: str = FRESH) -> dict[str, Interval]:
        own = slopes(delay, TUNED, world).after
        return {rival: mean_interval(slopes(delay, rival, world).after - own) for rival in LEARNING}

    def bends_less(ours: str = TUNED, world: str = FRESH) -> str:
        return at_every_delay(lambda d: jumps(d, ours, world).values())

    def is_flatter(world: str = FRESH) -> str:
        return at_every_delay(lambda d: after(d, world).values())

    def finding(delay: str) -> str:
        pairs = [(results.record("fresh", delay, name).label, slopes(delay, name)) for name in (TUNED, *LEARNING)]
        return ", ".join(f"{label} {s.before.mean():.2f} → {s.after.mean():.2f}" for label, s in pairs)

    def least(found: dict[str, Interval]) -> str:
        rival = min(found, key=lambda name: float(found[name].mean))
        return f"{results.experiment.policies[rival].label} {format_ci(found[rival], 2)}"

    def at(delay: str) -> Variant:
        found = jumps(delay)
        gaps = "; ".join(
            f"{results.record('fresh', delay, rival).label} {format_ci(d, 2)}" for rival, d in found.items()
        )
        return TEXTS.variant("slopes", sign_verdict(*found.values()), delay=delay, finding=finding(delay), gaps=gaps)

    discount = {
        delay: mean_interval(slopes(delay, "no-discount").after - slopes(delay, TUNED).after) for delay in DELAYS
    }
    steep = by_delay(lambda d: f"SEM-UCB minus NDC-SEM {format_ci(after(d)[SEM_UCB], 2)}")
    measures = (
        TEXTS.variant("rises", bends_less(), bends_less(world=PICTURE)),
        TEXTS.variant("steep", is_flatter(), is_flatter(PICTURE), finding=steep),
    )
    printed = by_delay(lambda d: least(jumps(d, PRINTED)))
    cause = interval_by_delay(discount.__getitem__, 2)
    random = Slopes(results.record("fresh", "50", "random"))
    return TEXTS.measured_claim(
        "smoother",
        measures,
        (
            *(at(delay) for delay in DELAYS),
            TEXTS.variant("given", bends_less(PRINTED), conditions=TUNINGS[PRINTED], finding=printed),
            TEXTS.variant("discount", sign_verdict(*discount.values()), finding=cause),
        ),
        least=by_delay(lambda d: least(jumps(d))),
        before=random.before.mean(),
        after=random.after.mean(),
    )


def closely_follows(results: Results) -> Claim:
    """The optimality ratio beside the delayed oracle's: closeness, not only a difference to SEM-UCB."""

    def ratios(delay: str, name: str, world: str = FRESH) -> Array:
        return results.record(world, delay, name).optimality_ratio

    def finding(ours: str, delay: str, world: str = FRESH) -> str:
        own, oracle = (ratios(delay, name, world).mean(axis=0) for name in (ours, ORACLE))
        return ", ".join(f"{a:.0%} of {b:.0%}" for a, b in zip(own, oracle, strict=True))

    def close(ours: str, world: str = FRESH) -> str:
        gaps = (mean_interval(ratios(d, ours, world) - CLOSE * ratios(d, ORACLE, world)) for d in DELAYS)
        return joint(*(lowest_verdict(gap) for gap in gaps))

    printed = by_delay(lambda d: finding(PRINTED, d))
    variants = [TEXTS.variant("given", close(PRINTED), conditions=TUNINGS[PRINTED], finding=printed)]
    for delay in DELAYS:
        least = mean_interval(ratios(delay, TUNED) - HALFWAY)
        k = int(np.argmin(least.mean))
        lowest = Interval(*(HALFWAY + np.asarray(v)[k] for v in least))
        variants.append(TEXTS.variant("lower_bar", lowest_verdict(least), delay=delay, lowest=lowest))
    return TEXTS.claim(
        "closely_follows",
        close(TUNED),
        variants,
        close(TUNED, PICTURE),
        fresh=by_delay(lambda d: finding(TUNED, d)),
        picture=by_delay(lambda d: finding(TUNED, d, PICTURE)),
    )


def lowest_verdict(gaps: Interval) -> str:
    """Holds if all intervals are above 0, fails if one is below 0, else not decided; (periods,) each."""
    if bool((gaps.low > 0).all()):
        return HOLDS
    return FAILS if bool((gaps.high < 0).any()) else OPEN


def sem_ucb_cannot_adapt(results: Results) -> Claim:
    """Changes from which SEM-UCB does not recover in time, and its optimality ratio after changes."""

    def missed(delay: str, name: str, world: str) -> Array:
        record, random = (results.record(world, delay, policy) for policy in (name, "random"))
        return np.asarray(1.0 - recovery(record, random)[1].mean(axis=-1))

    def more(delay: str, world: str) -> Interval:
        return mean_interval(missed(delay, SEM_UCB, world) - missed(delay, TUNED, world))

    def finding(delay: str, world: str) -> str:
        theirs, own = (missed(delay, name, world).mean() for name in (SEM_UCB, TUNED))
        return f"{theirs:.0%} against {own:.0%}, difference {format_ci(more(delay, world), 2)}"

    def gain(delay: str, ours: str) -> Interval:
        ratios = [results.record("fresh", delay, name).optimality_ratio for name in (ours, SEM_UCB)]
        return mean_interval((ratios[0] - ratios[1])[:, 1:].mean(axis=-1))

    def ratio(ours: str) -> Variant:
        verdict, text = at_every_delay(lambda d: [gain(d, ours)]), interval_by_delay(lambda d: gain(d, ours), 3)
        return TEXTS.variant("ratio", verdict, tuning=TUNINGS[ours], finding=text)

    def known(delay: str) -> BoolArray:
        return results.record("fresh", delay, SEM_UCB).graph_error[:, -1] < EXACT

    def short_of_close(delay: str) -> Interval:
        """In the worlds in which SEM-UCB has learned the graph."""
        records = (results.record("fresh", delay, name) for name in (SEM_UCB, ORACLE))
        theirs, oracle = (record.optimality_ratio[known(delay), 1:].mean(axis=-1) for record in records)
        return mean_interval(CLOSE * oracle - theirs)

    def verdict(world: str) -> str:
        return at_every_delay(lambda d: [more(d, world)])

    learned = by_delay(lambda d: f"{known(d).sum()} of {len(known(d))}, {format_ci(short_of_close(d), 3)}")
    fails = TEXTS.variant("fails_to_learn", at_every_delay(lambda d: [short_of_close(d)]), finding=learned)
    fresh, picture = (by_delay(lambda d, world=world: finding(d, world)) for world in (FRESH, PICTURE))  # type: ignore[misc]
    variants = (fails, ratio(TUNED), ratio(PRINTED))
    return TEXTS.claim("sem_ucb_cannot_adapt", verdict(FRESH), variants, verdict(PICTURE), fresh=fresh, picture=picture)


def discount_alleviates(results: Results) -> Claim:
    """The discount alone: NDC-SEM against the same policy without it, whose exploration was tuned as well."""

    def more(name: str, world: str) -> dict[str, Interval]:
        pairs = {d: [results.record(world, d, policy) for policy in (name, TUNED)] for d in DELAYS}
        return {delay: paired_interval(*pair) for delay, pair in pairs.items()}

    found, here, same = more(SEM_UCB_TUNED, FRESH), more(SEM_UCB_TUNED, PICTURE), more("no-discount", FRESH)
    fresh, picture, without = (interval_by_delay(each.__getitem__) for each in (found, here, same))
    variant = TEXTS.variant("no_discount", sign_verdict(*same.values()), finding=without)
    verdict, one = sign_verdict(*found.values()), sign_verdict(*here.values())
    return TEXTS.claim("discount_alleviates", verdict, [variant], one, fresh=fresh, picture=picture)
