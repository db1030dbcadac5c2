"""Times kernels on the machine's own accelerator, and fits kernel profiles to such times.

The only part of `tools` that uses a clock and a device. PyTorch (the extra `measure`) is imported only for timing, not
for reading and fitting tables.
"""
