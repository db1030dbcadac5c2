"""EN011 (warning, an error for vLLM and SGLang): the padded vocabulary divides by the tensor degree.

Engines split embedding and LM head even if the plan does not (`vocab_parallel`). TensorRT-LLM pads to a multiple of the
degree and accepts any.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...engines.names import DEFAULT_ENGINE, ENGINES
from ..base import Example, Rule, set_top
from ..legality import Case, DegreeLimit, Fault


def _vocabulary(case: Case) -> Iterator[Fault]:
    engine, size, tp = case.conditions.engine, case.conditions.architecture.vocab_size, case.degrees.tp
    # Without an engine, the padding of the default one.
    padded = (engine or ENGINES[DEFAULT_ENGINE]).padded_vocabulary(size)
    if padded is not None and padded % tp:
        yield Fault(
            "not-divided",
            f"tp {tp} does not divide the vocabulary of {size}" + (f", padded to {padded}" if padded > size else ""),
            value={"tp": tp, "vocabulary": size, "padded": padded},
            expected=f"a divisor of {padded}",
            severity="warning" if engine is None else "error",
            is_proposed=engine is None,
        )


RULE = Rule(
    id="EN011",
    name="indivisible vocabulary",
    severity="warning",
    requirement=(
        "The attention tp divides the vocabulary, padded to a multiple of 64. An error in a plan that names vLLM or "
        "SGLang."
    ),
    rationale=(
        "vLLM and SGLang shard embedding and LM head by the tensor degree: the vocabulary is padded to ⌈V / 64⌉ × 64 "
        "rows and must then divide exactly. Powers of two up to 64 always do; degrees such as 3, 6 or 12 need luck."
    ),
    source="vLLM 0.33.0 and SGLang 0.5.23 layers/vocab_parallel_embedding.py",
    fix="re-plan",
    remedy="choose a tp that divides the padded vocabulary",
    limits=(DegreeLimit(("tp",), _vocabulary),),
    bad=Example("dense-tp3", (set_top("/model/config/vocab_size", 1024),)),
)
