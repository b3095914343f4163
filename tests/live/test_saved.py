"""A file of a learner that is damaged, forged or another learner's is refused, with its path and the field."""

import json
import random
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.state import Saved, leaves, save_arrays
from tests.live.learners import LIVE, PROBLEM, content, each_leaf, learner_of, live, problem_for
from tests.sampling import every, few_or_many
from tests.test_state import assert_same

# no state has these, by the kind of the array
IMPOSSIBLE: dict[str, list[Any]] = {"f": [np.nan, np.inf, -np.inf], "i": [-1_000_000, 2**62], "b": []}
# some have these
ODD: dict[str, list[Any]] = {
    "f": [*IMPOSSIBLE["f"], -1.0, -1e6, 1e6, 1e300, 0.0],
    "i": [*IMPOSSIBLE["i"], -1, 1_000_000, 7],
    "b": [True, False],
}


def load(path, name: str, seed: int = 1) -> sp.Learner:
    return sp.Learner.load(path, sp.policies.POLICIES[name](), problem_for(name), seed=seed)


def saved_learner(name: str, path, rounds: int) -> Saved:
    """What is in the file of a learner that has played some rounds."""
    learner = learner_of(name)
    live(learner, rounds)
    learner.save(path)
    return Saved(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "learner.json"


@pytest.mark.parametrize("name", LIVE)
def test_whatever_a_learner_saves_it_can_load(name, path):
    """The checks must not refuse a state that occurs."""
    learner = learner_of(name)
    for rounds in (0, 1, 3, 20):
        live(learner, rounds)
        learner.save(path)
        again = load(path, name)
        assert content(again) == content(learner)
        np.testing.assert_array_equal(again.choose(), learner.choose())


def test_a_learner_in_the_middle_of_everything_can_be_loaded(path):
    """Outcomes in parts, context, and what is available today."""
    problem = sp.Problem(n_arms=3, budget=2, observes="overall", context=2, baseline=True)
    learner = sp.Learner(sp.InstrumentalSEM(), problem)
    for k in range(9):
        number = learner.play(context=[0.1 * k, -1.0])
        for arm in range(3 if k % 3 else 2):
            learner.report(number, y=np.where(np.arange(3) == arm, 0.25 * arm + 0.1 * k, np.nan))
    learner.choose(available=[0, 2], context=[0.5, 0.5])
    learner.save(path)
    again = sp.Learner.load(path, sp.InstrumentalSEM(), problem)
    assert content(again) == content(learner)
    np.testing.assert_array_equal(again.play(), learner.play())
    assert content(again) == content(learner)


@pytest.mark.parametrize("flips", few_or_many(60, 3000))
def test_a_file_with_a_flipped_bit_is_refused(flips, path):
    learner = learner_of("ndc-sem")
    live(learner, 12)
    learner.save(path)
    whole, chance = path.read_bytes(), random.Random(flips)
    for _ in range(flips):
        damaged, bit = bytearray(whole), chance.randrange(8 * len(whole))
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            load(path, "ndc-sem")
    path.write_bytes(whole)
    assert content(load(path, "ndc-sem")) == content(learner)


def test_a_file_in_which_fields_were_swapped_is_refused(path):
    learner = learner_of("discounted-ts")
    live(learner, 12)
    learner.save(path)
    text = path.read_text()
    written = json.loads(text)
    names = list(written["arrays"])
    for one, other in pairwise(names):
        swapped = json.loads(text)
        arrays = swapped["arrays"]
        arrays[one], arrays[other] = arrays[other], arrays[one]
        if swapped != written:
            path.write_text(json.dumps(swapped))
            with pytest.raises(ValueError, match=r"sha256 = .*: must be the hash of the rest of the file"):
                load(path, "discounted-ts")


def refusal(path, name: str) -> str:
    """The message with which a file is refused; nothing if it is not."""
    try:
        load(path, name)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", every(4, sorted(LIVE)))
def test_values_that_cannot_be_are_refused_though_the_hash_is_right(name, path):
    """NaN, infinities, and rounds or places that there are not, in every field that has numbers."""
    saved = saved_learner(name, path, 11)
    for field, forged in each_leaf(saved.arrays, IMPOSSIBLE):
        save_arrays(path, saved.arrays | {field: forged}, saved.about)
        found = refusal(path, name)
        if np.isposinf(forged).any() and field == "state.belief.ratio":  # a likelihood ratio may become infinite
            assert found == ""
        else:
            assert found.startswith(f"{path}: ")
            assert f"{field} = " in found


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("ndc-sem", "state.budget", -1_000_000),
        ("ndc-sem", "state.budget", 3),
        ("ndc-sem", "state.rounds", 10),
        ("glr-cucb", "state.detector.used", 1_000_000),
        ("glr-cucb", "state.averages.stamps", 12),
        ("cts", "state.successes", -1.0),
        ("cts", "state.failures", np.nan),
        ("cts", "state.weights", 2.0),
        ("discounted-ts", "state.candidates.counts", -1.0),
        ("discounted-ts", "state.candidates.counts", np.nan),
        ("switching-sem", "state.graph.used", 5),
        ("switching-sem", "state.graph.k_class.unit", 0.0),
        ("switching-sem", "state.graph.instrument.regression.ridge", 0.0),
        ("switching-sem", "state.belief.mass", 1.5),
        ("ftrl", "probability", 0.0),
        ("ftrl", "probability", 2.0),
        ("switching-sem", "memo", np.inf),
        ("ndc-sem", "pending", 12),
        ("ndc-sem", "pending", 0),
        ("ndc-sem", "rounds", -1),
        ("ndc-sem", "rounds", 9),
        ("ndc-sem", "delay_totals", -1),
        ("ndc-sem", "delay_totals", 50),
    ],
)
def test_forged_values_that_crashed_or_hung_are_named(name, field, value, path):
    saved = saved_learner(name, path, 11)
    forged = saved.arrays[field].copy()
    forged[...] = value
    save_arrays(path, saved.arrays | {field: forged}, saved.about)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}: ") as error:
        load(path, name)
    assert "must be" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("policy", "forged"),
    [
        (sp.policies.DiscountedTS(), {"state.candidates.stamps": 10**9}),
        (sp.policies.DiscountedTS(), {"state.candidates.stamps": 4 * 10**15, "state.pulls.stamps": 4 * 10**15}),
        (sp.NDCSEM(graph=sp.CandidateGraph()), {"state.graph.concerned": 2**60}),
        (sp.NDCSEM(graph=sp.CandidateGraph()), {"state.graph.concerned": 4, "state.graph.written": 2**60}),
    ],
)
def test_places_that_no_table_has_do_not_crash(policy, forged, path):
    """Values that are possible one by one, with which a kernel once read or wrote elsewhere."""
    learner = sp.Learner(policy, problem_for("ndc-sem"), seed=1)
    live(learner, 11)
    learner.save(path)
    saved, rounds = Saved(path), 4 * 10**15 + 1
    played = [name for name in saved.arrays if name.split(".")[-1] == "rounds"]
    values = dict.fromkeys(played, rounds) | forged
    changed = {name: np.full_like(saved.arrays[name], value) for name, value in values.items()}
    save_arrays(path, saved.arrays | changed, saved.about)
    again = sp.Learner.load(path, policy, problem_for("ndc-sem"), seed=1)
    with np.errstate(all="ignore"):
        live(again, 4)
    assert again.rounds == rounds + 4


@pytest.mark.long
@pytest.mark.parametrize("name", LIVE)
def test_forged_values_that_could_be_neither_crash_nor_hang(name, path):
    """A file that somebody writes with the right hash and possible values is a learner with odd experience."""
    saved = saved_learner(name, path, 31)
    for field, forged in each_leaf(saved.arrays, ODD):
        save_arrays(path, saved.arrays | {field: forged}, saved.about)
        try:
            live(load(path, name), 4)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError, RuntimeWarning):
            continue  # refused, or an error that says so


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("pending"), "fields = .*: must be those of a saved learner; no pending"),
        (lambda arrays: arrays.update(more=np.zeros(1)), r"fields = \['more'\]: must be those of a saved learner only"),
        (lambda arrays: arrays.update(x=arrays["x"].astype(float)), "x = float64 of shape .*: must be bool"),
        (lambda arrays: arrays.update(pending=arrays["pending"][::-1].copy()), "pending = .*: must be in rising order"),
        (lambda arrays: arrays.update(unavailable=np.array([4])), "unavailable = .*: must be in rising order, out of"),
        (lambda arrays: arrays.update(coming_context=np.zeros(1)), "coming_context = given: must be absent"),
        (lambda arrays: arrays.pop("state.clock"), "fields = .*: must be .*, as this policy's state has"),
        (
            lambda arrays: arrays.update(memo_rounds=arrays["pending"], memo=np.zeros((2, 4))),
            "memo = float64 of shape .*: must be",
        ),
    ],
)
def test_a_book_that_cannot_be_is_named(change, message, path):
    saved = saved_learner("ndc-sem", path, 11)
    change(saved.arrays)
    save_arrays(path, saved.arrays, saved.about)
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: {message}"):
        load(path, "ndc-sem")


def test_another_learner_s_file_is_refused(path):
    learner_of("ndc-sem").save(path)
    for name, seed, named in (("sem-ucb", 1, "policy"), ("cucb", 1, "policy"), ("ndc-sem", 2, "seed")):
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: {named} = .*: must be .*, as it is now"):
            load(path, name, seed)
    weights = PROBLEM._replace(weights=(1.0, 1.5, 2.0, 1.0 + 1e-12))
    with pytest.raises(ValueError, match="problem = "):
        sp.Learner.load(path, sp.NDCSEM(), weights, seed=1)
    arrays = PROBLEM._replace(weights=np.array(PROBLEM.weights), reward_range=[0, 1])  # the same numbers
    assert sp.Learner.load(path, sp.NDCSEM(), arrays, seed=1).rounds == 0


@dataclass(frozen=True, kw_only=True)
class WithTable(sp.policies.CUCB):
    """A policy of one's own with a large table."""

    table: Any = None


def test_large_tables_are_compared_to_the_last_number(path):
    """The usual text of an array leaves out the middle, and digits."""
    table = np.linspace(0.0, 1.0, 5000)
    other = table.copy()
    other[2500] += 1e-9
    problem = sp.Problem(n_arms=2000, budget=2, weights=np.linspace(1, 2, 2000))
    sp.Learner(WithTable(table=table), problem).save(path)
    assert sp.Learner.load(path, WithTable(table=table.copy()), problem).rounds == 0
    with pytest.raises(ValueError, match=r"policy = .*: must be .*, as it is now") as error:
        sp.Learner.load(path, WithTable(table=other), problem)
    assert len(str(error.value)) < 1000
    weights = problem.weights.copy()
    weights[1000] += 1e-9
    with pytest.raises(ValueError, match=r"problem = .*: must be .*, as it is now"):
        sp.Learner.load(path, WithTable(table=table), problem._replace(weights=weights))


def test_files_of_the_format_before_are_refused_in_a_sentence(path):
    path.write_text('{"format": 2, "about": {}, "arrays": {}}')
    with pytest.raises(ValueError, match=r"format = 2: must be 3, this version's: .* have no hash"):
        load(path, "ndc-sem")


def test_a_state_alone_is_checked_too(path):
    policy, problem = sp.policies.CTS(), PROBLEM
    state = policy.init(problem, sp.Rng(0))
    sp.state.save_state(path, state)
    assert_same(sp.state.load_state(path, state), state)
    save_arrays(path, leaves(state._replace(failures=-state.failures)))
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: failures = .*: must be numbers from 1 on"):
        sp.state.load_state(path, state)


def test_draws_from_impossible_parameters_are_nan_and_do_not_hang():
    with np.errstate(invalid="ignore"):
        found = sp.Rng(0).beta([-1.0, np.nan, np.inf, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0, 3.0])
    assert np.isnan(found[:4]).all()
    assert 0 < found[4] < 1
