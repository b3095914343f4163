"""What `spillover new` copies: a small, complete part of each kind, and its test.

They are modules of the package so that they are linted, type-checked and tested with it. Nothing imports them.
"""
