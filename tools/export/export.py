"""A plan as what runs it: judged for the engine, then written as its launch commands, or refused with the reasons.

The plan is judged as one that names the engine of the target, whatever it names itself: the rules on engines (EN) say
what that engine cannot run, and repair finds the nearest plan that it can. What the rules leave to the commands (where
an engine puts its ranks) is refused by the exporter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..autofix.autofix import autofix
from ..engines.defaults import engine_relaxations
from ..engines.names import DEFAULT_ENGINE, ENGINES, engine_of
from ..errors import InputError
from ..performance.estimate import estimate
from ..performance.layout import LoadedLayout, layout_from_view
from ..plan.canonical import content_hash
from ..plan.collector import collector_paused
from ..plan.describe import describe
from ..plan.document import Plan
from ..plan.elements import as_mapping, as_str
from ..plan.performance import Benchmark
from ..plan.reader import ReadDocument, read_document, read_sound
from ..validate import validate_read
from . import sglang, trtllm, vllm
from .kubernetes import manifests
from .result import Export, TargetName
from .script import script
from .server import servers_of
from .settings import settings_of
from .target import CannotExportError, Commands, Target, Written

_ENGINES: Mapping[str, Target] = {one.name: one for one in (vllm.TARGET, sglang.TARGET, trtllm.TARGET)}
# What a plan may be exported to: an engine's own script, or objects that run the engine of the plan.
TARGETS: tuple[TargetName, ...] = ("vllm", "sglang", "trtllm", "kubernetes")
_MOST_REASONS = 8
_MISSED_LIMIT = "PE010"


def export(document: Mapping[str, Any] | str | Path | Plan, to: str) -> Export:
    """What runs a plan (an object, a JSON text, the path of a file, a `Plan`) on the target `to`.

    The target is an engine, or `kubernetes`: then the engine is the plan's, or vLLM where it names none.

    Raises:
        InputError: there is no such target, or no plan can be read.
    """
    name = next((one for one in TARGETS if one == to), None)
    if name is None:
        raise InputError(f"no target {to[:60]!r}: one of {', '.join(TARGETS)}")
    with collector_paused():
        read = read_document(document)
        if read.plan is None:
            raise InputError(f"no plan document: {read.faults[0].message} (shardwright validate lists what is wrong)")
        given = read.plan
        engine = None if given.serving is None else engine_of(given.serving.engine)
        target = _ENGINES.get(name) or _ENGINES.get(engine or DEFAULT_ENGINE)
        if target is None:
            raise InputError(f"no commands of {engine} are known: name one of {', '.join(_ENGINES)}")
        found = _exported(_named(given, target), target, manifests if name == "kubernetes" else script)
        return found.model_copy(update={"target": name, "content_hash": content_hash(given)})


def _named(plan: Plan, target: Target) -> dict[str, Any]:
    """The document of `plan` with the target's engine in the place of any other."""
    raw = plan.model_dump(mode="json")
    serving = as_mapping(raw.get("serving"))
    if engine_of(as_str(serving.get("engine"))) != target.name:
        serving = {name: value for name, value in serving.items() if name != "engine_version"}
        raw["serving"] = {**serving, "engine": target.name}
        # What it claims was of another engine.
        raw.pop("performance", None)
    return raw


def _exported(raw: dict[str, Any], target: Target, write: Callable[[Written], str]) -> Export:
    read = read_sound(raw)
    errors = [one for one in validate_read(read).violations if one.severity == "error"]
    # A limit that this engine does not hold keeps nobody from running the plan.
    missed = tuple(one.message for one in errors if one.rule == _MISSED_LIMIT)
    reasons = tuple(dict.fromkeys(f"{one.rule}: {one.message}" for one in errors if one.rule != _MISSED_LIMIT))
    if reasons:
        return _refused(raw, target, reasons, _nearest(raw, target))
    try:
        return _written(read, target, missed, write)
    except CannotExportError as reason:
        return _refused(raw, target, (str(reason),), None)


def _refused(
    raw: Mapping[str, Any], target: Target, reasons: Sequence[str], nearest: tuple[str, dict[str, Any]] | None
) -> Export:
    more = len(reasons) - _MOST_REASONS
    shown = (*reasons[:_MOST_REASONS], *((f"and {more} more",) if more > 0 else ()))
    strategy, plan = nearest or (None, None)
    return Export(
        target=target.name,
        engine=ENGINES[target.name].title,
        engine_version=target.version,
        content_hash="",
        strategy=describe(Plan.model_validate(raw).strategy),
        refused=shown,
        nearest=strategy,
        nearest_plan=plan,
    )


def _nearest(raw: Mapping[str, Any], target: Target) -> tuple[str, dict[str, Any]] | None:
    """The nearest plan that the engine can run, in short and as a document."""
    fixed = autofix(raw)
    if not fixed.valid or fixed.document is None:
        return None
    read = read_sound(fixed.document)
    try:
        _commands(layout_from_view(read.view), target)
    except CannotExportError:
        return None
    return (describe(read.plan.strategy), fixed.document) if read.plan is not None else None


def _commands(layout: LoadedLayout, target: Target) -> tuple[Commands, ...]:
    settings = settings_of(layout, target.makes)
    return tuple(target.commands(server, settings) for server in servers_of(layout))


def _written(read: ReadDocument, target: Target, missed: Sequence[str], write: Callable[[Written], str]) -> Export:
    plan, layout = read.plan, layout_from_view(read.view)
    assert plan is not None  # it was validated
    if plan.model.name.startswith("-"):
        raise CannotExportError(f"the model's name {plan.model.name[:60]!r} would be read as a flag")
    commands, accelerator = _commands(layout, target), layout.setting.hardware.accelerator
    benchmark = estimate(read.view).benchmark
    remarks = (*missed, *_remarks(plan, layout, target))
    by_itself = tuple(_by_itself(layout, target))
    title, strategy = ENGINES[target.name].title, describe(plan.strategy)
    card = accelerator.names[0] if accelerator.names else "GPUs"
    written = Written(
        model=plan.model.name,
        checkpoint_format=settings_of(layout, target.makes).checkpoint_format,
        image=target.image,
        gpu_resource=f"{'amd' if accelerator.vendor == 'AMD' else 'nvidia'}.com/gpu",
        servers=servers_of(layout),
        launches=tuple(one.launches for one in commands),
        files=tuple(one.files for one in commands),
        head=(
            f"{title} {target.version}: {strategy} of {plan.model.name} on {plan.hardware.nodes} x "
            f"{plan.hardware.gpus_per_node} {card}.",
            *(f"Mind: {remark}" for remark in remarks),
            *(f"By itself: {what}" for what in by_itself),
        ),
        check=tuple(_check(target, benchmark)),
        fronts=target.fronts,
    )
    return Export(
        target=target.name,
        engine=title,
        engine_version=target.version,
        content_hash="",
        strategy=strategy,
        text=write(written),
        launches=tuple(launch for one in written.launches for launch in one),
        files=tuple(file for one in written.files for file in one),
        by_itself=by_itself,
        remarks=remarks,
        benchmark=benchmark,
    )


def _by_itself(layout: LoadedLayout, target: Target) -> Iterator[str]:
    """What the engine does unasked, as far as it concerns this plan."""
    architecture = layout.setting.architecture
    is_moe = architecture.is_moe
    yield engine_relaxations(target.name, architecture)["vocab_parallel"]
    for concern, what in target.by_itself.items():
        if is_moe or concern not in ("experts", "all-to-all"):
            yield what


def _remarks(plan: Plan, layout: LoadedLayout, target: Target) -> Iterator[str]:
    """What a person has to see to before this runs as planned."""
    settings = settings_of(layout, target.makes)
    version = None if plan.serving is None else plan.serving.engine_version
    if version is not None and version != target.version:
        yield f"the plan names version {version}; these flags are those of {target.version}"
    if settings.checkpoint_format is not None:
        yield f"MODEL has to be a checkpoint in {settings.checkpoint_format}"
    if settings.quantisation is not None:
        yield f"the checkpoint is made {settings.quantisation} when it is loaded"
    if layout.is_disaggregated:
        yield "the servers of the two phases need NIXL and a network that reaches from one to the other"


def _check(target: Target, benchmark: Benchmark | None) -> Iterator[str]:
    """How to see whether what runs is what was predicted."""
    if benchmark is not None:
        yield "The check, sent to the way in (add --host and --port; --model is MODEL), and what it should print:"
        yield benchmark.command
        yield (
            f"mean TTFT {benchmark.ttft_ms:,.1f} ms, mean TPOT {benchmark.tpot_ms:,.2f} ms, output "
            f"{benchmark.output_tokens_per_s:,.0f} tokens/s (predicted of {ENGINES[target.name].title})"
        )
        yield "With what it printed: shardwright calibrate RESULTS makes the predictions your own."
