"""`doctor`: whether an endpoint works, what it can do, and what to set."""

from __future__ import annotations

from typing import Any

import click

from .endpoint_flags import endpoint_flags, endpoint_options
from .flags import SECONDS, output_format
from .streams import write_answer


@click.command("doctor", short_help="Examine the endpoint of a language model.")
@endpoint_options
@click.option("--seconds", type=SECONDS, default=120.0, show_default=True, help="The longest that it may take.")
@output_format
def doctor_command(output_format: str, seconds: float, **options: Any) -> int:
    """Ask the configured endpoint about seven small questions: does it answer, call tools, keep a schema, stream,
    and (where it cuts prompts without a word) read a long one?

    Exit status: 0 it works, 1 it works not well enough, 3 it is down.

    \b
      OPENAI_BASE_URL=http://localhost:8000/v1 shardwright doctor --llm-model qwen2.5-72b-instruct
    """
    from ..model.settings import read_settings

    settings = read_settings(endpoint_flags(options))
    from ..model.deadline import Deadline
    from ..model.doctor import PROBE_ATTEMPTS, examine
    from ..model.endpoint import EndpointClient
    from ..report.doctor import render_doctor

    patience = min(PROBE_ATTEMPTS, settings.transport_attempts)
    client = EndpointClient(settings.model_copy(update={"transport_attempts": patience}))
    report = examine(client, Deadline.after(seconds))
    write_answer(report, output_format, render_doctor)
    return report.exit_status
