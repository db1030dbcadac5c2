"""Traces of real traffic: read as a stream in whatever public format, sampled, described, and made a workload of.

    rows.py        what is read: a request (time, lengths, blocks of its prompt), or what is wrong; shared beginnings
    formats.py     lines or one JSON value, told by their content (Mooncake, Azure, BurstGPT, logs) → rows
    counted.py     percentiles and burstiness, in bounded memory
    trace.py       a file or a text → Trace: the sample, the description, the workload

No content of a trace but numbers leaves this folder: faults name places and fields, never what stands there.
"""
