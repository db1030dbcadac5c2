"""Bases of models that are data and no more: what was validated does not change, and no field is unknown."""

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Frozen(BaseModel):
    """Base of models: immutable, no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Sparse(Frozen):
    """A frozen model that writes no field that is absent: `null` is never printed."""

    @model_serializer(mode="wrap")
    def _drop_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}
