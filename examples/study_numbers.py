"""Numbers of the studies for the documents, from what `make reproduce` has written.

python examples/study_numbers.py STUDY NAME [--results FOLDER]

NAME is one of the `NUMBERS` of `spillover_studies.STUDY.numbers`: functions from results to Markdown.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def numbers(study: str, name: str, folder: Path) -> str:
    """The numbers of that name as Markdown."""
    module = import_module(f"spillover_studies.{study}.numbers")
    if name not in module.NUMBERS:
        raise ValueError(f"name = {name!r}: must be one of {', '.join(module.NUMBERS)}")
    text: str = module.NUMBERS[name](module.load(folder))
    return text


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="examples/study_numbers.py", description="Numbers of the studies, as Markdown."
    )
    parser.add_argument("study")
    parser.add_argument("name")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    given = parser.parse_args(arguments)
    print(numbers(given.study, given.name, given.results / given.study))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
