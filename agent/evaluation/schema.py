"""The JSON Schema of dataset files, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...tools.frozen import Frozen
from .case import Case


class DatasetFile(Frozen):
    """A file of cases: what they are, and the cases. `$schema` names this schema, for editors."""

    schema_: str = Field(default="", alias="$schema")
    about: str = ""
    cases: tuple[Case, ...]


def dataset_schema() -> dict[str, Any]:
    """The schema of a file of cases."""
    schema = DatasetFile.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "shardwright dataset", **schema}
