"""Arrows keep clear of circles that they do not touch, with the gentlest bend that does."""

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch
from matplotlib.transforms import Bbox

from spillover.figures.flows import BENDS, Line, Page, best_bend, curves, too_near

FRAME = Bbox.from_extents(-100, -200, 500, 200)


def page(*circles, names=(), frame=FRAME):
    """Arms 0 and 1 stand 400 pixels apart; the others at (x, y) with a radius."""
    x, y, radii = np.array([(0, 0, 15), (400, 0, 15), *circles], float).T
    return Page(np.column_stack([x, y]), radii, names, frame)


def test_a_bend_that_is_clear_stays():
    assert best_bend((0, 1), 0.14, 2.0, page()) == 0.14
    assert best_bend((0, 1), 0.14, 2.0, page((200, 100, 20))) == 0.14


@pytest.mark.parametrize("first", [0.0, 0.14, -0.2])
@pytest.mark.parametrize("below", [0.0, 12.0, -12.0, 30.0])
def test_the_gentlest_that_is_clear_is_taken(first, below):
    here = page((200, -below, 20))
    rad = best_bend((0, 1), first, 4.0, here)
    near = too_near(curves(here, (0, 1), np.array([rad, *BENDS, *np.negative(BENDS), first])), (0, 1), 4.0, here)
    clear = [abs(other) for other, by in zip((*BENDS, *np.negative(BENDS)), near[1:-1], strict=True) if by == 0]
    assert near[0] == 0
    assert rad == first if near[-1] == 0 else abs(rad) == min(clear)


def test_if_none_is_clear_it_touches_least():
    wall = [(200, y, 20) for y in (-180, -140, -100, -60, -20, 22, 60, 100, 140, 180)]
    rad = best_bend((0, 1), 0.2, 2.0, page(*wall))
    every = np.array([0.2, *BENDS, *np.negative(BENDS)])
    near = too_near(curves(page(*wall), (0, 1), every), (0, 1), 2.0, page(*wall))
    assert near.min() > 0
    assert near[every == rad].min() == near.min()


def test_it_stays_in_the_frame():
    high = best_bend((0, 1), 0.0, 2.0, page((200, 5, 20)))
    assert high > 0  # below
    floor = Bbox.from_extents(-100, -25, 500, 200)
    assert best_bend((0, 1), 0.0, 2.0, page((200, 5, 20), frame=floor)) < 0


def test_it_goes_around_names_and_strong_arrows_if_that_is_easy():
    name = Bbox.from_extents(170, -6, 230, 6)
    assert abs(best_bend((0, 1), 0.0, 2.0, page(names=[name]))) == 0.07
    over = Line((2, 3), np.column_stack([np.linspace(0, 400, 41), np.zeros(41)]), 4.0)
    assert abs(best_bend((0, 1), 0.0, 2.0, page(), [over])) == 0.07


def test_arrows_there_and_back_keep_to_their_sides():
    here = page((200, -14, 20))  # below is the longer way around
    assert best_bend((0, 1), 0.14, 2.0, here) < 0
    assert best_bend((0, 1), 0.14, 2.0, here, one_side=True) > 0.14


def test_the_curves_are_those_that_are_drawn():
    here = page()
    (curve,) = curves(here, (0, 1), np.array([0.3]))
    start, end = here.centres[:2].tolist()
    arrow = FancyArrowPatch(start, end, connectionstyle="arc3,rad=0.3", arrowstyle="-", shrinkA=0, shrinkB=0)
    a, control, b = np.asarray(arrow.get_path().vertices)[:3]
    np.testing.assert_allclose(curve[20], (a + 2 * control + b) / 4, atol=1e-9)
