"""`explain`: a topic, a rule or a question answered from the knowledge base."""

from __future__ import annotations

import click

from .flags import COUNT, TEXT, output_format
from .streams import MAX_REQUEST_BYTES, STANDARD, read_stdin, write_answer


@click.command("explain", short_help="Answer a topic, a rule or a question from the knowledge base.")
@click.argument("question", nargs=-1, required=True, type=TEXT)
@click.option("-n", "count", type=COUNT, default=1, show_default=True, help="Show so many passages, best first.")
@click.option("--all", "every", is_flag=True, help="Show every passage that speaks of it, best first.")
@output_format
def explain_command(question: tuple[str, ...], count: int, every: bool, output_format: str) -> int:
    """Print the passage that answers QUESTION (a topic, the id of a rule, or words), with its citation.

    English and Chinese are understood; no language model is used. Exit 1 where the knowledge base does not speak of it.
    """
    from ..explain import MAX_ANSWERS, explain
    from ..report.explain import render_explanation

    asked = " ".join(question)
    explanation = explain(
        read_stdin(MAX_REQUEST_BYTES) if asked == STANDARD else asked, MAX_ANSWERS if every else count
    )
    write_answer(explanation, output_format, render_explanation)
    return explanation.exit_status
