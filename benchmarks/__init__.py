"""Measurements, as ratios within one run; `python -m benchmarks` makes them all, `python -m benchmarks NAME` one."""
