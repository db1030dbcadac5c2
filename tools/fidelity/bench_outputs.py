"""Reads what engines' benchmark clients write as situations and measured figures.

vLLM's `bench serve --save-result` (one JSON object, or several with `--append-result`) and SGLang's `bench_serving`
(JSON Lines), by the keys of their public documentation and output. Such a file says how requests arrived and what users
saw; `Served` states what it ran on, where the file does not. Lengths are the means of the run, and uniform around them
where the file lists them; a cap on requests in flight that binds makes a closed loop. A run with failed requests,
speculative decoding, images or a changing rate is refused by name. All input is hostile: bounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.models import find_model
from ..errors import InputError
from ..performance.serving.load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from .bench_json import MOST, Client, Output, outputs
from .situation import Figure, Refused, Situation, architecture_of, check_lengths, situation_of
from .table import Degree, MeasuredRow

# With a larger share of failed requests a run is not under the load that it states.
_MOST_FAILED = 0.02
# Below this share of the stated rate, the cap on requests in flight holds them back.
_HELD_BACK = 0.9
_VLLM_ENGINES = ("vllm", "openai", "openai-chat", "openai-embeddings")

# The figure of a situation, by the keys under which clients give its mean (milliseconds, tokens per second).
_FIGURES: Mapping[Figure, tuple[str, ...]] = {
    "ttft_ms": ("mean_ttft_ms",),
    "tpot_ms": ("mean_tpot_ms", "mean_itl_ms"),
    "e2e_ms": ("mean_e2el_ms", "mean_e2e_latency_ms"),
    "output_tok_s": ("output_throughput",),
}
_DEGREES: Mapping[str, tuple[str, ...]] = {
    "tp": ("tp", "tp_size", "tensor_parallel_size"),
    "pp": ("pp", "pp_size", "pipeline_parallel_size"),
    "ep": ("ep", "ep_size"),
    "dp": ("dp", "dp_size", "data_parallel_size"),
}


class Served(Struct, frozen=True):
    """What served a run, as its owner states it; `None`: the file must say it.

    `nodes`, `gpus_per_node` and `accelerator` are those of the deployment. `weights` and `kv_cache` are number formats;
    weights that nobody states are the checkpoint's.
    """

    accelerator: str | None = None
    nodes: int = 1
    gpus_per_node: int = 1
    model: str | None = None
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None
    weights: str | None = None
    kv_cache: str | None = None
    engine: str | None = None
    engine_version: str | None = None


class Run(Struct, frozen=True):
    """One benchmark run: its situation, what was measured by figure, and what had to be assumed of it."""

    name: str
    situation: Situation
    measured: Mapping[Figure, float]
    assumptions: tuple[str, ...] = ()


def read_runs(text: str, where: str, served: Served) -> tuple[Run, ...]:
    """The runs of a benchmark client's output.

    Raises InputError: it is too large or no such output, a run cannot be modelled, or a fact is said nowhere.
    """
    return tuple(_run(output, count, served) for count, output in enumerate(outputs(text, where), start=1))


def run_name(number: int, arrivals: Arrivals) -> str:
    """How reports call a run: its number and its load."""
    match arrivals:
        case ClosedLoop(users=users):
            load = "1 user" if users == 1 else f"{users} users"
        case OpenLoop(rate_per_s=rate):
            load = f"{rate:g}/s"
        case Burst(requests=requests):
            load = f"{requests} at once"
        case StaticBatch(sequences=sequences):
            load = f"batch {sequences}"
    return f"{number}: {load}"


def _run(output: Output, number: int, served: Served) -> Run:
    client = output.client
    _check(output)
    assumptions: list[str] = []
    row = _row(output, client, served, assumptions)
    situation = situation_of(row)
    if isinstance(situation, Refused):
        raise output.refuse(situation.reason)
    arrivals, lengths = _arrivals(output, assumptions), _lengths(output, assumptions)
    deployment = replace(situation.deployment, nodes=served.nodes, gpus_per_node=served.gpus_per_node)
    try:
        check_lengths(deployment, lengths)
    except InputError as error:
        raise output.refuse(str(error)) from None
    measured: dict[Figure, float] = {
        figure: value for figure, keys in _FIGURES.items() if (value := output.number(*keys)) is not None
    }
    if not measured:
        raise output.refuse(f"none of {', '.join(key for keys in _FIGURES.values() for key in keys)} is in it")
    if lengths.output_tokens <= 1:
        measured.pop("tpot_ms", None)
    loaded = Situation(deployment, arrivals, lengths, "ttft_ms")
    return Run(run_name(number, arrivals), loaded, measured, tuple(assumptions))


def _check(output: Output) -> None:
    """Refuse what the model of serving does not know."""
    sent, completed = output.number("num_prompts"), output.needed("completed")
    failed = output.number("failed") or (0.0 if sent is None else max(0.0, sent - completed))
    if failed > _MOST_FAILED * (completed + failed):
        raise output.refuse(f"{failed:.0f} of {completed + failed:.0f} requests failed: not a run to learn from")
    if (output.number("accept_length") or 1.0) > 1.0:
        raise output.refuse("speculative decoding (accept_length above 1) is not modelled")
    if output.number("total_input_vision_tokens"):
        raise output.refuse("images are not modelled (total_input_vision_tokens)")
    if output.text("ramp_up_strategy"):
        raise output.refuse("a rate that ramps up is not modelled (ramp_up_strategy)")


def _arrivals(output: Output, assumptions: list[str]) -> Arrivals:
    requests = round(output.number("num_prompts") or output.needed("completed"))
    rate = output.found.get("request_rate", "inf")
    most = output.number("max_concurrency")
    users = None if most is None else max(1, min(round(most), requests))
    if rate in ("inf", "Infinity") or (isinstance(rate, float) and math.isinf(rate)):
        return Burst(requests) if users is None else ClosedLoop(users, requests)
    if not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 < rate <= MOST:
        raise output.refuse(f"request_rate {str(rate)[:40]!r} is neither a rate nor inf")
    reached = output.number("request_throughput") or output.needed("completed") / output.needed("duration")
    if users is not None and reached < _HELD_BACK * rate:
        assumptions.append(f"max_concurrency {users} held the rate of {rate:g}/s back: a closed loop")
        return ClosedLoop(users, requests)
    if (output.number("burstiness") or 1.0) != 1.0:
        assumptions.append("arrivals are taken for a Poisson process, whatever burstiness says")
    return OpenLoop(float(rate), requests)


def _lengths(output: Output, assumptions: list[str]) -> Lengths:
    """Nominal lengths and their spread: from lists of them, SGLang's range ratio, or none."""
    completed = output.needed("completed")
    sent, received = output.needed("total_input_tokens") / completed, output.needed("total_output_tokens") / completed
    lists = [output.lengths("input_lens"), output.lengths("output_lens")]
    ratio = output.found.get("random_range_ratio")
    is_random = (output.text("dataset_name") or "").startswith("random")
    if all(lists):
        spread = fmean(_spread(lengths) for lengths in lists)
    elif is_random and isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 <= ratio <= 1:
        spread = 1.0 - float(ratio)
    else:
        spread = 0.0
        assumptions.append("all requests have the mean lengths: the file lists none")
    mean_share = 1.0 - spread / 2.0
    return Lengths(max(1, round(sent / mean_share)), max(1, round(received / mean_share)), spread)


def _spread(lengths: Sequence[float]) -> float:
    """The spread of the uniform distribution with mean and deviation of `lengths`, whose end is mean + sqrt(3) sd."""
    half = math.sqrt(3.0) * pstdev(lengths)
    return min(1.0, 2.0 * half / (fmean(lengths) + half)) if half else 0.0


def _row(output: Output, client: Client, served: Served, assumptions: list[str]) -> MeasuredRow:
    """The deployment of a run as a row of the measured table; its load is a placeholder."""
    if served.accelerator is None:
        raise output.refuse("it does not say on what it ran: --hardware NODESxGPUS:ACCELERATOR")
    model = served.model or output.text("model_id") or output.text("model_path", output.server)
    if model is None:
        raise output.refuse("it does not say which model it ran: --model")
    gpus = served.nodes * served.gpus_per_node
    counts = {name: _degree(output, name, getattr(served, name)) for name in _DEGREES}
    if counts["tp"] is None and gpus == 1:
        counts["tp"] = 1
    if counts["tp"] is None:
        raise output.refuse(f"it does not say how the model was cut over {gpus} GPUs: --tp (--pp, --ep, --dp)")
    engine = served.engine or _engine(output, client)
    degrees = {name: None if count is None else Degree(count, count) for name, count in counts.items()}
    return MeasuredRow(
        line=1,
        id="own",
        source="own",
        published="",
        framework=engine,
        framework_version=served.engine_version or output.text("version", output.server) or "",
        model=model,
        weights=served.weights or _native_weights(output, model, assumptions),
        kv_cache=served.kv_cache or "",
        gpu=served.accelerator,
        gpus=gpus,
        tp=degrees["tp"],
        pp=degrees["pp"],
        ep=degrees["ep"],
        dp=degrees["dp"],
        disaggregated=False,
        input_tokens=1,
        output_tokens=1,
        load="1",
        metric="ttft_ms",
        value=1.0,
        statistic="mean",
        notes="",
    )


def _degree(output: Output, name: str, stated: int | None) -> int | None:
    reported = output.count(_DEGREES[name])
    if stated is not None and reported is not None and stated != reported:
        raise output.refuse(f"it says {name} {reported}, --{name} says {stated}")
    return stated or reported


def _engine(output: Output, client: Client) -> str:
    """The engine that was asked: SGLang's client names it, vLLM's measures vLLM unless told otherwise."""
    backend = output.text("backend") or client
    return "vllm" if client == "vllm" and backend in _VLLM_ENGINES else backend


def _native_weights(output: Output, model: str, assumptions: list[str]) -> str:
    try:
        native = architecture_of(find_model(model).name).native_precision
    except InputError as error:
        raise output.refuse(f"{error} (--model names it)") from None
    assumptions.append(f"weights are in the checkpoint's own format, {native} (--precision says otherwise)")
    return native
