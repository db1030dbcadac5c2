"""Constraints as programs and options state them: `tp <= 4`, `no pp`, `decode ep = 8`, `tp within node`, as data.

One line a constraint; what people write in sentences is read in `tools/language/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from ...tools.catalog.hardware import find_accelerator
from ...tools.errors import InputError, expect
from ...tools.plan.constraints import Constraint, DegreeName, Primitive

ConstraintArgument = str | Mapping[str, object] | Constraint
FORMS = (
    "[prefill|decode] tp <= 4, tp = 4, no tp; [prefill|decode] replicas = 2, replicas >= 2; reserved_gpus = 2; "
    "reserved_nodes = 1; "
    "free_gb_per_gpu = 10; usd_per_hour <= 40; tp within node; pp across nodes; accelerators = h100-sxm, l40s"
)
_DEGREES, _PRIMITIVES = "|".join(get_args(DegreeName)), "|".join(get_args(Primitive))
_REPLICAS = re.compile(r"(?:(?P<phase>prefill|decode) )?replicas ?(?P<relation>[<>]=)?=? ?(?P<count>\d{1,6})")
_RESERVED = re.compile(r"(?P<kind>reserved_gpus|reserved_nodes) ?=? ?(?P<count>\d{1,6})")
_FREE = re.compile(r"free_gb_per_gpu ?=? ?(?P<gb>\d{1,4}(?:\.\d{1,3})?)")
_BOUND = re.compile(
    rf"(?:(?P<phase>prefill|decode) )?(?P<name>{_DEGREES}) ?(?P<relation><=|==?) ?(?P<degree>\d{{1,6}})"
)
_FORBIDDEN = re.compile(rf"(?:(?P<phase>prefill|decode) )?no (?P<name>{_DEGREES})")
_PLACED = re.compile(rf"(?P<name>{_PRIMITIVES}) (?P<kind>within node|across nodes)")
_BUDGET = re.compile(r"usd_per_hour ?(?:<=|=) ?(?P<usd>\d{1,6}(?:\.\d{1,4})?)")
_CHOICE = re.compile(r"accelerators ?=? ?(?P<names>[\w. ,-]{1,400})")
_MOST = 64
_CONSTRAINT: TypeAdapter[Constraint] = TypeAdapter(Constraint)


def stated_constraints(constraints: Iterable[ConstraintArgument] | None) -> tuple[Constraint, ...] | None:
    """Each of `constraints`, a line of `FORMS` or the object of a plan's `policy.constraints`, as data.

    Raises:
        InputError: one of them is of no such form, or there are more than 64.
    """
    if constraints is None:
        return None
    expect(constraints, Iterable, "constraints", "lines such as 'tp <= 4' are expected")
    listed = [constraints] if isinstance(constraints, str) else list(constraints)
    if len(listed) > _MOST:
        raise InputError(f"constraints: at most {_MOST} are read")
    return tuple(_constraint(constraint) for constraint in listed) or None


def _constraint(stated: ConstraintArgument) -> Constraint:
    if isinstance(stated, str):
        fields: Any = {**_fields(stated), "words": stated[:500]}
    elif isinstance(stated, Mapping):
        fields = {"words": ", ".join(f"{name} {value}" for name, value in stated.items())[:500], **stated}
    else:
        fields = stated
    try:
        return _CONSTRAINT.validate_python(fields)
    except ValidationError as error:
        raise InputError(f"constraints: {error.errors()[0]['msg'][:200]}; write {FORMS}") from None


def _fields(text: str) -> dict[str, Any]:
    line = " ".join(text.lower().split())
    if match := _REPLICAS.fullmatch(line):
        count, phase = int(match["count"]), match["phase"]
        return {"kind": "replicas", "value": count, "phase": phase, "relation": match["relation"]}
    if match := _RESERVED.fullmatch(line):
        return {"kind": match["kind"], "value": int(match["count"])}
    if match := _FREE.fullmatch(line):
        return {"kind": "free_bytes_per_gpu", "value": round(float(match["gb"]) * 1e9)}
    if match := _BOUND.fullmatch(line):
        bound = {
            "name": match["name"],
            "relation": match["relation"][:2].replace("==", "="),
            "degree": int(match["degree"]),
        }
        return {"kind": "degree", "value": bound, "phase": match["phase"]}
    if match := _FORBIDDEN.fullmatch(line):
        return {"kind": "degree", "value": {"name": match["name"], "relation": "forbidden"}, "phase": match["phase"]}
    if match := _PLACED.fullmatch(line):
        return {"kind": match["kind"].replace(" ", "_"), "value": match["name"]}
    if match := _BUDGET.fullmatch(line):
        return {"kind": "usd_per_hour", "value": float(match["usd"])}
    if match := _CHOICE.fullmatch(line):
        names = tuple(find_accelerator(name.strip()).id for name in match["names"].split(","))
        return {"kind": "accelerators", "value": names}
    raise InputError(f"constraint {text[:80]!r} was not understood; write {FORMS}")
