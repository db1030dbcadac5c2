"""Which serving engine a plan names, and how grave it is that an engine would refuse the plan.

It knows the three engines whose rules the EN family states and reads no version: what changed between versions is not
told apart. An engine that it does not know counts as none.
"""

from __future__ import annotations

from typing import Literal

from ..plan.view import PlanView, as_str
from .base import Severity

Engine = Literal["vllm", "sglang", "trtllm"]

TITLES: dict[Engine, str] = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
_SPELLINGS: dict[str, Engine] = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm", "tensorrt": "trtllm"}
_MAX_READ = 200


def engine_of(text: str | None) -> Engine | None:
    """The engine that `text` names however it is spelled; `None` where it names none, an unknown one, or several."""
    letters = "".join(letter for letter in (text or "")[:_MAX_READ].lower() if letter.isalnum())
    found: set[Engine] = {engine for spelling, engine in _SPELLINGS.items() if spelling in letters}
    return found.pop() if len(found) == 1 else None


def named_engine(view: PlanView) -> Engine | None:
    """The engine that the plan is for: `serving.engine`."""
    return engine_of(as_str(view.serving.get("engine")))


def gravity(view: PlanView, *enforcing: Engine, accepting: tuple[Engine, ...] = ()) -> Severity | None:
    """`None` where the plan names an engine that accepts what was found, an error where it names one that refuses it.

    A warning where no engine is named, or one of which neither is known.
    """
    engine = named_engine(view)
    if engine in accepting:
        return None
    return "error" if engine in enforcing else "warning"


def title(view: PlanView) -> str:
    """The engine that the plan names, as its makers write it; `an engine` where it names none."""
    engine = named_engine(view)
    return "an engine" if engine is None else TITLES[engine]
