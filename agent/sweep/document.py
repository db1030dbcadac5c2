"""The file of a sweep: lists of models, clusters and workloads, whose product is swept.

YAML or JSON, strict and bounded: no anchors, no key twice, no unknown key. Every model and accelerator is looked up
before anything runs, so that a typing error costs no hour. It evaluates nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from pydantic import Field, ValidationError, model_validator

from ...tools.calibration.custom import CustomCalibration
from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.entry import ModelEntry
from ...tools.catalog.hardware import find_accelerator
from ...tools.catalog.models import load_model
from ...tools.engines.names import KNOWN, known_engine
from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.input.files import read_bounded, shown_path, utf8_text
from ...tools.language.briefs.parse import parse_json, parse_yaml
from ...tools.language.file_counts import WrittenTokens
from ...tools.language.said import NO_ENGINE, OpenPrecisions, Said, StatedPrecision
from ...tools.plan.document import HardwareBlock, Relaxation, WorkloadBlock
from ..intent.cluster import read_cluster
from ..intent.formats import said_weights

MAX_FILE_BYTES = 4 << 20
MAX_LISTED = 1_000
MAX_CASES = 200_000
# The search of a larger cluster takes too long for one case of many.
MAX_GPUS = 4_096

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class _Cluster(HardwareBlock):
    """A cluster of the file: `2x8:h100-sxm`, or the fields of a plan's hardware and a name."""

    name: Name | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        read = read_cluster(value)
        return {"accelerator": read.accelerator, "nodes": read.nodes, "gpus_per_node": read.gpus_per_node}

    @property
    def label(self) -> str:
        """The cluster's label in rows."""
        card = self.accelerator if isinstance(self.accelerator, str) else self.accelerator.id
        links = [f"{speed:g} GB/s" for speed in (self.intra_node_bw_gb_s, self.inter_node_bw_gb_s) if speed is not None]
        return self.name or " ".join([f"{self.nodes}x{self.gpus_per_node}:{card}", *links])


class _Workload(WorkloadBlock):
    """A workload of the file: the fields of a plan's workload and a name. What is left out is assumed as in a plan."""

    name: Name
    input_tokens: WrittenTokens
    output_tokens: WrittenTokens


class _Precision(StatedPrecision):
    """Number formats: one word is that of the weights, `any` or several words leave them to the search."""

    precisions: OpenPrecisions | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return said_weights(value) if isinstance(value, str) else value


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


class SweepFile(Frozen):
    """What the file of a sweep may hold. `precision` is one, or a list that is swept too."""

    models: Annotated[tuple[Name | dict[str, Any], ...], Field(min_length=1, max_length=MAX_LISTED)]
    hardware: Annotated[tuple[_Cluster, ...], Field(min_length=1, max_length=MAX_LISTED)]
    workloads: Annotated[tuple[_Workload, ...], Field(min_length=1, max_length=MAX_LISTED)]
    precision: Annotated[tuple[_Precision, ...], Field(min_length=1, max_length=20)] = (_Precision(),)
    relaxations: tuple[Relaxation, ...] = ()
    disaggregated: bool | None = None
    engine: Name | None = None
    memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_precision(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and "precision" in value:
            return {**value, "precision": _as_list(value["precision"])}
        return value


class Case(Frozen):
    """One case of a sweep: how its rows are labelled, and what is asked, complete but for what a plan assumes."""

    model: str
    hardware: str
    workload: str
    said: Said


class Sweep(Struct, frozen=True, dict=True):
    """All cases of a file, in the order of the file: models, then clusters, then workloads, then precisions."""

    cases: tuple[Case, ...]
    # A user's own calibration, which changes times.
    calibration: CustomCalibration | None = None

    @cached_property
    def digest(self) -> str:
        """A hash of the whole request: it changes with the file and with the configs that the file names."""
        return _digest("".join(self.keys))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """A hash of each case."""
        suffix = "" if self.calibration is None else self.calibration.digest
        return tuple(_digest(case.model_dump_json() + suffix) for case in self.cases)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_sweep_file(path: Path) -> Sweep:
    """The sweep in the file at `path`.

    Raises:
        InputError: as `read_sweep`, or the file cannot be read.
    """
    name = shown_path(path)
    return read_sweep(utf8_text(read_bounded(path, MAX_FILE_BYTES, name), name), name)


def read_sweep(text: str, name: str) -> Sweep:
    """The sweep that `text` (YAML or JSON) describes; errors call it `name`.

    Raises:
        InputError: it is neither, has an unknown key, names an unknown model or accelerator, or has more than
        `MAX_CASES`     cases.
    """
    if text.lstrip()[:1] == "{":
        value = parse_json(name, text).value
    else:
        documents = parse_yaml(name, text)
        if len(documents) != 1:
            raise InputError(f"{name}: {len(documents)} YAML documents; a sweep is one")
        value = documents[0].value
    if not isinstance(value, dict):
        raise InputError(f"{name}: a sweep is an object with models, hardware and workloads")
    try:
        swept = SweepFile.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{name}: {_place(first['loc'])}: {first['msg'].removeprefix('Value error, ')}") from None
    return Sweep(tuple(_cases(swept, name)))


def _place(location: tuple[int | str, ...]) -> str:
    """The place of a fault: names and indices in the file, without the type names of its model."""
    shown = [str(part) for part in location if isinstance(part, int) or part.replace("_", "").isalpha()]
    return "/".join(shown) or "/"


def _cases(swept: SweepFile, name: str) -> Iterator[Case]:
    count = len(swept.models) * len(swept.hardware) * len(swept.workloads) * len(swept.precision)
    if count > MAX_CASES:
        raise InputError(f"{name}: {count:,} cases; at most {MAX_CASES:,} are swept")
    if swept.engine not in (None, NO_ENGINE) and known_engine(swept.engine) is None:
        raise InputError(f"{name}: engine: unknown engine {swept.engine!r}; known are {', '.join(KNOWN)}, {NO_ENGINE}")
    models = [_model(reference, f"{name}: models/{place}") for place, reference in enumerate(swept.models)]
    for place, cluster in enumerate(swept.hardware):
        _check_cluster(cluster, f"{name}: hardware/{place}")
    for block, labels in (
        ("models", [label for label, _ in models]),
        ("hardware", [cluster.label for cluster in swept.hardware]),
        ("workloads", [workload.name for workload in swept.workloads]),
    ):
        twice = next((label for place, label in enumerate(labels) if label in labels[:place]), None)
        if twice is not None:
            raise InputError(f"{name}: {block}: {twice!r} stands twice; keep one, or give it another name")
    for label, entry in models:
        for cluster in swept.hardware:
            for workload in swept.workloads:
                for precision in swept.precision:
                    said = _request(swept, entry, (cluster, workload, precision))
                    yield Case(model=label, hardware=cluster.label, workload=workload.name, said=said)


def _model(reference: str | dict[str, Any], where: str) -> tuple[str, ModelEntry]:
    """A model with the label of its rows: a catalogue name in full, a path as written."""
    try:
        entry = load_model(reference)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return (reference if isinstance(reference, str) and entry.confidence == "user" else entry.name), entry


def _check_cluster(cluster: _Cluster, where: str) -> None:
    gpus = cluster.nodes * cluster.gpus_per_node
    if gpus > MAX_GPUS:
        raise InputError(f"{where}: {gpus:,} GPUs; at most {MAX_GPUS:,} are searched")
    if isinstance(cluster.accelerator, str):
        try:
            find_accelerator(cluster.accelerator)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None


def _request(swept: SweepFile, entry: ModelEntry, parts: tuple[_Cluster, _Workload, _Precision]) -> Said:
    """The request of one case; a plan's assumptions fill what the file leaves out."""
    cluster, workload, precision = parts
    own_card = cluster.accelerator if isinstance(cluster.accelerator, Accelerator) else None
    # A name is looked up again where the case runs; a user's config travels with it.
    of_user = entry.confidence == "user"
    stated = {field: getattr(workload, field) for field in workload.model_fields_set if field != "name"}
    return Said(
        model=None if of_user else entry.name,
        model_config_object=dict(entry.config) if of_user else None,
        accelerator=cluster.accelerator if isinstance(cluster.accelerator, str) else None,
        accelerator_object=own_card,
        nodes=cluster.nodes,
        gpus_per_node=cluster.gpus_per_node,
        intra_node_bw_gb_s=cluster.intra_node_bw_gb_s,
        inter_node_bw_gb_s=cluster.inter_node_bw_gb_s,
        **{name: getattr(precision, name) for name in precision.model_fields_set},
        relaxations=swept.relaxations,
        disaggregated=swept.disaggregated,
        engine=swept.engine,
        memory_utilization=swept.memory_utilization,
        **stated,
    )
