"""The options that say how requests come and how their lengths spread, alike for every command that has a load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...tools.errors import InputError
from ...tools.input.bounds import REQUESTS_PER_S, TOKENS, TURNS
from .flags import LimitType

if TYPE_CHECKING:
    from ...tools.plan.kv_offload import KVOffload
    from ...tools.plan.lengths import Percentiles, RequestLengths
    from ...tools.plan.prefixes import SharedPrefixes

_SIDES = ("input", "output")
_OWN = {"request_rate": "rate", "concurrency": "rate"}


class PercentilesType(click.ParamType):
    """Lengths by percentiles: `p50=1k,p95=8k`; k is 1024."""

    name = "percentiles"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Percentiles:
        """`value` as the plan format has it."""
        from ...tools.language.patterns.quantities import read_number
        from ...tools.language.writing.normal_form import normalise
        from ...tools.plan.lengths import Percentiles
        from ..stated.arguments import checked

        points: list[tuple[float, int]] = []
        for part in str(value)[:2000].split(","):
            percent, mark, tokens = (piece.strip() for piece in part.partition("="))
            share, length = (read_number(normalise(figure)) for figure in (percent.removeprefix("p"), tokens))
            if not mark or share is None or length is None or length != length // 1:
                self.fail(f"{value!r}: percentiles such as p50=1k,p95=8k are expected", param, ctx)
            points.append((float(share), int(length)))
        try:
            return checked(Percentiles, {"percentiles": points}, "percentiles")
        except InputError as error:
            self.fail(str(error), param, ctx)


class TokensType(click.ParamType):
    """A number of tokens: `6000` or `6k`; k is 1024."""

    name = "tokens"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """`value` as a whole number of tokens."""
        from ...tools.language.patterns.quantities import read_whole
        from ...tools.language.writing.normal_form import normalise

        tokens = read_whole(normalise(str(value)[:40]))
        if tokens is None or not TOKENS.hold(tokens):
            self.fail(f"{value!r}: a number of tokens such as 6000 or 6k is expected", param, ctx)
        return tokens


class OffloadType(click.ParamType):
    """Memory of the host for the KV cache, in GB per GPU, and in GB/s its link: `200`, or `200@50`."""

    name = "offload"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> KVOffload:
        """`value` as the plan format has it."""
        from ...tools.plan.kv_offload import KVOffload
        from ..stated.arguments import checked

        size, mark, speed = str(value)[:40].partition("@")
        try:
            fields: dict[str, float] = {"bytes_per_gpu": round(float(size) * 1e9)}
            fields |= {"host_bw_gb_s": float(speed)} if mark else {}
            return checked(KVOffload, fields, "--kv-offload")
        except InputError as error:
            self.fail(str(error), param, ctx)
        except (ValueError, OverflowError):
            expected = "GB of host memory per GPU, such as 200, or 200@50 over 50 GB/s, are expected"
            self.fail(f"{value!r}: {expected}", param, ctx)


LOAD = (
    click.option(
        "--request-rate",
        type=LimitType(REQUESTS_PER_S),
        metavar="PER_SECOND",
        help="Requests per second that come, in place of --concurrency.",
    ),
    *(
        click.option(
            f"--{side}-percentiles",
            type=PercentilesType(),
            metavar="p50=TOKENS,p95=TOKENS",
            help=f"How the lengths of {noun} spread, by two percentiles or more; k is 1024.",
        )
        for side, noun in zip(_SIDES, ("prompts", "answers"), strict=True)
    ),
    click.option(
        "--system-prompt",
        type=TokensType(),
        metavar="TOKENS",
        help="Tokens with which all prompts begin, for a prefix cache to find; k is 1024.",
    ),
    click.option(
        "--turns",
        type=click.IntRange(int(TURNS.least), int(TURNS.most)),
        metavar="N",
        help="Turns of a conversation, each of which repeats all before it; prompts are as long as stated on average.",
    ),
    click.option(
        "--kv-offload",
        type=OffloadType(),
        metavar="GB[@GB/S]",
        help="Host memory per GPU that keeps KV cache; blocks come back over the accelerator's own link, or at GB/S.",
    ),
)


def lengths_of(options: dict[str, Any]) -> RequestLengths | None:
    """The spreads that the options state.

    Raises:
        UsageError: a trace states them too.
    """
    from ...tools.plan.lengths import RequestLengths

    stated = {side: spread for side in _SIDES if (spread := options.get(f"{side}_percentiles")) is not None}
    if stated and options.get("trace") is not None:
        raise click.UsageError(f"--trace has its own lengths; leave out --{next(iter(stated))}-percentiles")
    return RequestLengths(**stated) if stated else None


def prefixes_of(options: dict[str, Any]) -> SharedPrefixes | None:
    """The shared prefixes that the options state.

    Raises:
        UsageError: a trace states it too.
    """
    from ...tools.plan.prefixes import SharedPrefixes

    stated = {"system_tokens": options.get("system_prompt"), "turns": options.get("turns")}
    if all(value is None for value in stated.values()):
        return None
    if options.get("trace") is not None:
        raise click.UsageError("--trace has its own requests; leave out --system-prompt and --turns")
    return SharedPrefixes(**stated)


def refuse_beside_trace(options: dict[str, Any]) -> None:
    """Check that a trace takes the place of the whole load.

    Raises:
        UsageError: a part of it is stated too.
    """
    if options["trace"] is None:
        return
    lengths_of(options)
    prefixes_of(options)
    for name in ("request_rate", "concurrency", "input_tokens", "output_tokens"):
        if options[name] is not None:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--trace has its own {_OWN.get(name, 'lengths')}; leave out --{flag}")
