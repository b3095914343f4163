"""A small experiment for tests: two worlds, two delays, three policies, seconds at most."""

from spillover.experiments import Experiment, parse_experiment

TEXT = """\
name = "small"
title = "A small experiment"
seed = 3
replications = 6
block = 2
record = 40

[worlds.fresh]
kind = "synthetic"
horizon = 150
changes = [60, 110]
[worlds.picture]
kind = "instance"
seed = 2023
replications = 3
n_arms = 6
budget = 2
horizon = 100
changes = [50]

[delays.5]
kind = "constant"
rounds = 5
[delays.spread]
kind = "uniform"
low = 0
high = 20

[policies.ndc-sem]
label = "NDC-SEM"
exploration = 1e-3
[policies.ndc-sem.at.spread]
exploration = 1e-6
[policies.cts]
[policies.reference]
kind = "delayed-oracle"

[[studies]]
worlds = ["fresh"]
[[studies]]
worlds = ["picture"]
delays = ["5"]
policies = ["ndc-sem"]
"""


def small() -> Experiment:
    return parse_experiment(TEXT)
