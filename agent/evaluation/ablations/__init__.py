"""Ablations: what a part of the agent is worth, measured by runs with and without it."""
