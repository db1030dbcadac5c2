"""Traces of real traffic: read as a stream in whatever public format, sampled, described, and made a workload of.

    rows.py        what is read: a request (time, lengths, blocks of its prompt), or what is wrong and where
    formats.py     lines or one JSON value, told by their content → rows
    row_forms.py   Mooncake, results of load generators, logs with token counts; Azure, BurstGPT
    counted.py     percentiles and burstiness, in bounded memory
    prefixes.py    which prompts begin as earlier ones do
    trace.py       a file or a text → Trace: the sample, the description, the workload

No content of a trace but numbers leaves this folder: faults name places and fields, never what stands there.
"""
