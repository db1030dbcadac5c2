"""How a deployment is asked for on the command line: words, briefs and options, alike for every command that plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tools.engines.names import KNOWN
from ...tools.input.strict_values import check_text
from ...tools.plan.latency_limits import LATENCY_LIMITS
from .flags import (
    COUNT,
    DTYPE,
    INPUT,
    LATENCY,
    OBJECTIVE,
    PRECISION,
    PRICE,
    RELAXATION,
    REQUEST_COUNT,
    SAID_HARDWARE,
    SEED,
    TEXT,
    TOKEN_COUNT,
    inline_config,
    own_calibration,
    take_stdin,
    with_options,
)
from .load_flags import LOAD, lengths_of, prefixes_of
from .online_flag import online_option
from .streams import MAX_REQUEST_BYTES, STANDARD, read_stdin

if TYPE_CHECKING:
    from ...tools.language.said import Said
    from ...tools.plan.kv_offload import KVOffload
    from ...tools.traffic.trace import Trace
    from ..intent.intent import Intent
    from ..reading.reader import ModelReader

# Option -> field of `Said`, where the value is taken over as it is.
_FIELDS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "concurrency": "concurrency",
    "request_rate": "request_rate",
    **{limit.figure: limit.field for limit in LATENCY_LIMITS},
    "objective": "objective",
    "kv_precision": "kv_cache",
    "activation_precision": "activations",
    "usd_per_gpu_hour": "usd_per_gpu_hour",
    "rules": "rules",
    "max_batch": "max_batch",
    "reserve_replicas": "reserve_replicas",
    "headroom": "headroom",
}
# Options on the load.
_LOAD = (
    click.option("--input-tokens", type=TOKEN_COUNT, help="Prompt length; k is 1024."),
    click.option("--output-tokens", type=TOKEN_COUNT, help="Tokens to generate; k is 1024."),
    click.option("--concurrency", type=REQUEST_COUNT, help="Requests in flight, over the whole deployment."),
    *LOAD,
)
# Options on the model, the hardware, the load and its limits, and the formats.
_SETTING = (
    click.option("--model", type=TEXT, help="Catalogue name, path of a config.json, or a config in JSON."),
    click.option(
        "--hardware", type=SAID_HARDWARE, metavar="NODESxGPUS:ACCELERATOR", help="For example 2x8:h100-sxm, or 16xH100."
    ),
    *_LOAD,
    click.option("--ttft-ms", type=LATENCY, help="Time to first token at most."),
    click.option("--tpot-ms", type=LATENCY, help="Time per output token at most."),
    click.option("--end-to-end-ms", type=LATENCY, help="Time until the whole answer is there, at most."),
    click.option("--objective", type=OBJECTIVE, metavar="latency|throughput|cost", help="What to make best."),
    click.option(
        "--precision",
        type=PRECISION,
        metavar="FORMAT|any",
        help="Number format of the weights; any, or several with commas, to search them and choose the best.",
    ),
    click.option("--kv-precision", type=DTYPE, help="Number format of the KV cache."),
    click.option("--activation-precision", type=DTYPE, help="Number format of the activations."),
)
_TRACE = (
    click.option(
        "--trace", type=INPUT, metavar="FILE", help="Requests as they were: Mooncake, Azure, BurstGPT, results, logs."
    ),
    click.option("--trace-sample", type=COUNT, help="Requests of the trace that are drawn from; 1000 where left out."),
    click.option("--trace-seed", type=SEED, help="Which of them: a number that the sample is drawn with."),
    click.option(
        "--trace-window",
        type=click.Choice(("busiest", "whole")),
        help="busiest, where left out: the busiest hour is planned for; whole: the mean of all.",
    ),
)
# How it is to be split.
_CHOICES = (
    click.option(
        "--constraint",
        type=TEXT,
        multiple=True,
        metavar="LINE",
        help="What the plan must keep: 'tp <= 4', 'no pp', 'reserved_nodes = 1', …; may be repeated.",
    ),
    click.option("--relax", type=RELAXATION, multiple=True, help="Allow a named relaxation; may be repeated."),
    click.option(
        "--engine",
        type=TEXT,
        metavar="NAME[==VERSION]|none",
        help=f"What serves it: {', '.join(KNOWN)}; none: a plan on paper, that no engine has to start.",
    ),
    click.option(
        "--max-batch",
        type=REQUEST_COUNT,
        help="Requests that each scheduler of the engine runs at once at most; where left out, by itself or as many as "
        "the load has.",
    ),
    click.option(
        "--rules",
        type=click.Choice(("strict", "engine")),
        help="engine: allow all relaxations that the engine has settings for, not only what it does by itself.",
    ),
    click.option(
        "--brief",
        type=INPUT,
        multiple=True,
        help="Deployment brief (Markdown, YAML, JSON); may be repeated.",
    ),
)
_FIGURES = (
    click.option("--usd-per-gpu-hour", type=PRICE, help="Price, for the cost per million tokens."),
    own_calibration,
    online_option,
)


def asks(command: Callable[..., Any]) -> Callable[..., Any]:
    """REQUEST and the options that say what to plan, as parameters of `command`; `asked` reads them."""
    request = click.argument("request", nargs=-1, type=TEXT)
    return with_options(command, (request, *_SETTING, *_TRACE, *_CHOICES, *_FIGURES))


def says_setting(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what is deployed, not how it is split, as parameters of `command`."""
    return with_options(command, (*_SETTING, *_TRACE, *_FIGURES))


def takes_load(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that state another load or name a trace, as parameters of `command`.

    `said_of_options` and `trace_of` read them.
    """
    return with_options(command, (*_LOAD, *_TRACE))


def trace_of(path: Path, options: dict[str, Any]) -> Trace:
    """The trace at `path`, sampled as the options say.

    Raises:
        InputError: it cannot be read.
    """
    from ...tools.traffic.trace import read_trace, sampling

    stated = (options.get(f"trace_{name}") for name in ("sample", "seed", "window"))
    return read_trace(path, **sampling(*stated))


def asked(
    request: tuple[str, ...],
    brief: tuple[Path, ...],
    calibration: Path | None,
    options: dict[str, Any],
    verb: str,
    reader: ModelReader | None = None,
) -> Intent:
    """The intent that the call states; `verb` is what the command does with it, `reader` the model that reads it too.

    Raises:
        UsageError: nothing is asked, or standard input is named twice.
        InputError: what is asked cannot be read or completed.
    """
    words = request_text(request)
    said = said_of_options(options)
    if words is None and not brief and said.model is None and said.model_config_object is None:
        raise click.UsageError(f"say what to {verb}: a REQUEST in words, --brief FILE or --model NAME")
    from ..stated.request import intent_of

    return intent_of(words, brief=brief, flags=said, calibration=calibration, reader=reader)


def request_text(parts: tuple[str, ...]) -> str | None:
    """The REQUEST of a call in one text; `None` if there is no argument.

    Raises:
        InputError: it is too long or not UTF-8.
    """
    if not parts:
        return None
    if parts == (STANDARD,):
        take_stdin("REQUEST", click.get_current_context())
        return read_stdin(MAX_REQUEST_BYTES)
    return check_text(" ".join(parts), "the request")


# Fields as options state them, with the option as it was written.
Stated = tuple[dict[str, Any], str]


def said_of_options(options: dict[str, Any]) -> Said:
    """The statements of the call's options, each field with the option that it came from.

    Raises:
        InputError: an inline model config is not a JSON object.
    """
    from ...tools.language.said import Said

    fields: dict[str, Any] = {}
    words: dict[str, str] = {}
    for stated, written in (*_stated_setting(options), *_stated_load(options), *_stated_choices(options)):
        fields |= stated
        words |= dict.fromkeys(stated, written)
    return Said(**fields, words=words)


def _stated_setting(options: dict[str, Any]) -> Iterator[Stated]:
    """Fields that are read as they stand, formats, engine, hardware and model."""
    for option, field in _FIELDS.items():
        value = options.get(option)
        if value is not None:
            yield {field: value}, f"--{option.replace('_', '-')} {value}"
    precision: str | None = options.get("precision")
    if precision is not None:
        from ..intent.formats import said_weights

        yield said_weights(precision), f"--precision {precision}"
    engine: str | None = options.get("engine")
    if engine is not None:
        from ..stated.arguments import said_engine

        yield said_engine(engine), f"--engine {engine}"
    hardware: tuple[str, dict[str, Any]] | None = options.get("hardware")
    if hardware is not None:
        yield hardware[1], f"--hardware {hardware[0]}"
    model: str | None = options.get("model")
    if model is not None:
        inline = inline_config(model, "--model")
        if inline is None:
            yield {"model": model}, f"--model {model}"
        else:
            yield {"model_config_object": inline}, "--model {…}"


def _stated_load(options: dict[str, Any]) -> Iterator[Stated]:
    """Lengths, shared prefixes, what is offloaded, a trace and the rates of a day."""
    if (lengths := lengths_of(options)) is not None:
        flags = [f"--{side}-percentiles" for side in ("input", "output") if lengths.covers(side)]
        yield {"lengths": lengths}, " ".join(flags)
    if (prefixes := prefixes_of(options)) is not None:
        values = ("--system-prompt", prefixes.system_tokens), ("--turns", prefixes.turns)
        yield {"prefixes": prefixes}, " ".join(f"{flag} {value}" for flag, value in values if value is not None)
    offload: KVOffload | None = options.get("kv_offload")
    if offload is not None:
        yield {"kv_offload": offload}, f"--kv-offload {offload.bytes_per_gpu / 1e9:g}"
    trace: Path | None = options.get("trace")
    read = None if trace is None else trace_of(trace, options)
    if read is not None:
        from ..stated.arguments import said_trace

        yield said_trace(read), "--trace"
    curve: str | None = options.get("rate_curve")
    if curve is not None:
        from ..stated.curve import stated_curve

        yield {"rate_curve": stated_curve(curve, read)}, f"--rate-curve {curve[:60]}"


def _stated_choices(options: dict[str, Any]) -> Iterator[Stated]:
    """The options on what the plan may and must do."""
    if options.get("relax"):
        names = tuple(dict.fromkeys(options["relax"]))
        yield {"relaxations": names}, " ".join(f"--relax {name}" for name in names)
    if options.get("constraint"):
        from ..stated.constraints import stated_constraints

        lines: tuple[str, ...] = options["constraint"]
        yield {"constraints": stated_constraints(lines)}, " ".join(f"--constraint '{line}'" for line in lines)
