"""Kubernetes objects of an export, checked against their schemas."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from shardwright.tools.export.result import Export

# Strict schemas of the fields that exports write, from the definitions of LeaderWorkerSet and DisaggregatedSet (v0.10),
# DynamoGraphDeployment (v1beta1) and Kubernetes 1.33.
SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "kubernetes_schema.json").read_text(encoding="utf-8")
)
_FORMS = {
    kind: jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], **form})
    for kind, form in SCHEMA.items()
    if kind != "$defs"
}


def objects_of(result: Export) -> list[dict[str, Any]]:
    """The objects of an export, each valid by its schema."""
    assert result.text is not None
    return _objects(result.text)


@cache
def _objects(text: str) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(text))
    for manifest in objects:
        _FORMS[manifest["kind"]].validate(manifest)
    return objects
