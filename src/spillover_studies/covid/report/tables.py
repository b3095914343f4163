"""The study as CSV files beside the report, for further analysis."""

from itertools import product

import numpy as np
import pandas as pd

from spillover.files import write_atomically
from spillover_studies.covid import LITERAL, SEMI, CovidResults, validation_days
from spillover_studies.covid.plan import RULES, VARIANTS, planned_runs
from spillover_studies.covid.report.measures import contribution_table, prediction_errors
from spillover_studies.covid.scores import since
from spillover_studies.covid.tuning import ONE_RUN, SCALES, SEED_SETS


def write_tables(study: CovidResults) -> None:
    """rewards.csv, regret.csv, errors.csv, tuning.csv and contributions.csv, each written completely or not at all."""
    tables = {
        "rewards": rewards(study),
        "regret": regret(study),
        "errors": errors(study),
        "tuning": tuning(study),
        "contributions": contribution_table(study),
    }
    for name, frame in tables.items():
        write_atomically(
            study.folder / f"{name}.csv", frame.assign(source=study.about["source"]).to_csv(index=False).encode()
        )


def run_columns(study: CovidResults) -> dict[str, object]:
    """Columns of a table with one row for each shift and seed."""
    shifts, seeds = study.plan.shifts, study.plan.seeds
    return {"shift": np.repeat(shifts, seeds), "seed": np.tile(np.arange(seeds), len(shifts))}


def rewards(study: CovidResults) -> pd.DataFrame:
    """Reward of each run by every scoring rule: of all days, and from the change on."""
    frames = []
    for rule, mode, variant in product(RULES, (LITERAL, SEMI), VARIANTS):
        for score, curve in study.rewards(mode, variant.name, rule).items():
            columns = {"mode": mode, "policy": variant.name, "lambda_rule": rule, "score": score} | run_columns(study)
            late = since(curve, study.about["change"])
            frames.append(pd.DataFrame(columns | {"all_days": curve[..., -1].ravel(), "since_change": late.ravel()}))
    return pd.concat(frames, ignore_index=True)


def regret(study: CovidResults) -> pd.DataFrame:
    """Final regret of each run in the semi-synthetic mode, by the rules of lambda of the policy and of A*."""
    frames = []
    for run in planned_runs():
        if run.mode == SEMI:
            final = study.played(SEMI, run.variant.name, run.rule, run.star).regret[..., -1]
            columns = {"policy": run.variant.name, "lambda_rule": run.rule, "true_graph_rule": run.star}
            frames.append(pd.DataFrame(columns | run_columns(study) | {"final_regret": final.ravel()}))
    return pd.concat(frames, ignore_index=True)


def errors(study: CovidResults) -> pd.DataFrame:
    """Mean absolute error in cases per region; rows: policy, predictor, shift, seed and validation day."""
    frames = []
    for rule, variant in product(RULES, VARIANTS):
        for predictor, values in prediction_errors(study, variant.name, rule).items():
            for k, day in enumerate(validation_days(len(study.days))):
                columns = {"policy": variant.name, "lambda_rule": rule, "predictor": predictor, "day": int(day)}
                columns |= run_columns(study)
                frames.append(pd.DataFrame(columns | {"error": values[..., k].ravel()}))
    return pd.concat(frames, ignore_index=True)


def tuning(study: CovidResults) -> pd.DataFrame:
    """Every cell of the grids by every scoring rule: mean over the shifts, and of the one run that figures show."""
    grid = np.meshgrid(study.plan.discounts, study.plan.explorations, indexing="ij")
    frames = []
    for scale in SCALES:
        for seeds in (*SEED_SETS, ONE_RUN):
            found = study.grid(scale, seeds)
            fixed = np.nan if seeds == ONE_RUN else study.grid_sparsity(scale)  # in one run lambda is chosen online
            columns = {"scale": scale, "seeds": seeds, "sparsity": fixed}
            cells = {"discount": grid[0].ravel(), "exploration": grid[1].ravel()}
            means = {name: values.mean(axis=-1).ravel() for name, values in found.rewards.items()}
            frames.append(pd.DataFrame(columns | cells | means))
    return pd.concat(frames, ignore_index=True)
