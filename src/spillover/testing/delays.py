"""The contract of a delay."""

from typing import Any

import numpy as np

from spillover.contracts import Delay
from spillover.rng import Purpose, Rng
from spillover.testing.shared import demand, demand_equal, rows_of, run_checks, type_name
from spillover.testing.stretches import check_delay_rounds


def check_delay(delay: Delay, *, seed: int = 0, rounds: int = 20, replications: int = 6) -> None:
    """Check the contract of `spillover.contracts.Delay`, for so many rounds and replications.

    >>> import spillover as sp
    >>> check_delay(sp.UniformDelay(2, 5))  # silence: it keeps the contract
    """
    run_checks(delay, DELAY_CHECKS, seed, rounds, replications)


def drawn(delay: Any, t: int, seed: int, replication: Any) -> Any:
    """The delays of round t in these replications, unchecked, for a round with rewards of all sizes."""
    batch = np.shape(replication)
    x, z = (np.broadcast_to(line, (*batch, 4)) for line in ([True, True, False, True], [1.0, 0.0, 0.0, 0.5]))
    return delay.draw_given(t, x, z, Rng(seed, replication).at(Purpose.DELAY, t), batch)


def check_delay_values(delay: Any, seed: int, rounds: int, replications: int) -> None:
    """Delays are whole numbers >= 0 or NEVER, as int64 in the shape of the batch, with an axis for arms if per_arm."""
    first = drawn(delay, 1, seed, 0)
    arms = np.shape(first)[-1:] if delay.per_arm else ()
    for batch in ((), (replications,), (2, replications // 2)):
        for t in range(1, rounds + 1):
            found, where = drawn(delay, t, seed, rows_of(batch)), f"draw({t}) with batch {batch} gave"
            array = isinstance(found, np.ndarray | np.generic) and found.dtype == np.int64
            remedy = "return an array of int64: .astype(np.int64); NEVER for lost outcomes"
            demand(array, f"{where} {type_name(found)}", remedy)
            remedy = f"return shape {(*batch, *arms)}: a delay for each replication, and each arm if per_arm = True"
            demand(found.shape == (*batch, *arms), f"{where} shape {found.shape}", remedy)
            least = int(found.min(initial=0))
            demand(least >= 0, f"{where} {least}", "return delays >= 0: 0 means at the end of the same round")


def check_delay_rows(delay: Any, seed: int, rounds: int, replications: int) -> None:
    """A replication's delays are the same alone, in a batch, in another order of rounds, and the second time."""
    remedy = "draw from the given rng only, one number for each replication, and keep no memory"
    batch = (replications,)
    whole = {t: np.array(drawn(delay, t, seed, rows_of(batch))) for t in range(1, rounds + 1)}
    for t in reversed(whole):
        again = {"delay": np.array(drawn(delay, t, seed, rows_of(batch)))}
        demand_equal(again, {"delay": whole[t]}, f"a second draw of round {t} differs from the first", remedy)
        for k in range(replications):
            alone, row = np.array(drawn(delay, t, seed, k)), np.asarray(whole[t][k])
            broken = f"in round {t} replication {k} alone differs from its row in a batch"
            demand_equal({"delay": alone}, {"delay": row}, broken, remedy)


DELAY_CHECKS = (check_delay_values, check_delay_rows, check_delay_rounds)
