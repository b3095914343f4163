"""Threads that share a learner lose no round and count none twice."""

import sys
import threading

import numpy as np
import pytest

import spillover as sp
from tests.live.learners import PROBLEM, content

ROUNDS, THREADS = 60, 4


@pytest.fixture
def busy():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work):
    """Run work(k) in thread k; what fails there fails here."""
    failed = []

    def guarded(k):
        try:
            work(k)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("name", ["ndc-sem", "switching-sem", "cts"])
def test_no_round_is_lost(name):
    """Every round is reported once, by whichever thread; one thread that reports in the same order ends up the same."""
    learner, numbers, order = sp.Learner(sp.policies.POLICIES[name](), PROBLEM), [], []

    def work(k):
        for _ in range(ROUNDS):
            with learner.lock:
                x = learner.choose()
                number = learner.play()
            numbers.append(number)
            z = 0.25 * x
            with learner.lock:  # so that the order is known
                learner.report(number, z, z)
                order.append(number)

    in_threads(work)
    assert sorted(numbers) == list(range(1, ROUNDS * THREADS + 1))
    assert learner.rounds == ROUNDS * THREADS
    assert learner.pending == []
    assert learner.delay_totals[0] == ROUNDS * THREADS


@pytest.mark.usefixtures("busy")
def test_what_is_reported_is_what_is_learned():
    """Without a lock around the calls; the learner's own is enough. Averages do not depend on the order."""
    learner, alone = (sp.Learner(sp.policies.CUCB(), PROBLEM) for _ in range(2))
    x = np.array([1, 1, 0, 0])
    for one in (learner, alone):
        for _ in range(ROUNDS * THREADS):
            one.play(x)

    def work(k):
        for number in range(1 + k, ROUNDS * THREADS + 1, THREADS):
            learner.report(number, z=0.5 * x, y=0.25 * number * x / ROUNDS)

    in_threads(work)
    for number in range(1, ROUNDS * THREADS + 1):
        alone.report(number, z=0.5 * x, y=0.25 * number * x / ROUNDS)
    np.testing.assert_allclose(learner.explain().mean, alone.explain().mean, rtol=1e-12)
    assert learner.pending == []
    np.testing.assert_array_equal(learner.explain().count, alone.explain().count)


@pytest.mark.usefixtures("busy")
def test_a_file_that_is_saved_meanwhile_is_whole(tmp_path):
    learner = sp.Learner(sp.NDCSEM(), PROBLEM)

    def work(k):
        for _ in range(ROUNDS // 3):
            if k:
                learner.report(learner.play(), np.zeros(4), np.zeros(4)) if k > 1 else learner.play()
            else:
                learner.save(tmp_path / "learner.json")
                again = sp.Learner.load(tmp_path / "learner.json", sp.NDCSEM(), PROBLEM)
                assert again.state.rounds == again.rounds

    in_threads(work)
    learner.save(tmp_path / "learner.json")
    assert content(sp.Learner.load(tmp_path / "learner.json", sp.NDCSEM(), PROBLEM)) == content(learner)


def test_the_state_is_read_under_the_lock():
    """To read it may record the last play, which another thread must not do meanwhile."""
    learner = sp.Learner(sp.SwitchingSEM(), sp.Problem(n_arms=4, budget=2), seed=1)
    learner.play()
    found = []
    reader = threading.Thread(target=lambda: found.append(int(learner.state.rounds)))
    with learner.lock:
        reader.start()
        reader.join(0.05)
        assert found == []  # whoever has the lock comes first
    reader.join()
    assert found == [1]
