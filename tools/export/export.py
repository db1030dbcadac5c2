"""A plan as what runs it: judged for the engine, then written as its launch commands, or refused with the reasons.

The plan is judged as one that names the engine of the target, whatever it names itself: the rules on engines (EN) say
what that engine cannot run, and repair finds the nearest plan that it can. What the rules leave to the commands (where
an engine puts its ranks) is refused by the exporter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..autofix.autofix import autofix
from ..engines.defaults import engine_relaxations
from ..engines.names import ENGINES, engine_of
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
from .result import ConfigFile, Export, Launch
from .script import script
from .server import servers_of
from .settings import ServingSettings, settings_of
from .target import CannotExportError, Target, address_of, port_of

TARGETS: Mapping[str, Target] = {one.name: one for one in (vllm.TARGET, sglang.TARGET, trtllm.TARGET)}
_MOST_REASONS = 8
_MISSED_LIMIT = "PE010"


def export(document: Mapping[str, Any] | str | Path | Plan, to: str) -> Export:
    """What runs a plan (an object, a JSON text, the path of a file, a `Plan`) on the engine `to`.

    Raises:
        InputError: there is no such target, or no plan can be read.
    """
    target = TARGETS.get(to)
    if target is None:
        raise InputError(f"no target {to[:60]!r}: one of {', '.join(TARGETS)}")
    with collector_paused():
        read = read_document(document)
        if read.plan is None:
            raise InputError(f"no plan document: {read.faults[0].message} (shardwright validate lists what is wrong)")
        given = read.plan
        found = _exported(_named(given, target), target)
        return found.model_copy(update={"content_hash": content_hash(given)})


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


def _exported(raw: dict[str, Any], target: Target) -> Export:
    read = read_sound(raw)
    errors = [one for one in validate_read(read).violations if one.severity == "error"]
    # A limit that this engine does not hold keeps nobody from running the plan.
    missed = tuple(one.message for one in errors if one.rule == _MISSED_LIMIT)
    reasons = tuple(dict.fromkeys(f"{one.rule}: {one.message}" for one in errors if one.rule != _MISSED_LIMIT))
    if reasons:
        return _refused(raw, target, reasons, _nearest(raw, target))
    try:
        return _written(read, target, missed)
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


def _commands(
    layout: LoadedLayout, target: Target
) -> tuple[tuple[Launch, ...], tuple[ConfigFile, ...], ServingSettings]:
    settings = settings_of(layout, target.makes)
    made = [target.commands(server, settings) for server in servers_of(layout)]
    launches = tuple(launch for one in made for launch in one.launches)
    return launches, tuple(file for one in made for file in one.files), settings


def _written(read: ReadDocument, target: Target, missed: Sequence[str]) -> Export:
    plan, layout = read.plan, layout_from_view(read.view)
    assert plan is not None  # it was validated
    if plan.model.name.startswith("-"):
        raise CannotExportError(f"the model's name {plan.model.name[:60]!r} would be read as a flag")
    launches, files, settings = _commands(layout, target)
    benchmark = estimate(read.view).benchmark
    remarks = (*missed, *_remarks(plan, layout, target, settings))
    by_itself = tuple(_by_itself(layout, target))
    title, strategy = ENGINES[target.name].title, describe(plan.strategy)
    head = (
        f"{title} {target.version}: {strategy} of {plan.model.name} on {plan.hardware.nodes} x "
        f"{plan.hardware.gpus_per_node} {layout.setting.hardware.accelerator.names[0]}.",
        *(("Run on each node, with its name: bash SCRIPT n0",) if len({one.node for one in launches}) > 1 else ()),
        *(f"Mind: {remark}" for remark in remarks),
        *(f"By itself: {what}" for what in by_itself),
    )
    return Export(
        target=target.name,
        engine=title,
        engine_version=target.version,
        content_hash="",
        strategy=strategy,
        text=script(plan.model.name, head, launches, files, _check(layout, target, benchmark)),
        launches=launches,
        files=files,
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


def _remarks(plan: Plan, layout: LoadedLayout, target: Target, settings: ServingSettings) -> Iterator[str]:
    """What a person has to see to before this runs as planned."""
    version = None if plan.serving is None else plan.serving.engine_version
    if version is not None and version != target.version:
        yield f"the plan names version {version}; these flags are those of {target.version}"
    if settings.checkpoint_format is not None:
        yield f"MODEL has to be a checkpoint in {settings.checkpoint_format}"
    if settings.quantisation is not None:
        yield f"the checkpoint is made {settings.quantisation} when it is loaded"
    if layout.is_disaggregated:
        yield "the servers of the two phases need NIXL and a network that reaches from one to the other"


def _check(layout: LoadedLayout, target: Target, benchmark: Benchmark | None) -> Iterator[str]:
    """The way to the servers, and how to see whether what runs is what was predicted."""
    ends: dict[str, list[str]] = {"both": [], "prefill": [], "decode": []}
    for server in servers_of(layout):
        node = server.stages[0][0].partition(".")[0]
        ends[server.role].append(f"http://{address_of(node)}:{port_of(server)}")
    if len(layout.replicas) > 1:
        yield from target.fronts(ends["prefill"], ends["decode"] or ends["both"])
    if benchmark is not None:
        yield "The check, sent to the way in (add --host and --port), and what it should print:"
        yield benchmark.command
        yield (
            f"mean TTFT {benchmark.ttft_ms:,.1f} ms, mean TPOT {benchmark.tpot_ms:,.2f} ms, output "
            f"{benchmark.output_tokens_per_s:,.0f} tokens/s (predicted of {ENGINES[target.name].title})"
        )
        yield "With what it printed: shardwright calibrate RESULTS makes the predictions your own."
