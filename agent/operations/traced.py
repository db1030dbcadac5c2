"""A trace of requests in a question: its text, never a path, and which sample of it is drawn."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...tools.traffic.trace import MOST_TEXT_CHARACTERS, Trace, TraceWindow, sampling, trace_of_text
from .operation import Question


class Traced(Question):
    """What may be asked for a trace in place of a stated load."""

    trace: Annotated[str, Field(max_length=MOST_TEXT_CHARACTERS)] | None = Field(
        None, description="The text of a trace of requests: Mooncake, Azure, BurstGPT, results, logs with token counts."
    )
    trace_sample: int | None = Field(None, description="Requests of the trace that are drawn from, 1 to 1000.")
    trace_seed: int | None = Field(None, description="Which of them: a number that the sample is drawn with.")
    trace_window: TraceWindow | None = Field(
        None, description="busiest (where left out): plan for its busiest hour; whole: for the mean of all."
    )

    def read_trace(self) -> Trace | None:
        """The trace, where there is one.

        Raises:
            InputError: it cannot be read.
        """
        if self.trace is None:
            return None
        return trace_of_text(self.trace, **sampling(self.trace_sample, self.trace_seed, self.trace_window))
