"""A process that is killed while it saves leaves the file of before or of after; what else it leaves is removed."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import spillover as sp
from tests.live.learners import content, learner_of, live
from tests.sampling import few_or_many
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kill -9: POSIX")

SAVING = """
import sys
from tests.live.learners import learner_of, live
learner = learner_of("ndc-sem")
while True:
    live(learner, 1)
    learner.save(sys.argv[1])
"""


@pytest.mark.parametrize("kills", few_or_many(1, 200))
def test_the_file_is_whole_whenever_the_process_is_killed(kills, tmp_path):
    path, chance = tmp_path / "learner.json", random.Random(kills)
    alive: dict[int, sp.Learner] = {}
    for _ in range(kills):
        path.unlink(missing_ok=True)
        process = subprocess.Popen([sys.executable, "-c", SAVING, str(path)], text=True, stderr=subprocess.PIPE)
        try:
            wait_until(path.exists, process)
            time.sleep(chance.uniform(0.0, 0.05))  # any moment will do
        finally:
            process.kill()
            process.communicate()
        again = sp.Learner.load(path, sp.NDCSEM(), learner_of("ndc-sem").problem, seed=1)
        same = alive.setdefault(again.rounds, learner_of("ndc-sem"))
        if same.rounds == 0:
            for _ in range(again.rounds):
                live(same, 1)
        assert content(again) == content(same)
        again.save(path)
        assert [one.name for one in tmp_path.iterdir()] == ["learner.json"]


FULL = """
import resource, signal, sys
from tests.live.learners import learner_of, live
learner = learner_of("ndc-sem")
live(learner, 3)
learner.save(sys.argv[1])
live(learner, 3)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
try:
    learner.save(sys.argv[1])
except OSError as error:
    print(error.filename)
"""


def test_a_disk_that_is_full_leaves_the_learner_of_before(tmp_path):
    path = tmp_path / "learner.json"
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{path}\n", "")
    again = sp.Learner.load(path, sp.NDCSEM(), learner_of("ndc-sem").problem, seed=1)
    assert again.rounds == 3
    assert [one.name for one in tmp_path.iterdir()] == ["learner.json"]


def test_ctrl_c_while_saving_leaves_the_learner_of_before(tmp_path, monkeypatch):
    path, learner = tmp_path / "learner.json", learner_of("ndc-sem")
    learner.save(path)
    before = path.read_bytes()
    live(learner, 3)
    monkeypatch.setattr(os, "fsync", lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        learner.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["learner.json"]
