"""What must not change an answer: a generous range, order, names, units, outcomes that came late; and a baseline."""

import numpy as np
import pytest

import spillover as sp
from spillover.policies import POLICIES
from tests.recommendation.tables import ARMS, TABLES, example, wide


def usable(policy):
    return not (policy.traits.needs_world or policy.traits.knows_graph or policy.traits.randomised)


each_table = pytest.mark.parametrize("name", TABLES)


def decide(name, frame=None, **options):
    table, given = TABLES[name]
    return sp.next_decision(table if frame is None else frame, budget=2, **given | options)


def numbers(found):
    return np.array(
        [[arm.effect, arm.spill_over, arm.total, arm.score] for arm in sorted(found.arms, key=lambda a: a.arm)]
    )


def size_of(frame):
    return float(np.abs(frame.select_dtypes("number").drop(columns=["chosen"], errors="ignore").max().max()))


@each_table
def test_a_generous_range_changes_nothing(name) -> None:
    size = 2 * size_of(TABLES[name][0])  # effects are taken to be no larger than outcomes vary
    found = [decide(name, reward_range=(-factor * size, factor * size)) for factor in (1, 3, 10, 30, 100)]
    for other in found[1:]:
        assert other.choose == found[0].choose
        assert numbers(other) == pytest.approx(numbers(found[0]))
    assert decide(name).choose == found[0].choose


@pytest.mark.parametrize("minimise", [False, True])
@pytest.mark.parametrize("shift", [0.0, 0.3])  # without and with a baseline
@pytest.mark.parametrize("size", [1.0, 0.4])  # rewards up to nearly 1, and smaller ones
def test_stating_the_default_range_is_the_same_as_omitting_it(minimise, shift, size) -> None:
    frame = example(shift=shift)
    frame[["z", "y"]] *= size
    found, stated = (sp.next_decision(frame, budget=2, minimise=minimise, reward_range=r) for r in (None, (0.0, 1.0)))
    assert stated.to_dict() == found.to_dict()


def test_the_range_from_the_data_is_said_in_the_sign_of_the_table() -> None:
    frame = example()
    frame[["z", "y"]] *= 30
    columns = "round=round,arm=arm,chosen=chosen,z=z,outcome=y"
    found = [sp.next_decision(frame, budget=2, minimise=minimise, columns=columns) for minimise in (False, True)]
    (note,) = {note for one in found for note in one.notes if "assumed to lie between" in note}
    assert note.startswith("effects are assumed to lie between about 0 and ")


@each_table
def test_order_of_rows_and_columns_changes_nothing(name) -> None:
    frame = TABLES[name][0]
    turned = frame.sample(frac=1, random_state=1)[frame.columns[::-1]]
    found, again = decide(name), decide(name, turned)
    assert again.choose == found.choose
    assert numbers(again) == pytest.approx(numbers(found), rel=1e-6, abs=1e-9)


@each_table
@pytest.mark.parametrize(("unit", "exact"), [(1024.0, 1e-6), (1000.0, 1e-3)])  # the second is not exact in binary
def test_units_change_nothing_but_the_numbers(name, unit, exact) -> None:
    frame = TABLES[name][0]
    columns = [str(column) for column in frame if column in ("z", "y") or str(column).startswith("sales")]
    scaled = frame.copy()
    scaled[columns] *= unit
    given = {"reward_range": (-1e9, 1e9)} if "z" in columns else {}
    found, again = decide(name, **given), decide(name, scaled, **given)
    assert again.choose == found.choose
    assert numbers(again) / unit == pytest.approx(numbers(found), rel=exact, abs=exact)


USABLE = [name for name, make in POLICIES.items() if usable(make())]
DRAWS = {"discounted-ts", "cts", "random"}  # draws belong to positions, so other names are other draws
by_every_policy = pytest.mark.parametrize("policy", USABLE)


def scores_by(policy, frame, unit=1.0, original=lambda arm: arm):
    """The choice, and the score of every arm, in units of `unit`."""
    overall = (0.0, 10.0 * unit)
    found = sp.next_decision(frame, budget=2, policy=policy, reward_range=(0.0, unit), overall_range=overall)
    scale = unit if POLICIES[policy]().traits.scores_have_units else 1.0
    scores = {original(arm.arm): arm.score / scale for arm in found.arms}
    return {original(arm) for arm in found.choose}, [scores[arm] for arm in sorted(scores)]


@by_every_policy
@pytest.mark.parametrize("unit", [1000.0, 0.001])
def test_a_range_in_other_units_changes_no_decision_of_any_policy(policy, unit) -> None:
    scaled = example()
    scaled[["z", "y"]] *= unit
    found, again = scores_by(policy, example()), scores_by(policy, scaled, unit)
    assert again[0] == found[0]
    assert again[1] == pytest.approx(found[1], rel=1e-5)


@pytest.mark.parametrize("policy", sorted(set(USABLE) - DRAWS))
def test_names_in_another_order_change_no_decision_of_a_policy_that_draws_nothing(policy) -> None:
    frame = example()
    arms = sorted(frame["arm"].unique())
    renamed = {arm: f"{len(arms) - place} {arm}" for place, arm in enumerate(arms)}  # sorted the other way around
    turned = frame.assign(arm=frame["arm"].map(renamed)).sort_values(["round", "arm"])
    found, again = scores_by(policy, frame), scores_by(policy, turned, original=lambda arm: arm.split()[1])
    assert again[0] == found[0]
    assert again[1] == pytest.approx(found[1], rel=1e-5)


def test_names_in_the_same_order_change_nothing() -> None:
    frame = wide(1)
    renamed = frame.rename(columns=lambda name: name.replace("radio", "rundfunk"))
    found, again = (sp.next_decision(table, budget=2) for table in (frame, renamed))
    assert [arm.replace("rundfunk", "radio") for arm in again.choose] == found.choose
    assert again.greedy == tuple(arm.replace("radio", "rundfunk") for arm in found.greedy)


def test_outcomes_that_were_filled_in_late_change_nothing(tmp_path) -> None:
    frame = wide(2)
    half = frame.copy()
    half.loc[half.index % 3 == 0, [f"sales_{arm}" for arm in ARMS]] = np.nan
    path = tmp_path / "t.csv"
    half.to_csv(path, index=False)
    sp.next_decision(path, budget=2)
    frame.to_csv(path, index=False)
    late = sp.next_decision(path, budget=2)
    assert numbers(late) == pytest.approx(numbers(sp.next_decision(frame, budget=2)))


@pytest.mark.parametrize("with_z", [True, False])
def test_a_baseline_is_not_taken_for_spill_over(with_z) -> None:
    plain, shifted = (sp.next_decision(example(shift, with_z), budget=2) for shift in (0.0, 0.3))
    first, second = ({arm.arm: arm.spill_over for arm in found.arms}["video"] for found in (plain, shifted))
    assert second == pytest.approx(first, abs=0.05)
    assert shifted.choose == plain.choose
    (note,) = [note for note in shifted.notes if "Outcomes do not start from 0" in note]
    assert float(note.partition("nothing chosen, ")[2].partition(" ")[0]) == pytest.approx(1.8, abs=0.3)
    assert not any("Outcomes do not start from 0" in note for note in plain.notes)


def test_the_command_prints_what_the_function_returns(tmp_path, monkeypatch) -> None:
    from tests.cli.calls import call

    monkeypatch.chdir(tmp_path)
    wide(1).to_csv("t.csv", index=False)
    assert call("next", "t.csv", "--budget", 2).stdout == f"{sp.next_decision('t.csv', budget=2)}\n"
