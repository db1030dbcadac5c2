"""The tools that a model is offered, in this order. A new tool is its file and one line here."""

from __future__ import annotations

from typing import Any

from .build_dag import BUILD_DAG
from .compare_dags import COMPARE_DAGS
from .estimate_dag import ESTIMATE_DAG
from .explain_rule import EXPLAIN_RULE
from .export_dag import EXPORT_DAG
from .fix_dag import FIX_DAG
from .look_up_accelerator import LOOK_UP_ACCELERATOR
from .look_up_knowledge import LOOK_UP_KNOWLEDGE
from .look_up_model import LOOK_UP_MODEL
from .patch_dag import PATCH_DAG
from .search_strategies import SEARCH_STRATEGIES
from .submit_dag import SUBMIT_DAG
from .tool import Tool
from .validate_dag import VALIDATE_DAG

ALL_TOOLS: tuple[Tool[Any], ...] = (
    SUBMIT_DAG,
    BUILD_DAG,
    SEARCH_STRATEGIES,
    ESTIMATE_DAG,
    COMPARE_DAGS,
    VALIDATE_DAG,
    PATCH_DAG,
    FIX_DAG,
    EXPORT_DAG,
    EXPLAIN_RULE,
    LOOK_UP_KNOWLEDGE,
    LOOK_UP_MODEL,
    LOOK_UP_ACCELERATOR,
)
