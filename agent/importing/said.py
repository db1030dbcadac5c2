"""What launch commands say beside their degrees, as statements: model, hardware, load, formats, memory, engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...tools.catalog.models import find_model
from ...tools.catalog.names import named_format
from ...tools.errors import InputError
from ...tools.importing.group import stated_of
from ...tools.importing.hardware import NamedHardware
from ...tools.importing.launch import Launch
from ...tools.language.said import Said
from ...tools.plan.document import Plan
from ...tools.plan.elements import as_mapping, as_str
from ..stated.arguments import Arguments, said_of_arguments

# A checkpoint in the cache of the Hugging Face Hub.
_CACHED = re.compile(r"(?:^|/)models--([\w.-]{1,100}?)--([\w.-]{1,100}?)(?:/|$)")
_SIXTEEN_BIT = (None, "bf16", "fp16")
_OF_POLICY = ("relaxations", "memory_utilization", "constraints")


def statements(launch: Launch, hardware: NamedHardware | None, under: Plan | None) -> Iterator[Said]:
    """Statements beside degrees, later ones win: `under`, hardware, what it was planned for, load, commands.

    `under` is the plan that says what the text leaves open, where that is not an export with a line of its own.

    Raises:
        InputError: the line of an export is damaged.
    """
    flags = launch.commands[0].flags
    stated, model = stated_of(flags), None if launch.model is None else _known_name(launch.model)
    exported = dict(launch.planned)
    planned = exported or _asked_of(under)
    name = planned.get("model")
    if planned and model is not None and (model == name or not is_known(model)):
        model = None  # that model, or a checkpoint of it
    if planned:
        yield _planned(planned, is_its_model=model is None, kv_cache=stated.kv_cache)
    if hardware is not None and hardware.accelerator is not None and not exported:
        yield Said(accelerator=hardware.accelerator, gpus_per_node=hardware.gpus_per_node)
    if launch.load:
        yield Said.model_validate(dict(launch.load))
    fields: dict[str, Any] = {
        "model": model,
        "weights": None if _is_quantised(launch.model, model) else stated.weights,
        "kv_cache": stated.kv_cache,
        "activations": stated.activations,
        "memory_utilization": stated.memory_share,
        "engine": launch.engine,
        "engine_version": None if exported else launch.version,
    }
    yield Said.model_validate({name: value for name, value in fields.items() if value is not None})


def _asked_of(plan: Plan | None) -> dict[str, Any]:
    """The request behind `plan`, in the form of an export's line; what was decided for it is left out."""
    if plan is None:
        return {}
    asked = plan.model_dump(mode="json", include={"hardware", "workload", "precision"}, exclude_none=True)
    policy = plan.policy.model_dump(mode="json", include={"constraints"}, exclude_none=True)
    return {"model": plan.model.name, "config": plan.model.config, **asked, "policy": policy}


def _planned(planned: Mapping[str, Any], *, is_its_model: bool, kv_cache: str | None) -> Said:
    """The statements of an export on what it was made for; number formats only as far as no command says otherwise.

    Raises:
        InputError: it is damaged.
    """
    formats = dict(as_mapping(planned.get("precision")))
    if not is_its_model:
        formats = {}
    elif kv_cache is None and formats.get("kv_cache") not in _SIXTEEN_BIT:
        formats.pop("kv_cache", None)
    policy = as_mapping(planned.get("policy"))
    arguments: dict[str, Any] = {"precision": formats or None, "kv_offload": planned.get("kv_offload")}
    arguments |= {name: policy.get(name) for name in _OF_POLICY}
    said = said_of_arguments(
        planned.get("config") or as_str(planned.get("model")),
        as_mapping(planned.get("hardware")) or None,
        as_mapping(planned.get("workload")) or None,
        Arguments(**{name: value for name, value in arguments.items() if value is not None}),
    )
    return said or Said()


def _known_name(written: str) -> str:
    """The model by a name that the catalogue knows: a path of a checkpoint ends in one as a rule."""
    cached = _CACHED.search(written)
    if cached is not None:
        written = f"{cached[1]}/{cached[2]}"
    parts = written.rstrip("/").split("/")
    return next(filter(is_known, (written, "/".join(parts[-2:]), parts[-1])), written)


def _is_quantised(written: str | None, model: str | None) -> bool:
    """Whether the checkpoint that is `written`, the catalogue's `model`, has weights of a format of its own.

    Then its format is that of the weights, whatever method is named to read them.
    """
    if written is None or named_format(written) is not None:
        return written is not None
    known = None if model is None or not is_known(model) else find_model(model)
    return known is not None and "quantization_config" in known.config


def is_known(name: str) -> bool:
    """Whether the catalogue knows the model called `name`."""
    try:
        return find_model(name) is not None
    except InputError:
        return False
