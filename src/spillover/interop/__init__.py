"""Spillover with the libraries around it; nothing here loads a library before it is used.

`spillover.interop.gymnasium` (worlds as environments), `agents` (agents and estimators as policies), `sklearn` (the
graph as an estimator) and `obp` (logged feedback). Graphs of NetworkX come from methods of what has a graph,
`to_networkx`, and go into `FixedSEM.from_networkx`.
"""
