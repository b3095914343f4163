"""Timings, as ratios measured in one run; `python -m benchmarks` runs them all, `python -m benchmarks NAME ...` some."""
