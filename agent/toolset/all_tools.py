"""The tools that a model is offered, in this order. A new tool is its file and one line here."""

from __future__ import annotations

from typing import Any

from .inspect_dag import INSPECT_DAG
from .look_up import LOOK_UP
from .patch_dag import PATCH_DAG
from .search_strategies import SEARCH_STRATEGIES
from .submit_dag import SUBMIT_DAG
from .tool import Tool

ALL_TOOLS: tuple[Tool[Any], ...] = (SUBMIT_DAG, SEARCH_STRATEGIES, INSPECT_DAG, PATCH_DAG, LOOK_UP)
