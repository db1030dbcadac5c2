"""Objects of Kubernetes as exports write them, and the form that they have to have."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from shardwright.tools.export.result import Export

# The fields of these objects, strict: of the definitions of LeaderWorkerSet and DisaggregatedSet (v0.10), of
# DynamoGraphDeployment (v1beta1) and of Kubernetes 1.33, as far as they are written.
SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "kubernetes_schema.json").read_text(encoding="utf-8")
)
_FORMS = {
    kind: jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], **form})
    for kind, form in SCHEMA.items()
    if kind != "$defs"
}


def objects_of(found: Export) -> list[dict[str, Any]]:
    """The objects of an export, each of the known form."""
    assert found.text is not None
    return _objects(found.text)


@cache
def _objects(text: str) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(text))
    for one in objects:
        _FORMS[one["kind"]].validate(one)
    return objects
