"""Draws the pictures of the documents again that code draws: `python -m website.redraw` (`make examples` calls it)."""

from functools import partial
from pathlib import Path
from typing import Any

from spillover.figures import save_figure
from website.outside import ROOT
from website.pictures import PICTURES
from website.sessions import BLOCK, is_session, run_sessions

DOCS = ROOT / "docs"


def save_picture(page: Path, link: str, figure: Any) -> None:
    """Write a picture where the page's link leads."""
    save_figure(figure, (page.parent / link).resolve(), dpi=110)


def main() -> None:
    for name, draw in PICTURES.items():
        save_figure(draw(), DOCS / "images" / "concepts" / f"{name}.svg")
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if any(block["picture"] and is_session(block) for block in BLOCK.finditer(text)):
            _, complaints = run_sessions(text, page.name, partial(save_picture, page))
            print(f"{page.relative_to(ROOT)}: drawn", *complaints, sep="\n")


if __name__ == "__main__":
    main()
