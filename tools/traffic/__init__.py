"""Traces of real traffic in public formats: read as a stream, sampled, described, and turned into a workload.

    rows.py        requests (time, lengths, blocks of the prompt), faults, and shared beginnings
    formats.py     lines or one JSON value, recognised by content (Mooncake, Azure, BurstGPT, logs) → rows
    counted.py     percentiles and burstiness, in bounded memory
    trace.py       a file or a text → Trace: the sample, the description, the workload

Only numbers of a trace leave this folder: faults name places and fields, never their content.
"""
