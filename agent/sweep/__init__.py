"""Large sweeps: every model on every cluster under every workload of a file, on many cores, resumable.

`document.py` reads the file, `case.py` answers one case, `run.py` runs them (`ray_cluster.py`: on a Ray cluster),
`table.py` writes the result.
"""
