"""What runs today as a plan: launch commands or a manifest, completed, laid out, judged and estimated as they stand.

Nothing is mended: a deployment that breaks a rule is shown with its findings, for `fix` to repair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Unpack

from ...tools.calibration.custom import CustomCalibration, own_calibration
from ...tools.catalog.architecture import Architecture
from ...tools.engines.names import ENGINES
from ...tools.errors import InputError, expect
from ...tools.frozen import Sparse
from ...tools.importing.caveats import (
    Caveat,
    Checkpoint,
    Kind,
    hardware_remarks,
    lacks_nodes,
    options_alone,
    share_of_free,
    told_of_method,
    unread_files,
)
from ...tools.importing.deployment import Deployment, deployment_of
from ...tools.importing.formats import told_of_formats, unlike_caches
from ...tools.importing.hardware import NamedHardware, named_hardware
from ...tools.importing.kept_flags import kept_flags
from ...tools.importing.launch import Launch, read_launch
from ...tools.importing.lengths import (
    all_too_long,
    beyond_positions,
    longest_taken,
    prompts_too_long,
    some_too_long,
    stated_positions,
    uncut,
    unheld,
)
from ...tools.importing.releases import lacking_flags
from ...tools.input.arguments import checks_arguments
from ...tools.language.said import Said
from ...tools.performance.host_memory import without_effect
from ...tools.plan.document import Plan
from ...tools.plan.performance import PerformanceEstimate
from ...tools.rules.base import Violation
from ..intent.complete import complete
from ..intent.intent import Assumption, Intent
from ..judgement import judged
from ..runs.waiting import Waiting, lacks_room_alone, waiting_of
from ..stated.arguments import Arguments, HardwareArgument, ModelArgument, WorkloadArgument, said_of_arguments
from ..stated.search_request import architecture_of
from ..stated.strategy import build_stated
from .layout import beyond_machines, filled, held_length, settled, with_flags
from .request import request_of
from .said import is_known, statements

# The fields of a load that are mentioned if they are assumed, in words.
LOAD_FIELDS = {"input_tokens": "tokens in", "output_tokens": "tokens out", "concurrency": "requests at once"}


class Imported(Sparse):
    """What runs as a plan: `valid` where it keeps every rule, with the findings where not.

    `servers` groups of `engine` processes are started. `refused` says why the engine does not start them as they are
    written, or takes no request of the load; `remarks` what a person has to know. `not_understood` leaves open whether
    it starts: flags that mean nothing here, values that mean nothing with these or do what is not known, and files that
    were not given; `unplanned` is what the engine was told that no estimate of ours knows. `waiting`: it serves fewer
    requests at a time than the load has, which breaks ME001 where they do not fit into memory, and no other rule.
    `left_out`: flags and variables that say what no plan says, and that the plan does not keep for an export either.
    """

    plan: Plan
    valid: bool
    engine: str
    engine_version: str | None = None
    servers: int
    findings: tuple[Violation, ...] = ()
    estimate: PerformanceEstimate | None = None
    why_not_estimated: str | None = None
    assumptions: tuple[Assumption, ...] = ()
    readings: tuple[str, ...] = ()
    not_understood: tuple[str, ...] = ()
    unplanned: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    waiting: Waiting | None = None
    left_out: tuple[str, ...] = ()

    @property
    def exit_status(self) -> int:
        """0: it keeps every rule, or only lets requests wait, and its engine serves the load; 1: it does not."""
        return 0 if (self.valid or self.waiting is not None) and not self.refused else 1

    @property
    def caveats(self) -> tuple[str, ...]:
        """Lines that have to be read before the figures."""
        lines = [f"{ENGINES[self.engine].title} refuses it: {why}" for why in self.refused]
        lines += [] if self.waiting is None else [str(self.waiting)]
        lines += self.remarks
        lines += self._open()
        lines += [f"Not in the estimate: {', '.join(self.unplanned)}"] if self.unplanned else []
        return (*lines, *self._assumed_load())

    def _open(self) -> list[str]:
        """What was not understood, and that the engine refuses flags that it does not know."""
        if not self.not_understood:
            return []
        flags = any(words.startswith("-") for words in self.not_understood)
        refuses = f"; {ENGINES[self.engine].title} refuses flags and values that it does not know" if flags else ""
        return [f"Not understood: {', '.join(self.not_understood)}{refuses}"]

    def _assumed_load(self) -> list[str]:
        """Which parts of the load are assumed, and the flags that state them."""
        # An open field (`None`) follows from the rate that was stated.
        assumed = [entry for entry in self.assumptions if entry.field in LOAD_FIELDS and entry.value is not None]
        if not assumed:
            return []
        parts = ", ".join(f"{LOAD_FIELDS[entry.field]} {entry.value:,}" for entry in assumed)
        flags = ", ".join(f"--{entry.field.replace('_', '-')}" for entry in assumed)
        return [f"Assumed of the load, since nothing says it: {parts}; state yours by {flags}"]


@checks_arguments
def import_plan(
    source: str,
    *,
    model: ModelArgument | None = None,
    hardware: HardwareArgument | None = None,
    workload: WorkloadArgument | None = None,
    files: Mapping[str, str] | None = None,
    **stated: Unpack[Arguments],
) -> Imported:
    """What runs today as a plan: launch commands, a script, a manifest, or an engine's file of options.

    Args:
        source: The text of it.
        model: As `plan`, where no command names one.
        hardware: As `plan`, with a number of nodes or without.
        workload: As `plan`.
        files: Texts by their names: more of what runs, and files of options that commands name.
        **stated: As `plan`; arguments win over what a text says.

    Returns:
        The plan as it stands, its findings and estimate, and what was not understood. Nothing is mended.

    Raises:
        InputError: Nothing that starts an engine, servers of several engines or models, an unknown model, a figure
            that is left to a variable, nothing that says on which GPUs it runs. The message says what to add.

    Example:
        >>> import shardwright
        >>> imported = shardwright.import_plan("vllm serve Qwen/Qwen3-8B -tp 2", hardware="1x2:h100-sxm")
        >>> imported.valid, imported.plan.strategy.prefill.tp
        (True, 2)
    """
    for name, text in (files or {}).items():
        expect(name, str, "files", "texts by their names are expected")
        expect(text, str, f"files: {name}", "a text is expected")
    return imported(read_launch(source, files), said_of_arguments(model, hardware, workload, stated))


def imported(
    launch: Launch,
    said: Said | None,
    calibration: CustomCalibration | str | Path | None = None,
    under: Plan | None = None,
) -> Imported:
    """The plan that `launch` runs under what is `said`, timed by `calibration` if given.

    `under`, if given, fills in what neither states: model, hardware, load, formats, constraints.

    Raises:
        InputError: as `import_plan`.
    """
    hardware = named_hardware(launch)
    intent = _intent(launch, hardware, said, under).model_copy(update={"calibration": own_calibration(calibration)})
    architecture = architecture_of(intent.model)
    deployment = deployment_of(launch, architecture)
    request = request_of(intent, launch, deployment, architecture)
    request, assumptions = filled(request, launch, deployment, architecture, intent.assumptions)
    kept = kept_flags(launch)
    plan = settled(build_stated(request, architecture), request, deployment, architecture)
    plan = with_flags(plan, launch.engine, kept)
    report, figures, why_not, waiting = None, None, None, None
    try:
        report, figures = judged(plan, intent.usd_per_gpu_hour, intent.calibration)
        if report.valid or lacks_room_alone(report.violations, figures):
            waiting = waiting_of(plan, figures, intent.calibration)
    except InputError as error:
        why_not = str(error)
    flags = [command.flags for command in launch.commands]
    too_long = tuple(all_too_long(launch, plan.workload, [entry.field for entry in assumptions]))
    messages: dict[Kind, list[str]] = {"refused": [], "unknown": [], "remark": []}
    long_prompts = prompts_too_long(launch, plan.workload, [entry.field for entry in assumptions])
    for kind, words in (*_obstacles(plan, intent, launch, deployment, architecture), *long_prompts):
        messages[kind].append(words)
    if not too_long:
        messages["remark"] += some_too_long(launch, plan.workload)
    unknown = (*(name for parsed in flags for name in parsed.unknown), *unread_files(launch), *messages["unknown"])
    return Imported(
        plan=plan,
        valid=report is not None and report.valid,
        engine=launch.engine,
        engine_version=launch.version,
        servers=plan.strategy.dp,
        findings=() if report is None else report.violations,
        estimate=figures,
        why_not_estimated=why_not,
        assumptions=assumptions,
        readings=intent.readings,
        not_understood=tuple(dict.fromkeys(unknown)),
        unplanned=tuple(dict.fromkeys(name for parsed in flags for name in parsed.unplanned)),
        refused=(*deployment.refused, *dict.fromkeys(messages["refused"]), *too_long),
        remarks=tuple(dict.fromkeys((*messages["remark"], *_remarks(plan, launch, deployment, hardware)))),
        waiting=waiting,
        left_out=kept.left_out,
    )


def _intent(launch: Launch, hardware: NamedHardware | None, said: Said | None, under: Plan | None) -> Intent:
    """The request that a launch serves: its own statements, those of `under` and those beside it.

    Raises:
        InputError: nothing names the model, or the accelerator.
    """
    stated = [*statements(launch, hardware, under), *([] if said is None else [said])]
    if not any(source.model or source.model_config_object for source in stated):
        raise InputError("no model: nothing names it, or a variable does; say which (--model NAME)")
    if not any(source.accelerator or source.accelerator_object for source in stated):
        unread = "" if hardware is None else f" ({hardware.words} names no accelerator that is known)"
        raise InputError(
            f"nothing says on which GPUs it runs{unread}: --hardware NODESxGPUS:ACCELERATOR, as in 1x8:h100-sxm"
        )
    intent = complete(*stated, positions=stated_positions(launch))
    if under is None or intent.model.config != under.model.config:
        return intent
    return intent.model_copy(update={"model": intent.model.model_copy(update={"name": under.model.name})})


def _obstacles(
    plan: Plan, intent: Intent, launch: Launch, deployment: Deployment, architecture: Architecture
) -> Iterator[Caveat]:
    """Why the engine does not start, or may not: by the machines, its weights, and the longest request."""
    yield from lacking_flags(launch)
    beyond = tuple(beyond_machines(plan, intent.hardware))
    for why in beyond:
        yield "remark", why
    written, model = launch.model, intent.model
    checkpoint: Checkpoint | None = None
    # A checkpoint in a folder is not known.
    if written is not None and is_known(written) and not written.startswith(("/", ".", "~")):
        checkpoint = Checkpoint(written, model.name, model.config, architecture.native_precision)
        yield from told_of_method(launch, checkpoint)
        yield from told_of_formats(launch, checkpoint, plan.precision.kv_cache)
    yield from unlike_caches(deployment.servers, checkpoint)
    is_its_checkpoint = (
        written is not None and written.rpartition("/")[2].lower() == model.name.rpartition("/")[2].lower()
    )
    if not beyond:
        for why in lacks_nodes(launch, deployment.servers, plan.hardware.gpus_per_node):
            yield "refused", why
    yield from uncut(launch, architecture)
    yield from beyond_positions(launch, architecture, is_its_checkpoint=is_its_checkpoint)
    taken = longest_taken(launch, architecture)
    held_tokens = None if taken is None else held_length(plan, taken.tokens)
    if taken is not None and held_tokens is not None:
        yield from unheld(launch.engine, taken, held_tokens)


def _remarks(plan: Plan, launch: Launch, deployment: Deployment, named: NamedHardware | None) -> Iterator[str]:
    """Remarks that a person has to know, worst first."""
    yield from deployment.remarks
    yield from options_alone(launch)
    yield from share_of_free(launch)
    yield from hardware_remarks(named, plan.hardware)
    if plan.serving is not None and (offload := plan.serving.kv_offload) is not None:
        why = without_effect(offload, ENGINES[launch.engine], plan.workload.prefixes)
        yield from () if why is None else (f"not acted on: {why}",)
