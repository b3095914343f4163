"""The contract of a delay."""

from typing import Any

import numpy as np

from spillover.contracts import Delay
from spillover.rng import Purpose, Rng
from spillover.testing.shared import demand, demand_equal, rows_of, run_checks


def check_delay(delay: Delay, *, seed: int = 0, rounds: int = 20, replications: int = 6) -> None:
    """Check that a delay keeps the contract of `spillover.contracts.Delay`, in the given rounds and replications."""
    run_checks(delay, DELAY_CHECKS, seed, rounds, replications)


def drawn(delay: Any, t: int, seed: int, replication: Any) -> Any:
    """What these replications' streams give in round t, of whatever type."""
    return delay.draw(t, Rng(seed, replication).at(Purpose.DELAY, t), np.shape(replication))


def check_delay_values(delay: Any, seed: int, rounds: int, replications: int) -> None:
    """Delays are whole numbers >= 0 or NEVER, as int64 in the shape of the batch."""
    for batch in ((), (replications,), (2, replications // 2)):
        for t in range(1, rounds + 1):
            found, where = drawn(delay, t, seed, rows_of(batch)), f"draw({t}) with batch {batch} gave"
            array = isinstance(found, np.ndarray | np.generic) and found.dtype == np.int64
            kind = getattr(found, "dtype", type(found).__name__)
            demand(array, f"{where} {kind}", "return an array of int64: .astype(np.int64); NEVER for what is lost")
            demand(found.shape == batch, f"{where} shape {found.shape}", "return one delay for each learner")
            least = int(found.min(initial=0))
            demand(least >= 0, f"{where} {least}", "return delays >= 0: 0 arrives at the end of its own round")


def check_delay_rows(delay: Any, seed: int, rounds: int, replications: int) -> None:
    """A learner's delays are the same alone, in a batch, in another order of rounds, and the second time."""
    remedy = "draw from the given rng only, one number a learner, and keep no memory"
    batch = (replications,)
    whole = {t: np.array(drawn(delay, t, seed, rows_of(batch))) for t in range(1, rounds + 1)}
    for t in reversed(whole):
        again = {"delay": np.array(drawn(delay, t, seed, rows_of(batch)))}
        demand_equal(again, {"delay": whole[t]}, f"a second draw of round {t} differs from the first", remedy)
        for k in range(replications):
            alone, row = np.array(drawn(delay, t, seed, k)), np.asarray(whole[t][k])
            broken = f"in round {t} replication {k} alone differs from its row in a batch"
            demand_equal({"delay": alone}, {"delay": row}, broken, remedy)


DELAY_CHECKS = (check_delay_values, check_delay_rows)
