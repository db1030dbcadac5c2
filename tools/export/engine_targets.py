"""The exporters of engines by their names."""

from __future__ import annotations

from collections.abc import Mapping

from . import sglang, trtllm, vllm
from .target import Target

ENGINE_TARGETS: Mapping[str, Target] = {t.engine.name: t for t in (vllm.TARGET, sglang.TARGET, trtllm.TARGET)}
