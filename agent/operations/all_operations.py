"""The operations that programs are offered, in this order. A new operation is its file and one line here."""

from __future__ import annotations

from typing import Any

from .comparing import COMPARE
from .drawing import SHOW
from .estimating import ESTIMATE
from .explaining import EXPLAIN
from .exporting import EXPORT
from .fixing import FIX
from .hardware import HARDWARE
from .importing import IMPORT
from .models import MODELS
from .operation import Operation
from .planning import PLAN
from .rules import RULES
from .searching import SEARCH
from .validating import VALIDATE

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    PLAN, SEARCH, VALIDATE, FIX, ESTIMATE, COMPARE, EXPORT, IMPORT, SHOW, RULES, MODELS, HARDWARE, EXPLAIN,
)  # fmt: skip
