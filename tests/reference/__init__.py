"""Slow, obvious twins of the fast code: plain NumPy straight from the formulas, on the whole history."""
