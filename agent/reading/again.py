"""A recorded reading done again without a model: the rules anew, the answer out of the recording."""

from __future__ import annotations

from collections.abc import Iterator

from ...tools.language.errors import RequestError
from ...tools.language.said import Said
from ..loop.budget import Budget
from ..loop.transcript import RecordedReading
from ..model.client import ModelClient
from .reader import ModelReader


def read_again(recorded: RecordedReading, client: ModelClient, budget: Budget, max_output_tokens: int) -> Iterator[str]:
    """Differences from `recorded` when `client` answers as it did then; what that takes is charged to `budget`.

    Raises:
        InputError: a recorded answer cannot be read.
    """
    reader = ModelReader(
        client,
        budget.limits,
        budget.deadline,
        prices=budget.prices,
        with_schema=recorded.with_schema,
        max_output_tokens=max_output_tokens,
        fence=lambda: recorded.fence,
    )
    reader.budget = budget
    said: Said | None = None
    refusal: str | None = None
    try:
        said = reader.read(recorded.source, recorded.why_not)
    except RequestError as error:
        refusal = str(error)
    if said != recorded.said or refusal != recorded.refusal:
        yield "the request is understood otherwise today"
