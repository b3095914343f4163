"""Delays of every kind, for policies that look at what is in flight."""

from typing import Any

import spillover as sp

DELAYS: dict[str, Any] = {
    "none": sp.ConstantDelay(0),
    "constant": sp.ConstantDelay(7),
    "geometric": sp.GeometricDelay(4.0),
    "lossy": sp.LossyDelay(sp.UniformDelay(0, 6), 0.4),
    "all lost": sp.LossyDelay(sp.ConstantDelay(0), 1.0),
}
