"""Reads what an author decided from whatever a proposal holds: the request for the plan that they meant.

Degrees, cuts, replicas, the ordered devices of each stage and the experts of each device are read from the declared
strategy and from the graph, where sound parts outvote damaged ones. What the header leaves out is taken from the
defaults that came with the document, else from the model catalogue or the graph. What is still open is completed and
noted. Nothing is judged: an intent may be illegal, or lack what cannot be guessed (`missing`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from ..catalog.architecture import Architecture
from ..catalog.config import read_architecture
from ..catalog.dtypes import DType
from ..catalog.hardware import find_accelerator
from ..catalog.models import find_model
from ..errors import InputError, ShardwrightError
from ..performance.layout import read_block, read_policy
from ..plan.builder import BuildRequest
from ..plan.constraints import MOST_CONSTRAINTS, each_read
from ..plan.document import (
    HardwareBlock,
    ModelBlock,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from ..plan.placement import gpu_count
from ..plan.schema import shown
from ..plan.view import PlanView, as_int, as_list, as_mapping, as_str, places_of
from .author_devices import ReplicaDevices, read_devices
from .branch_places import branches_in_place
from .intent_strategy import Notes, read_strategy
from .placing import place_like

_Block = TypeVar("_Block", bound=BaseModel)


class PlanDefaults(Struct, frozen=True):
    """What a user asked for; used only for what a document leaves out.

    `assumed`: why a field (`workload.input_tokens`) has its value although nobody asked for it.
    """

    model: ModelBlock | None = None
    hardware: HardwareBlock | None = None
    workload: WorkloadBlock | None = None
    precision: PrecisionBlock | None = None
    assumed: Mapping[str, str] = field(default_factory=dict[str, str])


class PlanIntent(Struct, frozen=True, dict=True):
    """What an author decided. `missing` names what is neither stated nor can be completed: without it nothing is built.

    `devices` are the author's by replica; `completed` says in words what was left open and how it was completed.
    """

    model: ModelBlock | None
    architecture: Architecture | None
    hardware: HardwareBlock | None
    workload: WorkloadBlock | None
    precision: PrecisionBlock | None
    policy: PolicyBlock
    serving: ServingBlock | None
    strategy: Strategy | None
    devices: tuple[ReplicaDevices, ...] = ()
    redundant_experts: int = 0
    completed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @cached_property
    def request(self) -> BuildRequest | None:
        """The builder's request; `None` if something is missing or the strategy has no layout."""
        return None if self.strategy is None else self.request_for(self.strategy, self.redundant_experts)

    def request_for(self, strategy: Strategy, redundant_experts: int) -> BuildRequest | None:
        """The builder's request for `strategy` on the author's devices; `None` if it has no layout on them."""
        if self.architecture is None or self.hardware is None or self.model is None:
            return None
        layers = self.architecture.num_layers
        for phase in (strategy.prefill, strategy.decode):
            cut = phase.stage_layers
            if phase.pp > layers or (cut is not None and (len(cut) != phase.pp or sum(cut) != layers or 0 in cut)):
                return None
        if self.workload is None or self.precision is None:
            return None
        request = BuildRequest(
            model=self.model,
            hardware=self.hardware,
            workload=self.workload,
            precision=self.precision,
            strategy=strategy.model_copy(update={"gpu_count": gpu_count(strategy)}),
            policy=self.policy,
            serving=self.serving,
            redundant_experts=redundant_experts,
        )
        layout = place_like(strategy, request.maker(self.architecture), self.hardware, self.devices)
        return None if layout is None else replace(request, layout=layout)


def read_intent(view: PlanView, defaults: PlanDefaults | None = None, *, keep_strategy: bool = False) -> PlanIntent:
    """The intent of the document behind `view`; `defaults` fill in what the document leaves out. Never raises.

    `keep_strategy`: the strategy block wins over the graph.
    """
    view, notes = branches_in_place(view), Notes()
    header = _HeaderReader(view, defaults or PlanDefaults(), notes)
    model, architecture = header.model() or (None, None)
    devices = read_devices(view)
    strategy = None
    if architecture is not None:
        strategy = read_strategy(view, architecture, devices, notes, keep_strategy=keep_strategy)
    hardware = header.hardware(1 if strategy is None else gpu_count(strategy))
    return PlanIntent(
        model=model,
        architecture=architecture,
        hardware=hardware,
        workload=header.workload(),
        precision=None if architecture is None else header.precision(architecture, hardware),
        policy=header.policy(),
        serving=header.serving(),
        strategy=strategy,
        devices=devices,
        redundant_experts=_redundant(view, architecture),
        completed=tuple(notes.completed),
        missing=tuple(notes.missing),
    )


def on_drawn_nodes(intent: PlanIntent, view: PlanView) -> PlanIntent:
    """`intent` on as many nodes as the graph names devices of, or the strategy needs, however few are stated."""
    hardware, strategy = intent.hardware, intent.strategy
    if hardware is None or strategy is None:
        return intent
    nodes, _ = _size(view, hardware.gpus_per_node, hardware.gpus_per_node, gpu_count(strategy))
    return replace(intent, hardware=hardware.model_copy(update={"nodes": max(nodes, hardware.nodes)}))


def _redundant(view: PlanView, architecture: Architecture | None) -> int:
    """Expert copies that most MoE operators hold beyond one of each; 0 unless the policy allows them."""
    if architecture is None or "redundant_experts" not in view.relaxations:
        return 0
    groups = [operator.children_of_type("ExpertNode") for operator in view.of_type("MoENode")]
    ranges = ([span for group in of_operator for span in group.expert_ranges or ()] for of_operator in groups)
    sizes = Counter(sum(last - first + 1 for first, last in of_operator) for of_operator in ranges)
    usual = max(sizes, key=lambda size: (sizes[size], -size), default=0)
    return max(0, usual - architecture.num_experts) if usual <= 2 * architecture.num_experts else 0


class _HeaderReader(Struct, frozen=True):
    """Reads the header of the document behind `view`; `asked` fills in what it leaves out."""

    view: PlanView
    asked: PlanDefaults
    notes: Notes

    def model(self) -> tuple[ModelBlock, Architecture] | None:
        """The model with its architecture; the catalogue completes its config if it knows the name."""
        name, config = as_str(self.view.model.get("name")), dict(as_mapping(self.view.model.get("config")))
        if name is None and not config:
            if self.asked.model is None:
                self.notes.lack("model")
                return None
            name, config = self.asked.model.name, self.asked.model.config
            self.notes.complete("model", name, "the request")
        if config and self.view.architecture is not None and config == as_mapping(self.view.model.get("config")):
            whole = config, self.view.architecture
        else:
            whole = self._readable(name, config)
            if isinstance(whole, str):
                self.notes.lack(f"model.config ({whole})")
                return None
        return ModelBlock(name=(name or "")[:500] or "unnamed model", config=whole[0]), whole[1]

    def _readable(self, name: str | None, config: dict[str, Any]) -> tuple[dict[str, Any], Architecture] | str:
        """A readable config and its architecture: as stated, else completed from the catalogue; or the error."""
        error = "the document states none"
        if config:
            try:
                return config, read_architecture(config, where="model.config")
            except ShardwrightError as refusal:
                error = str(refusal)
        if name is None:
            return error
        try:
            entry = find_model(name)
            merged = {**entry.config, **config}
            architecture = read_architecture(merged, where="model.config")
        except ShardwrightError as refusal:
            is_told = error in str(refusal) or (isinstance(refusal, InputError) and not config)
            return str(refusal) if is_told else f"{error}; {refusal}"
        source = "the document and the catalogue" if config else "the model catalogue"
        self.notes.complete("model.config", entry.name, source)
        return merged, architecture

    def hardware(self, gpus: int) -> HardwareBlock | None:
        """The hardware; without a stated size one for the devices that the graph names and for `gpus` devices."""
        raw = self._merged("hardware")
        accelerator = raw.get("accelerator")
        if accelerator is None:
            self.notes.lack("hardware.accelerator")
            return None
        node = 8
        if isinstance(accelerator, str):
            try:
                node = find_accelerator(accelerator).typical_node_accelerators or node
            except InputError as error:
                self.notes.lack(f"hardware.accelerator ({error})")
                return None
        size = {name: raw.get(name) for name in ("nodes", "gpus_per_node")}
        if None in size.values():
            nodes, per_node = _size(self.view, as_int(size["gpus_per_node"]), node, gpus)
            raw = {"nodes": nodes, "gpus_per_node": per_node, **raw}
            source = "the devices that the graph names, or the strategy needs"
            self.notes.complete("hardware", f"{raw['nodes']} x {per_node}", source)
        return self._block(HardwareBlock, raw, "hardware")

    def workload(self) -> WorkloadBlock | None:
        """The load."""
        return self._block(WorkloadBlock, self._merged("workload"), "workload")

    def precision(self, architecture: Architecture, hardware: HardwareBlock | None) -> PrecisionBlock | None:
        """The number formats; by default the checkpoint's for weights, and 16 bits for all else."""
        raw = self._merged("precision")
        accelerator = None if hardware is None else hardware.accelerator
        accelerator = find_accelerator(accelerator) if isinstance(accelerator, str) else accelerator
        sixteen: DType = "bf16" if accelerator is None else accelerator.computes_in("bf16")
        if raw.get("weights") is None:
            native = architecture.native_precision
            raw["weights"] = native if native != "bf16" else sixteen
            self.notes.complete("precision.weights", raw["weights"], "the checkpoint's own format")
        for name in ("kv_cache", "activations"):
            if raw.get(name) is None:
                raw[name] = "fp16" if raw["weights"] == "fp16" else sixteen
                self.notes.complete(f"precision.{name}", raw[name], "16 bits, as nothing else is said")
        return self._block(PrecisionBlock, raw, "precision")

    def policy(self) -> PolicyBlock:
        """The policy with its known relaxations; none is added. A constraint that cannot be read is missing."""
        stated = self.view.policy.get("constraints")
        if stated and not 0 < len(as_list(stated)) <= MOST_CONSTRAINTS:
            self.notes.lack(f"policy.constraints ({shown(stated)}: a list of up to {MOST_CONSTRAINTS} is expected)")
        for place, constraint in enumerate(each_read(stated)):
            if constraint is None:
                self.notes.lack(f"policy.constraints.{place} ({shown(as_list(stated)[place])} is no constraint)")
        return read_policy(self.view)

    def serving(self) -> ServingBlock | None:
        """How an engine is to run the plan; `None` if not stated."""
        return read_block(ServingBlock, self.view.serving, "serving") if self.view.serving else None

    def _merged(self, where: Literal["hardware", "workload", "precision"]) -> dict[str, Any]:
        """The document's fields of a block, completed by those of the request."""
        raw: Mapping[str, Any] = getattr(self.view, where)
        default: BaseModel | None = getattr(self.asked, where)
        stated = {name: value for name, value in raw.items() if value is not None}
        asked: dict[str, Any] = {} if default is None else default.model_dump(mode="json", exclude_defaults=True)
        for name, value in asked.items():
            if name not in stated:
                path = f"{where}.{name}"
                reason = self.asked.assumed.get(path)
                self.notes.complete(path, value, "the request" if reason is None else f"assumed: {reason}")
        return {**asked, **stated}

    def _block(self, model: type[_Block], raw: Mapping[str, Any], where: str) -> _Block | None:
        """`raw` as a block; `None` if invalid, with every stated field that cannot be read noted as missing."""
        try:
            return model.model_validate({name: raw[name] for name in raw if name in model.model_fields})
        except ValidationError as error:
            for name, problem in {
                f"{detail['loc'][0]}": detail["msg"] for detail in error.errors() if detail["loc"]
            }.items():
                stated = raw.get(name)
                self.notes.lack(f"{where}.{name}" + (f" ({shown(stated)}: {problem})" if stated is not None else ""))
            return None


def _size(view: PlanView, stated_per_node: int | None, usual: int, gpus: int) -> tuple[int, int]:
    """Nodes, and GPUs in each, that hold every device that the graph names and `gpus` in total."""
    places = places_of(view.devices)
    named_nodes = 1 + max((node for node, _ in places), default=0)
    named_gpus = 1 + max((gpu for _, gpu in places), default=0)
    per_node = stated_per_node or (min(usual, gpus) if named_nodes == 1 and named_gpus <= gpus <= usual else usual)
    per_node = max(per_node, named_gpus) if stated_per_node is None else per_node
    return max(named_nodes, -(-gpus // max(1, per_node))), per_node
