"""Many learners in one file: they go on as before, and a file that is damaged, forged or another's is refused."""

import os
import random
import re
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Exclusive
from spillover.learner.saved import ArrayFile, save_array_file
from tests.live.forged_learners import go_on, moved
from tests.live.herds import PROBLEM, Beside, everything, small_herd
from tests.live.learners import LIVE, each_leaf, problem_for
from tests.recorder import Recorder
from tests.sampling import every, few_or_many

IMPOSSIBLE: dict[str, list[Any]] = {"f": [np.inf, -np.inf], "i": [-1_000_000, 2**62], "b": [], "u": []}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "learners"


@pytest.mark.parametrize("name", every(5, sorted(LIVE)))
def test_saved_and_loaded_they_go_on_as_before(name, path):
    policy, problem = sp.policies.POLICIES[name](), problem_for(name)
    beside = Beside(policy, problem, 4, seed=3)
    for steps in (0, 6, 6):
        for _ in range(steps):
            beside.step()
        beside.herd.save(path)
        beside.herd = sp.Learners.load(path, policy, problem)
        beside.compare()


def test_context_doses_and_parts_are_saved(path):
    policy, problem = Recorder(), sp.Problem(n_arms=3, budget=2, observes="overall", context=2, baseline=True)
    beside = Beside(policy, problem, 4, seed=6)
    for _ in range(40):
        beside.step(doses=True)
    beside.choose(np.array([1, 3]), available=True)
    assert {"context", "dose", "y"} <= beside.herd.books.waiting.columns.keys()
    beside.herd.save(path)
    again = sp.Learners.load(path, policy, problem, seeds=beside.herd.seeds)
    assert everything(again) == everything(beside.herd)
    beside.herd = again
    beside.compare()


def test_constraints_are_kept_unless_others_are_given(path):
    sp.Learners(sp.NDCSEM(), PROBLEM, [1, 2], constraints=(Exclusive([0, 1]),)).save(path)
    assert sp.Learners.load(path, sp.NDCSEM(), PROBLEM).setting.constraints == (Exclusive([0, 1]),)
    assert sp.Learners.load(path, sp.NDCSEM(), PROBLEM, constraints=()).setting.constraints == ()


@pytest.mark.parametrize("flips", few_or_many(60, 3000))
def test_a_flipped_bit_and_a_file_that_was_cut_are_refused(flips, path):
    herd = small_herd(sp.NDCSEM())
    herd.save(path)
    whole, chance = path.read_bytes(), random.Random(flips)
    for _ in range(flips):
        damaged, bit = bytearray(whole), chance.randrange(8 * len(whole))
        damaged[bit // 8] ^= 1 << bit % 8
        for content in (damaged, whole[: chance.randrange(len(whole))], whole + damaged[:1]):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}: .*must be") as error:
                sp.Learners.load(path, sp.NDCSEM(), PROBLEM)
            assert "\n" not in str(error.value)
    path.write_bytes(whole)
    assert everything(sp.Learners.load(path, sp.NDCSEM(), PROBLEM)) == everything(herd)


def refusal(path, policy) -> str:
    """The message with which a file is refused; nothing if it is not."""
    try:
        sp.Learners.load(path, policy, PROBLEM)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["ndc-sem", *every(2, ["switching-sem", "ftrl"])])
def test_values_that_cannot_be_are_refused_though_the_hash_is_right(name, path):
    policy = sp.policies.POLICIES[name]()
    small_herd(policy).save(path)
    saved = ArrayFile(path)
    for field, forged in each_leaf(saved.arrays, IMPOSSIBLE):
        save_array_file(path, saved.arrays | {field: forged}, saved.about)
        found = refusal(path, policy)
        if np.isposinf(forged).any() and field == "state.belief.ratio":  # a likelihood ratio may become infinite
            assert found == ""
        else:
            assert re.match(rf"{re.escape(str(path))}: learner \d: (state\.)?{re.escape(field)} = ", found), found
            assert "\n" not in found


@pytest.mark.parametrize(
    ("policy", "values"),
    [
        (sp.policies.DiscountedTS(), {"state.candidates.stamps": 10**9}),
        (sp.policies.DiscountedTS(), {"state.candidates.stamps": 4 * 10**15, "state.pulls.stamps": 4 * 10**15}),
        (sp.NDCSEM(graph=sp.CandidateGraph()), {"state.graph.concerned": 2**60}),
        (sp.NDCSEM(graph=sp.CandidateGraph()), {"state.graph.concerned": 4, "state.graph.written": 2**60}),
        (sp.NDCSEM(graph=sp.CandidateGraph()), {"state.graph.heard_start": 10**9}),
        (sp.NDCSEM(), {"state.averages.stamps": 0}),
        (sp.SwitchingSEM(), {"state.belief.change_round": 10**9, "state.last_pull": 4 * 10**15}),
        (sp.policies.GLRCUCB(), {}),
        (sp.policies.SlidingWindowCUCB(), {}),
    ],
)
def test_learners_with_absurd_experience_go_on(policy, values, path):
    """Values that are possible one by one, with which a kernel could read or write elsewhere."""
    herd, draws, later = sp.Learners(policy, PROBLEM, [1, 2, 3]), np.random.default_rng(1), 4 * 10**15
    go_on(herd, 11, draws)
    herd.save(path)
    saved = ArrayFile(path)
    forged = {name: np.full_like(saved.arrays[name], value) for name, value in values.items()}
    save_array_file(path, saved.arrays | moved(saved.arrays, later) | forged, saved.about)
    again = sp.Learners.load(path, policy, PROBLEM)
    with np.errstate(all="ignore"):
        go_on(again, 4, draws)
    assert again.rounds.tolist() == [later + 15] * 3


@pytest.mark.long
def test_no_kernel_leaves_its_arrays_whatever_experience_learners_are_given(tmp_path):
    """300 files of each policy; kernels are compiled anew, with a check of every index, which takes minutes."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "tests.live.forged_learners", "300", "1"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | checked | paths, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("rounds"), "fields = .*: must be those of saved learners; no rounds"),
        (lambda a: a.update(more=np.zeros(1)), r"fields = \['more'\]: must be those of saved learners only"),
        (lambda a: a.update(absent=a["absent"][:, :2]), r"absent = bool of shape \(3, 2\): must be bool of \(3, 4\)"),
        (lambda a: a.update(seeds=a["seeds"].astype(float)), "seeds = .*: must be whole numbers, one for each learner"),
        (
            lambda a: a.update({"pending.round": a["pending.round"][::-1].copy()}),
            "learner .*: pending.round = .*: must be",
        ),
        (
            lambda a: a.update({"pending.learner": a["pending.learner"] + 9}),
            "learner .*: pending.learner = .*: must be",
        ),
        (lambda a: a["delay_totals"].__setitem__((1, 0), 50), "learner 1: delay_totals = .*: must be number, sum"),
        (lambda a: a["state.rounds"].__setitem__(2, 6), "learner 2: state.rounds = 6: must be 7, the number of rounds"),
        (lambda a: a["state.budget"].__setitem__(1, 3), "learner 1: state.budget = 3: must be 2, as before the first"),
    ],
)
def test_books_that_cannot_be_are_named(change, message, path):
    small_herd(sp.NDCSEM()).save(path)
    saved = ArrayFile(path)
    change(saved.arrays)
    save_array_file(path, saved.arrays, saved.about)
    found = refusal(path, sp.NDCSEM())
    assert re.match(rf"{re.escape(str(path))}: {message}", found), found


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"{}", "must have a list of arrays"),
        (b'{"about": {}, "arrays": [{"name": "x", "dtype": "|O8", "shape": [1]}]}', "must have a list of arrays"),
        (b'{"about": {}, "arrays": [{"name": "x", "dtype": "<f8", "shape": [-1]}]}', "must have a list of arrays"),
        (b'{"about": {}, "arrays": [{"name": "x", "dtype": "<f8", "shape": [1000000000000]}]}', "must have a list"),
        (b"[" * 100_000, "must have a list of arrays"),
    ],
)
def test_a_header_that_cannot_be_is_refused(header, message, path):
    from hashlib import sha256

    content = header + b"\n"
    path.write_bytes(b"spillover arrays 1 sha256 " + sha256(content).hexdigest().encode() + b"\n" + content)
    assert re.match(rf"{re.escape(str(path))}: {message}", refusal(path, sp.NDCSEM()))


def test_another_s_file_is_refused(path):
    sp.Learners(sp.NDCSEM(), PROBLEM, [4, 5]).save(path)
    load = sp.Learners.load
    for call, message in (
        (lambda: load(path, sp.SEMUCB(), PROBLEM), "policy = .*: must be .*, as it is now"),
        (lambda: load(path, sp.NDCSEM(), PROBLEM._replace(budget=1)), "problem = .*: must be .*, as it is now"),
        (lambda: load(path, sp.NDCSEM(), PROBLEM, [4, 6]), "learner 1: seed = 5: must be 6, as it is now"),
        (lambda: load(path, sp.NDCSEM(), PROBLEM, [4]), "learners = 2: must be 1, one for each of the seeds"),
    ):
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: {message}"):
            call()
    sp.Learner(sp.NDCSEM(), PROBLEM).save(path)
    with pytest.raises(ValueError, match=r"must be a file that Learners.save wrote"):
        load(path, sp.NDCSEM(), PROBLEM)
    path.write_bytes(b"spillover arrays 2 sha256 ")
    with pytest.raises(ValueError, match="format = 2: must be 1, this version's"):
        load(path, sp.NDCSEM(), PROBLEM)


def test_ctrl_c_while_saving_leaves_the_learners_of_before(path, monkeypatch):
    herd = sp.Learners(sp.NDCSEM(), PROBLEM, range(3))
    herd.save(path)
    before = path.read_bytes()
    herd.play()
    monkeypatch.setattr(os, "fsync", lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        herd.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]
