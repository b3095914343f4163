"""A small copy of the shipped study: short worlds, few replications, shorter delays under the same names."""

import re
from dataclasses import replace

from spillover.experiments import Experiment, parse_experiment
from spillover.studies import load_experiment

SHORT = "horizon = 400\nchanges = [100, 200, 300]\n"


def small_study() -> Experiment:
    text = load_experiment("synthetic").text
    text = text.replace('kind = "synthetic"\n', f'kind = "synthetic"\n{SHORT}')
    text = text.replace('kind = "instance"\n', f'kind = "instance"\n{SHORT}')
    text = text.replace("replications = 400", "replications = 3").replace("replications = 20", "replications = 2")
    text = re.sub(r"(rounds|high) = (\d+)", lambda found: f"{found[1]} = {int(found[2]) // 10}", text)
    return replace(parse_experiment(text), study="synthetic")
