"""The levels of an engine fit, and which cases are held back to say how far it is off where it has not been.

Held back is always a whole pair of model architecture and accelerator: all sources, sizes and loads of it at once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from shardwright.tools.fidelity.engine_cases import Case
from shardwright.tools.fidelity.engine_fit import NAMES, Fitted, fit, prior

Key = tuple[str, str, str]
POOLED = "pooled"
# Microseconds of a host in Python for each sequence of a step, timed apart from the GPU: schedule, inputs, sampler and
# outputs of vLLM's first core take 44 to 48 on an A100's host, whatever the model (Vidur's table of CPU overheads).
# Hosts in C++ take a tenth of it; results from end to end tell the two apart only where a host is not hidden.
_PYTHON_HOST_SEQUENCE_US = 45.0
_PYTHON_HOSTS = frozenset(
    (("vllm", "v0"), ("vllm", "v0.6"), ("vllm", "v1"), ("sglang", "any"), ("trtllm", "1.0"), ("trtllm", "pytorch"))
)
# How much wider than the priors each level may stray from the one above it.
_SLACK = {"all": 0.6, "engine": 0.5, "class": 0.35}


class Levels(Struct, frozen=True):
    """What was fitted: over all engines, for each engine's generation, and for that on each class of accelerators."""

    everything: Fitted
    fitted: Mapping[Key, Fitted]

    def of(self, key: Key) -> Fitted:
        """The constants for `key`, or those of the level above where it was not measured."""
        for wanted in (key, (key[0], key[1], POOLED)):
            if wanted in self.fitted:
                return self.fitted[wanted]
        same = [
            constants for (engine, _, class_), constants in self.fitted.items() if (engine, class_) == (key[0], POOLED)
        ]
        return same[0] if same else self.everything


def fit_levels(cases: Sequence[Case], note: Callable[[str], None] | None = None) -> Levels:
    """All levels fitted to `cases`, from the top down."""
    by_engine: defaultdict[tuple[str, str], list[Case]] = defaultdict(list)
    by_class: defaultdict[Key, list[Case]] = defaultdict(list)
    for case in cases:
        key = case.wanted
        by_engine[key[:2]].append(case)
        by_class[key].append(case)
    everything = fit(thinned(cases, 1), prior(), _SLACK["all"])
    fitted: dict[Key, Fitted] = {}
    for (engine, generation), members in sorted(by_engine.items()):
        pooled = fit(thinned(members, 3), expected(everything, engine, generation), _SLACK["engine"])
        fitted[(engine, generation, POOLED)] = pooled
        classes = {key: class_cases for key, class_cases in by_class.items() if key[:2] == (engine, generation)}
        for key, class_cases in sorted(classes.items()):
            fitted[key] = fit(thinned(class_cases, 6), pooled, _SLACK["class"])
            if note is not None:
                note(f"{' '.join(key)}: {len(class_cases)} cases")
    return Levels(everything, fitted)


def expected(everything: Fitted, engine: str, generation: str) -> Fitted:
    """The constants expected of an engine before its own results: those of all, with the host time of its language."""
    if (engine, generation) not in _PYTHON_HOSTS:
        return everything
    logs = dict(zip(NAMES, everything.logs, strict=True)) | {"host_sequence_us": math.log(_PYTHON_HOST_SEQUENCE_US)}
    return Fitted(tuple(logs.values()), everything.figures)


def thinned(cases: Sequence[Case], most: int) -> list[Case]:
    """At most `most` cases of each group, spread evenly over it in the order of their load."""
    groups: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.about.group].append(case)
    chosen: list[Case] = []
    for group in groups.values():
        count = min(most, len(group))
        chosen.extend(group[round(place * (len(group) - 1) / max(1, count - 1))] for place in range(count))
    return chosen


def folds_of(cases: Sequence[Case], folds: int) -> dict[str, int]:
    """The fold that each pair of architecture and accelerator is held back in.

    Pairs that one engine was measured on are spread over the folds: what is asked is how far off a pair is that was
    never seen, not an engine that was never seen on such accelerators.
    """
    measured: defaultdict[str, set[Key]] = defaultdict(set)
    for case in cases:
        measured[case.about.pair].add(case.wanted)
    counts: defaultdict[Key, list[int]] = defaultdict(lambda: [0] * folds)
    fold_of_pair: dict[str, int] = {}
    # Those of most engines first, for they leave the least choice.
    for pair in sorted(measured, key=lambda pair: (-len(measured[pair]), pair)):
        loads = [[counts[key][fold] for key in sorted(measured[pair])] for fold in range(folds)]
        fold = min(
            range(folds),
            key=lambda option: (max(loads[option]), sum(loads[option]), list(fold_of_pair.values()).count(option)),
        )
        fold_of_pair[pair] = fold
        for key in measured[pair]:
            counts[key][fold] += 1
    return fold_of_pair
