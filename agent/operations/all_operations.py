"""The operations that programs are offered, in this order."""

from __future__ import annotations

from typing import Any

from .catalogues import EXPLAIN, HARDWARE, MODELS, RULES
from .deployments import COMPARE, IMPORT, PLAN, SEARCH
from .documents import ESTIMATE, EXPORT, FIX, SHOW, VALIDATE
from .operation import Operation

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    PLAN, SEARCH, VALIDATE, FIX, ESTIMATE, COMPARE, EXPORT, IMPORT, SHOW, RULES, MODELS, HARDWARE, EXPLAIN,
)  # fmt: skip
