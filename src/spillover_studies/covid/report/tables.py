"""Tables of the study: for the page, and as CSV files beside it for further analysis."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from spillover.files import write_atomically
from spillover_studies.covid import LITERAL, SEMI, CovidResults, clustered_interval, validation_days
from spillover_studies.covid.plan import PAPER_RULE, RULES, VARIANTS, planned_runs
from spillover_studies.covid.play import ONE_RUN, SCALES, SEED_SETS, best_cell
from spillover_studies.covid.report.measures import (
    COMPARISON_LABELS,
    COMPARISONS,
    RECORDED,
    Measured,
    chosen_days,
    gain,
    prediction_errors,
    recorded_before,
    semi_share,
)
from spillover_studies.covid.scores import SCORES, since, weights_of


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


def contribution_table(study: CovidResults) -> pd.DataFrame:
    """Regions by contribution, with their place by recorded cases; means over all data sets, before the shift."""
    weights = weights_of(study.star())
    expected = study.data["expected"][..., 0, :]
    mean = (0, 1)
    frame = pd.DataFrame(
        {
            "region": study.about["names"],
            RECORDED: recorded_before(study).mean(axis=mean),
            "region-specific cases a day": expected.mean(axis=mean),
            "weight": weights.mean(axis=mean),
            "contribution": (weights * expected).mean(axis=mean),
            "chosen by NDC-SEM, days 25–39": chosen_days(study, "ndc-sem")[0].mean(axis=mean),
        }
    )
    frame["place by cases"] = frame[RECORDED].rank(ascending=False).astype(int)
    frame = frame.sort_values("contribution", ascending=False, ignore_index=True)
    frame.insert(0, "place by contribution", range(1, len(frame) + 1))
    return frame


def reward_table(study: CovidResults, rule: str = PAPER_RULE) -> pd.DataFrame:
    """Every comparison by every scoring rule: gain of days 40 to 80 with its interval, and how often it is above 0."""
    rows: list[dict[str, Any]] = []
    for comparison, (_, rival) in COMPARISONS.items():
        for score, label in SCORES.items():
            found = Measured(gain(study, comparison, score, rule))
            base = since(study.rewards(LITERAL, rival, rule)[score], study.about["change"])
            rows.append(
                {"comparison": COMPARISON_LABELS[comparison], "scored by": label}
                | dict(zip(("gain", "low", "high"), map(float, found.interval), strict=True))
                | {"share of SEM-UCB's": float(found.values.mean() / base.mean())}
                | {"shifts won": found.shifts, "runs won": found.runs}
            )
    return pd.DataFrame(rows)


def regret_table(study: CovidResults) -> pd.DataFrame:
    """Final regret in the semi-synthetic mode, and the share of the best five after the change."""
    rows = []
    for name in (*(v.name for v in VARIANTS), "ndc-sem-no-graph", "delayed-oracle", "random"):
        interval = clustered_interval(study.played(SEMI, name).regret[..., -1])
        share = clustered_interval(semi_share(study, name))
        rows.append(
            {"policy": name}
            | dict(zip(("regret", "low", "high"), map(float, interval), strict=True))
            | {"best five, days 44–80": float(share.mean)}
        )
    return pd.DataFrame(rows)


def payoff_table(study: CovidResults) -> pd.DataFrame:
    """Average payoff in cases a day over all 80 days, and seconds of playing all runs, of every policy."""
    days, rows = len(study.days), []
    for name in (*(v.name for v in VARIANTS), "ndc-sem-no-graph"):
        replayed = study.rewards(LITERAL, name)
        rows.append(
            {"policy": name}
            | {score: float(replayed[score][..., -1].mean()) / days for score in ("own", "common")}
            | {"semi": float(study.rewards(SEMI, name)["common"][..., -1].mean()) / days}
            | {"seconds": study.seconds(LITERAL, name)}
        )
    return pd.DataFrame(rows)


def tuning_table(study: CovidResults) -> pd.DataFrame:
    """The best cell by every criterion, and its value on the reported seed by the moving common graph."""
    plan, rows = study.plan, []
    for scale in SCALES:
        value = study.grid(scale, "reported").rewards["moving"].mean(axis=-1)
        for seeds in SEED_SETS:
            for score in ("own", "common", "moving"):
                i, j = best_cell(study.grid(scale, seeds).rewards[score])
                rows.append(
                    {
                        "scale": "cases" if scale == "cases" else "[0, 1]",
                        "seed": "first reported" if seeds == "reported" else "the other",
                        "chosen by": SCORES[score],
                        "discount γ": plan.discounts[i],
                        "exploration ξ": plan.explorations[j],
                        "value on the reported seed": float(value[i, j]),
                        "share of the grid's best": float(value[i, j] / value.max()),
                    }
                )
    return pd.DataFrame(rows)
