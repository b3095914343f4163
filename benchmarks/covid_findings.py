"""Write the findings of a Covid-19 study on the record into docs/covid.md.

python -m benchmarks.covid_findings results/covid    # a folder that `spillover reproduce covid` wrote
"""

import sys
from pathlib import Path

from spillover.studies.covid import open_study
from spillover.studies.covid.report.document import write_findings

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "covid.md"


def main(folder: str) -> None:
    study = open_study(folder)
    if study.simulated:
        raise SystemExit(f"{folder}: must be a study of the record, not of a simulated outbreak")
    print(f"{'wrote' if write_findings(study, DOCUMENT) else 'nothing to change in'} {DOCUMENT}")


if __name__ == "__main__":
    main(*sys.argv[1:])
