"""Objects of Kubernetes as exports write them, and the form that they have to have."""

from __future__ import annotations

import json
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


def objects_of(found: Export) -> list[dict[str, Any]]:
    """The objects of an export, each of the known form."""
    assert found.text is not None
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(found.text))
    for one in objects:
        jsonschema.validate(one, {"$defs": SCHEMA["$defs"], **SCHEMA[one["kind"]]})
    return objects
