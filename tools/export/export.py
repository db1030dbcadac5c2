"""A plan as what runs it: judged for the engine, then written as its launch commands, or refused with the reasons.

The plan is judged as if it named the target's engine: the rules on engines (EN) say what that engine cannot run, and
repair finds the nearest plan that it can. A form refuses what it cannot write itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from ..autofix.autofix import autofix
from ..catalog.unlike_name import unlike_name
from ..engines.defaults import engine_relaxations
from ..engines.names import ENGINES, engine_of, engine_or_usual
from ..errors import InputError
from ..importing.launch import request_line
from ..input.arguments import checks_arguments
from ..performance.benchmark import benchmark_of
from ..performance.layout import LoadedLayout, layout_from_view
from ..plan.canonical import content_hash
from ..plan.describe import describe
from ..plan.document import Plan
from ..plan.elements import as_mapping, as_str
from ..plan.on_engine import on_engine
from ..plan.performance import Benchmark
from ..plan.reader import ReadDocument, collector_paused, read_document, read_sound
from ..validate import validate_read
from .chakra import chakra_folder
from .compose import compose_file
from .dynamo import graph
from .engine_targets import ENGINE_TARGETS
from .kept_flags import checked, flags_of, kept_remarks, lost_flags, options_in, parted, settings_with, with_kept
from .kubernetes import manifests
from .llm_d import stack
from .ray import application
from .remarks import dealing, remarks_of
from .result import Export, TargetName
from .script import script
from .server import Server, servers_of, settings_of
from .slurm import batch_script
from .target import CannotExportError, Commands, Target, Written
from .traces import SCHEMA_VERSION

# The forms other than an engine's own script; they run the plan's engine.
_FORMS: Mapping[str, Callable[[Written], str]] = {
    "kubernetes": manifests,
    "docker-compose": compose_file,
    "slurm": batch_script,
    "dynamo": graph,
    "ray": application,
    "llm-d": stack,
}
# A folder of files for no engine; the targets that are a text.
TRACES: TargetName = "chakra"
TARGETS = tuple(name for name in get_args(TargetName) if name != TRACES)
_MOST_REASONS = 8
_MISSED_LIMIT = "PE010"
# A flag, or an option inside another.
_FLAG = re.compile(r"--[\w-]+|\w+\.\w+")


@checks_arguments
def export(document: Mapping[str, object] | str | Path | Plan, to: TargetName) -> Export:
    """What runs a plan on a target: the text of a script or of a manifest, or why the engine cannot run it.

    Args:
        document: A `Plan`, an object, a JSON text, or the path of a file.
        to: An engine (`vllm`, `sglang`, `trtllm`); or a form that runs the plan's engine, vLLM where it names none; or
            `chakra`, execution traces, which need no engine.

    Returns:
        `text`, the commands of each server, and the check with the figures to expect; `refused` where there are none.

    Raises:
        InputError: There is no such target, or no plan can be read.

    Example:
        >>> import shardwright
        >>> one = shardwright.plan("Llama-3.2-1B on 2 L4, TP2, 512 in / 32 out").plan
        >>> "--tensor-parallel-size 2" in shardwright.export(one, "vllm").text
        True
    """
    name = target_named(to)
    with collector_paused():
        read = read_document(document)
        if read.plan is None:
            raise InputError(f"no plan document: {read.faults[0].message} (shardwright validate lists what is wrong)")
        plan = read.plan
        if name == TRACES:
            return _traced(plan)
        serving = None if plan.serving is None else plan.serving.engine
        engine = engine_or_usual(serving) if name in _FORMS else name
        if engine not in ENGINE_TARGETS:
            raise InputError(
                f"no commands of {ENGINES[engine].title}, the plan's engine, are written here: export the plan to one "
                f"of {', '.join(ENGINE_TARGETS)}"
            )
        target = ENGINE_TARGETS[engine]
        head = Export(
            target=name,
            engine=target.engine.title,
            engine_version=target.engine.version,
            content_hash=content_hash(plan),
            strategy=describe(plan.strategy),
        )
        named = _named(plan, target)
        lost = [] if "flags" in as_mapping(named.get("serving")) else list(lost_flags(plan))
        fields = _exported(named, target, name, lost, names_engine=serving is not None)
        return head.model_copy(update=fields)


def target_named(text: str) -> TargetName:
    """The target of that name. Raises InputError: unknown."""
    known: dict[str, TargetName] = {target: target for target in (*TARGETS, TRACES)}
    if text not in known:
        raise InputError(f"no target {text[:60]!r}: one of {', '.join(known)}")
    return known[text]


def _traced(plan: Plan) -> Export:
    """The traces of `plan`, which any valid plan has."""
    raw = plan.model_dump(mode="json")
    read = read_sound(raw)
    missed, reasons = _judged(read)
    strategy = describe(plan.strategy)
    head = Export(
        target=TRACES,
        engine="Chakra",
        engine_version=SCHEMA_VERSION,
        content_hash=content_hash(plan),
        strategy=strategy,
        refused=_first(reasons),
        remarks=missed,
    )
    if reasons:
        return head
    title = " ".join(f"{strategy} of {plan.model.name}".split())
    try:
        return head.model_copy(update={"folder": chakra_folder(layout_from_view(read.view), title)})
    except CannotExportError as reason:
        return head.model_copy(update={"refused": (str(reason),)})


def _named(plan: Plan, target: Target) -> dict[str, Any]:
    """The document of `plan` with the target's engine in the place of any other."""
    raw = plan.model_dump(mode="json")
    serving = as_mapping(raw.get("serving"))
    name = target.engine.name
    return raw if engine_of(as_str(serving.get("engine"))) == name else on_engine(raw, name)


def _judged(read: ReadDocument) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Messages of missed limits, which prevent no export, and of all other errors, which do."""
    errors = [error for error in validate_read(read).violations if error.severity == "error"]
    missed = tuple(error.message for error in errors if error.rule == _MISSED_LIMIT)
    return missed, tuple(
        dict.fromkeys(f"{error.rule}: {error.message}" for error in errors if error.rule != _MISSED_LIMIT)
    )


def _first(reasons: tuple[str, ...]) -> tuple[str, ...]:
    more = len(reasons) - _MOST_REASONS
    return (*reasons[:_MOST_REASONS], *((f"and {more} more",) if more > 0 else ()))


def _exported(
    raw: dict[str, Any], target: Target, name: TargetName, lost: Sequence[str], *, names_engine: bool
) -> dict[str, Any]:
    """The fields of an export to the target `name`, except those that identify it."""
    read = read_sound(raw)
    missed, reasons = _judged(read)
    if not reasons:
        try:
            return _written(read, target, (*missed, *lost), name, names_engine=names_engine)
        except CannotExportError as reason:
            return {"refused": (str(reason),)}
    nearest, plan = _nearest(raw) or (None, None)
    return {"refused": _first(reasons), "nearest": nearest, "nearest_plan": plan}


def _nearest(raw: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The nearest plan that the engine can run, as a description and as a document."""
    fixed = autofix(raw)
    if not fixed.valid or fixed.document is None or fixed.plan is None:
        return None
    return describe(fixed.plan.strategy), fixed.document


def _written(
    read: ReadDocument, target: Target, missed: Sequence[str], name: TargetName, *, names_engine: bool
) -> dict[str, Any]:
    plan, layout = read.plan, layout_from_view(read.view)
    assert plan is not None  # it was validated
    if plan.model.name.startswith("-"):
        raise CannotExportError(f"the model's name {plan.model.name[:60]!r} would be read as a flag")
    (kept, gone), positions = parted(flags_of(plan), target), layout.setting.architecture.max_position_embeddings
    checked(kept, target, layout.setting.precision.kv_cache)
    servers, settings = servers_of(layout), settings_of(layout, target.engine, plan.model.name)
    settings = settings_with(settings, kept, positions, target)
    commands = tuple(with_kept(target.commands(server, settings), server, kept, target) for server in servers)
    accelerator = layout.setting.hardware.accelerator
    is_amd = accelerator.vendor == "AMD"
    benchmark = benchmark_of(layout, plan.model.name)
    remarks = (
        *missed,
        *unlike_name(read.view.model, read.view.architecture),
        *remarks_of(plan, layout, target, settings),
        *dealing(plan, servers, name),
    )
    remarks = (*remarks, *kept_remarks(kept, gone, servers, target), *_cut(target, commands))
    by_itself = tuple(_by_itself(layout, target, servers, commands))
    card = accelerator.names[0] if accelerator.names else "GPUs"
    written = Written(
        engine=target.engine,
        image=target.engine.rocm_image if is_amd else target.engine.image,
        model=plan.model.name,
        gpus_per_node=plan.hardware.gpus_per_node,
        checkpoint_format=settings.checkpoint_format,
        card=card,
        gpu_resource=f"{'amd' if is_amd else 'nvidia'}.com/gpu",
        servers=servers,
        launches=tuple(start.launches for start in commands),
        files=tuple(start.files for start in commands),
        head=(
            f"{target.engine.title} {target.engine.version}: {describe(plan.strategy)} of {plan.model.name} on "
            f"{plan.hardware.nodes} x {plan.hardware.gpus_per_node} {card}.",
            *(f"Mind: {remark}" for remark in remarks),
            *(f"By itself: {habit}" for habit in by_itself),
        ),
        check=(*_check(target, benchmark, names_engine=names_engine), request_line(plan)),
        fronts=target.fronts,
    )
    return {
        "text": _FORMS.get(name, script)(written),
        "launches": tuple(launch for launches in written.launches for launch in launches),
        "files": tuple(file for files in written.files for file in files),
        "by_itself": by_itself,
        "remarks": remarks,
        "benchmark": benchmark,
    }


def _cut(target: Target, commands: Sequence[Commands]) -> Iterator[str]:
    """Remark that the engine cuts prompts because the commands tell it to."""
    option = target.engine.cuts_prompts_by
    if any(options_in(file.text).get((option,)) for start in commands for file in start.files):
        yield f"prompts are cut into chunks ({option}), which {target.engine.title} does not by itself"


def _by_itself(
    layout: LoadedLayout, target: Target, servers: Sequence[Server], commands: Sequence[Commands]
) -> Iterator[str]:
    """What the engine does by default and `commands` do not set, as far as it concerns this plan."""
    yield engine_relaxations(target.engine.name, layout.setting.architecture)["vocab_parallel"]
    # Ranks of one attention group have the same tokens: tokens are sent only between groups or parts of a prompt.
    are_sent = any(server.ep > 1 and server.groups * server.context > 1 for server in servers)
    concerned = {"experts": any(server.ep > 1 for server in servers), "all-to-all": are_sent}
    stated = {word.partition("=")[0] for start in commands for launch in start.launches for word in launch.arguments}
    stated |= {".".join(path) for start in commands for file in start.files for path in options_in(file.text)}
    for concern, habit in target.engine.by_itself.items():
        if concerned.get(concern, True) and stated.isdisjoint(_FLAG.findall(habit)):
            yield habit


def _check(target: Target, benchmark: Benchmark | None, *, names_engine: bool) -> Iterator[str]:
    """How to check that the servers run as predicted."""
    if benchmark is not None:
        yield "The check, sent to the way in (add --host and --port; --model is MODEL), and what it should print:"
        yield benchmark.command
        yield (
            f"mean TTFT {benchmark.ttft_ms:,.1f} ms, mean TPOT {benchmark.tpot_ms:,.2f} ms, output "
            f"{benchmark.output_tokens_per_s:,.0f} tokens/s (predicted of {target.engine.title})"
        )
        if benchmark.note is not None:
            yield f"Of these figures: {benchmark.note}."
        if not names_engine:
            yield (
                f"The plan names no engine: these are its figures as run on {target.engine.title}. Its own "
                "estimate has not what the engine does by itself."
            )
        yield "With what it printed: shardwright calibrate RESULTS makes the predictions your own."
