"""Large sweeps: every model on every cluster under every workload of a file, on many cores, resumable.

`document.py` reads the file, `case.py` answers one case, `workers.py` runs them, `journal.py` keeps what is finished,
`run.py` puts these together, `table.py` writes the result.
"""
