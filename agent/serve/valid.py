"""Small bodies as typed objects; what is wrong with one is said in one line."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ...tools.errors import InputError
from ...tools.input.strict_json import parse
from ...tools.input.strict_values import MAX_WRAPPED_DEPTH
from ..operations.operation import faults_of
from .refusals import RefusalError

M = TypeVar("M", bound=BaseModel)


def valid(model: type[M], body: bytes) -> M:
    """`body` as `model`.

    Raises:
        RefusalError: it is none.
    """
    try:
        return model.model_validate(parse(body, "the body", most_depth=MAX_WRAPPED_DEPTH))
    except ValidationError as error:
        raise RefusalError(400, "input", "; ".join(faults_of(error))) from None
    except InputError as error:
        raise RefusalError(400, "input", str(error)) from None
