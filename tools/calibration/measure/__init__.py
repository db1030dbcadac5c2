"""Times kernels on the machine's own accelerator, and fits kernel profiles to such times.

The one place of `tools` that meets a clock and a device. PyTorch (the extra `measure`) is imported when something is
timed; reading and fitting tables need it not.
"""
