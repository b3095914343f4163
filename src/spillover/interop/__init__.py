"""Spillover with the libraries around it: one module for each, and nothing here loads a library before it is used.

`spillover.interop.gymnasium` (worlds as environments), `agents` (agents as policies), `sklearn` (the graph as an
estimator, estimators as policies), `networkx` (graphs as networks) and `obp` (logged feedback).
"""
