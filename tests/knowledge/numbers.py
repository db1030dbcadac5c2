"""All computations of worked numbers: importing this module registers those of every `numbers_*.py` beside it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

for _path in sorted(Path(__file__).parent.glob("numbers_*.py")):
    import_module(f"{__package__}.{_path.stem}")
