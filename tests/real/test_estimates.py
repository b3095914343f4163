"""The analyst's estimators against exact arithmetic and simulated data."""

import numpy as np
import pandas as pd
import pytest

from tests.real.scripts import module

estimates = module("estimates")


def drawn(rounds=400, seed=0):
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"a": rng.integers(0, 2, rounds), "b": rng.normal(size=rounds)})
    return x, pd.Series(3 + 2 * x["a"] - x["b"] + rng.normal(size=rounds))


def test_one_yes_or_no_regressor_gives_the_difference_of_means() -> None:
    x, y = drawn()
    found = estimates.regression(y, x[["a"]], estimates.newey_west(0))["a"]
    assert found.value == pytest.approx(estimates.difference_of_means(y, x["a"]), abs=1e-12)


def test_intervals_cover_the_truth_in_95_percent_of_samples() -> None:
    covered = []
    for seed in range(400):
        x, y = drawn(rounds=100, seed=seed)
        found = estimates.regression(y, x, estimates.newey_west(0))["a"]
        covered.append(found.low < 2 < found.high)
    assert 0.92 <= np.mean(covered) <= 0.98


def test_groups_of_one_and_no_lags_are_the_same_robust_errors() -> None:
    x, y = drawn()
    alone = estimates.regression(y, x, estimates.clustered(pd.Series(range(len(y)))))
    assert alone == estimates.regression(y, x, estimates.newey_west(0))


def test_repeated_rows_in_one_group_add_no_information() -> None:
    x, y = drawn()
    once = estimates.regression(y, x, estimates.clustered(pd.Series(range(len(y)))))["a"]
    four = [pd.concat([part] * 4, ignore_index=True) for part in (x, y, pd.Series(range(len(y))))]
    repeated = estimates.regression(four[1], four[0], estimates.clustered(four[2]))["a"]
    assert repeated.value == pytest.approx(once.value, abs=1e-10)
    assert repeated.high - repeated.low == pytest.approx(once.high - once.low, rel=0.01)


def test_columns_that_others_explain_are_refused() -> None:
    x, y = drawn()
    with pytest.raises(ValueError, match="columns that others explain exactly"):
        estimates.regression(y, x.assign(c=x["a"] * 2), estimates.newey_west(0))


def test_a_missing_package_ends_a_script_with_what_to_install() -> None:
    tables = module("public_tables")
    tables.INSTALL["no-such-package"] = "pip install something"
    with pytest.raises(SystemExit, match="no-such-package, which is not installed: pip install something"):
        tables.installed("no-such-package", "file.csv")
