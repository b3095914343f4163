"""Figures as files, and as parts of a page."""

import base64
import re
from xml.etree import ElementTree

import pytest

from spillover import figures
from tests.report.examples import study


def one():
    return figures.figure_of(figures.regret_figure(study(("ndc-sem", "random"))))


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_figure_gives_the_same_bytes(ending, start, tmp_path) -> None:
    figures.save_figure(one(), tmp_path / f"first.{ending}")
    figures.save_figure(one(), tmp_path / f"again.{ending.upper()}")
    first = (tmp_path / f"first.{ending}").read_bytes()
    assert first.startswith(start)
    assert first == (tmp_path / f"again.{ending.upper()}").read_bytes()


def test_three_formats_at_once(tmp_path) -> None:
    figure = one()
    for name in ("delay-0.5", "with.svg"):
        paths = figures.save_figures(figure, tmp_path / name, dpi=50)
        assert [p.name for p in paths] == [f"{name.removesuffix('.svg')}.{e}" for e in ("png", "svg", "pdf")]
        assert all(p.stat().st_size > 1000 for p in paths)


def test_an_unknown_format_is_refused_and_nothing_written(tmp_path) -> None:
    with pytest.raises(ValueError, match="format = 'gif': must be one of png, svg, pdf"):
        figures.save_figure(one(), tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())


def test_an_image_in_a_page() -> None:
    tag = figures.html_image(one(), alt='regret of "A" & B')
    found = re.fullmatch(r'<img src="data:image/png;base64,([^"]+)" width="480" alt="([^"]+)">', tag)
    assert found
    assert base64.b64decode(found[1]) == figures.figure_bytes(one())
    assert found[2] == "regret of &quot;A&quot; &amp; B"


def test_drawings_in_a_page_do_not_share_ids() -> None:
    drawings = [figures.html_svg(one(), "regret", name=name) for name in ("a", "b")]
    ids = []
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)  # well-formed, without declaration and document type
        assert (root.get("role"), root.get("aria-label")) == ("img", "regret")
        own = {e.get("id") for e in root.iter() if e.get("id")}
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawing))
        assert used <= own
        ids.append(own)
    assert not ids[0] & ids[1]
    with pytest.raises(ValueError, match="name = '1 x': must be a letter"):
        figures.html_svg(one(), "regret", name="1 x")
