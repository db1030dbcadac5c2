"""Manifests as the processes that their containers start: Kubernetes, docker-compose, Dynamo, Ray Serve, options alone.

Read by what objects of all kinds share: a container has a command, its group `replicas` and a size; names and labels
state its role.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ..checkpoint import checkpoint
from ..input.shapes import is_list, is_nested, is_object
from ..plan.elements import as_int, as_list, as_mapping, as_str
from .container_forms import of_helm, of_kserve, of_skypilot
from .options import leaves
from .process import Process, engine_words, image_version, is_foreign, is_launched
from .resources import hardware_in, of_object
from .shell import SHELLS, Script, filled, read_script

MOST_CHARS = 400_000
_MOST_VALUES = 50_000
_MOST_DEPTH = 40
_MOST_DOCUMENTS = 100
_OF_POD = re.compile(r"\$\((\w{1,60})\)")
_MANIFEST = re.compile(
    r"^(?:apiVersion|kind|services|spec|applications|backend|tensor_parallel_size|llm_configs|context_servers|servingEngineSpec"
    r"|kv_cache_config|enable_attention_dp|cuda_graph_config|moe_config|cache_transceiver_config|moe_expert_parallel_size"
    r"|nodeSelector|containers|num_nodes|run)[ \t]*:",
    re.M,
)
# A value that a template leaves open.
_TEMPLATE = re.compile(r"\{\{-?[ .]{0,9}([\w.]{0,60})[^{}\n]{0,200}\}\}")
# Keys whose texts may state the role of a container.
_HINTS = ("name", "type", "componentType", "subComponentType", "role", "container_name")
# Options of TensorRT-LLM that make an object one of its files of options.
_OPTIONS = frozenset({
    "tensor_parallel_size", "kv_cache_config", "moe_expert_parallel_size", "pipeline_parallel_size",
    "enable_attention_dp", "cuda_graph_config", "moe_config", "cache_transceiver_config",
})  # fmt: skip
# The sides of a file of `trtllm-serve disaggregated` with their servers' role; then the keys on reaching them.
_SIDES: Mapping[str, str] = {"context_servers": "context", "generation_servers": "generation"}
_OF_FRONT = ("hostname", "port", "urls", "num_instances", "router", "conditional_disagg_config", "max_retries")
_READ_OF_RAY = frozenset({"engine_kwargs", "runtime_env"})
# A container's surroundings before anything is read.
_NOTHING_AROUND = Process(engine="vllm", words=())


class Manifest(Struct):
    """What documents amount to: the processes that containers start, and the documents that are files of options.

    `sides` are the servers that a file of `trtllm-serve disaggregated` lists, used if nothing else starts them.
    `variables` are set beside the documents; `contents` are texts of compose `configs` by name.
    """

    script: Script = field(default_factory=Script)
    options: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sides: list[Process] = field(default_factory=list[Process])
    variables: dict[str, str] = field(default_factory=dict[str, str])
    contents: dict[str, str] = field(default_factory=dict[str, str])
    values: int = 0


def is_manifest(text: str) -> bool:
    """Whether a text is YAML of one of the kinds that are read here."""
    return len(text) <= MOST_CHARS and _MANIFEST.search(text) is not None


def read_manifest(text: str, variables: Mapping[str, str] | None = None) -> Manifest | None:
    """What the YAML documents of `text` start, with `variables` set beside them; `None` if it is no YAML."""
    documents = _documents(text)
    if documents is None:
        return None
    manifest = Manifest(variables=dict(variables or {}))
    manifest.script.comments += [line.lstrip("# ") for line in text.split("\n") if line.startswith("#")]
    for document in documents:
        _walk(document, _NOTHING_AROUND, manifest, _MOST_DEPTH)
    return manifest


def _documents(text: str) -> list[Any] | None:
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader with a checkpoint at each token."""

        def fetch_more_tokens(self) -> Any:
            checkpoint()
            return super().fetch_more_tokens()

    try:
        return list(islice(yaml.load_all(_TEMPLATE.sub(r"$\1", text), Loader), _MOST_DOCUMENTS))
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _walk(value: object, around: Process, manifest: Manifest, depth: int) -> None:
    manifest.values += 1
    if manifest.values > _MOST_VALUES or depth <= 0:
        return
    if isinstance(value, str):
        # A manifest inside a text of another.
        for document in (_documents(value) or ()) if "\n" in value and is_manifest(value) else ():
            _walk(document, around, manifest, depth - 1)
    elif is_list(value):
        for member in value:
            _walk(member, around, manifest, depth - 1)
    elif is_object(value):
        around = _surroundings(value, around)
        for name, config in as_mapping(value.get("configs")).items():
            manifest.contents[name] = as_str(as_mapping(config).get("content")) or ""
        processes = of_kserve(value)
        if processes is None and (process := of_helm(value, around)) is not None:
            processes = [process]
        if processes is not None:
            manifest.script.processes += processes
            return
        if as_str(value.get("kind")) == "ConfigMap":
            manifest.script.files.update(
                (name, text) for name, text in as_mapping(value.get("data")).items() if isinstance(text, str)
            )
            return
        if is_object(value.get("engine_kwargs")):
            _of_ray(value, around, manifest)
            return
        if _SIDES.keys() <= value.keys():
            manifest.sides += _disaggregated(value)
            return
        if _OPTIONS & value.keys():
            manifest.options.append(value)
            return
        if (task := of_skypilot(value, around)) is not None:
            _script(*task, manifest)
            return
        if any(isinstance(value.get(key), str | list) for key in ("command", "args", "image")):
            _container(value, around, manifest)
            return
        for key, inner in _inside(value):
            _walk(inner, replace(around, hint=f"{around.hint} {key}"[-400:]), manifest, depth - 1)


def _inside(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parts of an object; a group's leader template stands for all its nodes.

    `x-…` parts of a compose file are templates for its services and start nothing.
    """
    left_out = {"workerTemplate"} if "leaderTemplate" in value else set[str]()
    if "services" in value:
        left_out |= {key for key in value if str(key).startswith("x-")}
    return ((str(key), inner) for key, inner in value.items() if key not in left_out)


def _surroundings(value: Mapping[str, Any], around: Process) -> Process:
    hints = [as_str(source.get(key)) for source in (value, as_mapping(value.get("metadata"))) for key in _HINTS]
    labels = as_mapping(as_mapping(value.get("metadata")).get("labels"))
    hints += [text for text in labels.values() if isinstance(text, str)]
    deployed = as_mapping(value.get("deploy"))
    copies = as_int(value.get("replicas")) or as_int(deployed.get("replicas"))
    size = as_int(value.get("size")) or as_int(as_mapping(value.get("multinode")).get("nodeCount"))
    return replace(
        around,
        hint=" ".join(filter(None, (around.hint, *hints)))[-400:],
        copies=around.copies if copies is None or copies < 1 else copies,
        nodes=size or around.nodes,
        gpus=of_object(value) or around.gpus,
        runs_on=tuple(dict.fromkeys((*around.runs_on, *hardware_in(value)))),
    )


def _container(value: Mapping[str, Any], around: Process, manifest: Manifest) -> None:
    image = as_str(value.get("image")) or ""
    words = [*([image] if image else []), *_words(value.get("entrypoint")), *_words(value.get("command"))]
    words += _words(value.get("args"))
    environment = _environment(value)
    for config in map(as_mapping, as_list(value.get("configs"))):
        name, target = as_str(config.get("source")) or "", as_str(config.get("target")) or ""
        manifest.script.files[target.rsplit("/", 1)[-1]] = manifest.contents.get(name, "")
    if around.nodes is not None:
        environment.setdefault("LWS_GROUP_SIZE", str(around.nodes))
    process = replace(around, environment=environment, beside=(f"image {image[:120]}",) if is_foreign(image) else ())
    started = engine_words(words)
    script = next((word for word in words if "\n" in word or " " in word), None)
    if script is not None and any(word in SHELLS for word in words):
        _script(script, replace(process, version=image_version(words)), manifest)
    elif started is not None:
        engine, flags, version = started
        # Kubernetes writes $(NAME) where a shell has ${NAME}.
        plain = tuple(filled(_OF_POD.sub(r"${\1}", word), {**manifest.variables, **environment}) for word in flags)
        launched = is_launched(words[: len(words) - len(flags)])
        manifest.script.processes.append(
            replace(process, engine=engine, words=plain, version=version, is_spread=launched)
        )


def _script(text: str, process: Process, manifest: Manifest) -> None:
    """Read a script of a manifest into it, with the surroundings of `process`."""
    environment = process.environment
    inner = read_script(text, process, environment)
    manifest.script.processes += [
        replace(process, environment={**environment, **process.environment}) for process in inner.processes
    ]
    manifest.script.files.update(inner.files)
    manifest.script.loads += inner.loads


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        try:
            return shlex.split(value, comments=True)
        except ValueError:
            return value.split()
    return [str(word) for word in as_list(value) if isinstance(word, str | int | float)]


def _environment(value: Mapping[str, Any]) -> dict[str, str]:
    """Variables of a container, as Kubernetes lists them (`env`) or compose does (`environment`)."""
    stated: dict[str, str] = {}
    for variable in as_list(value.get("env")) or as_list(value.get("envs")):
        entry = as_mapping(variable)
        if isinstance(entry.get("value"), str | int | float):
            stated[str(entry.get("name"))] = str(entry["value"])
    by_name = value.get("environment")
    stated |= _plain(by_name)
    for line in as_list(by_name):
        name, _, text = str(line).partition("=")
        stated[name] = text
    devices = as_mapping(as_mapping(as_mapping(value.get("deploy")).get("resources")).get("reservations")).get(
        "devices"
    )
    ids = [str(identity) for device in as_list(devices) for identity in as_list(as_mapping(device).get("device_ids"))]
    if ids:
        stated.setdefault("CUDA_VISIBLE_DEVICES", ",".join(ids))
    return stated


def _plain(value: object) -> dict[str, str]:
    """Variables that an object names."""
    return {str(name): str(text) for name, text in as_mapping(value).items() if isinstance(text, str | int | float)}


def _of_ray(value: Mapping[str, Any], around: Process, manifest: Manifest) -> None:
    """An `LLMConfig` of Ray Serve: vLLM, with the flags of its engine in place of flags."""
    loading = as_mapping(value.get("model_loading_config"))
    model = as_str(loading.get("model_source")) or as_str(loading.get("model_id")) or ""
    words = [*([model] if model else []), *_as_flags(as_mapping(value.get("engine_kwargs")))]
    deployed = as_mapping(value.get("deployment_config"))
    copies = as_int(deployed.get("num_replicas")) or as_int(
        as_mapping(deployed.get("autoscaling_config")).get("min_replicas")
    )
    manifest.script.processes.append(
        replace(
            around,
            words=tuple(words),
            environment=_plain(as_mapping(value.get("runtime_env")).get("env_vars")),
            copies=max(1, copies or around.copies),
            is_spread=True,
            beside=tuple(_unread_of_ray(value, model)),
        )
    )


def _unread_of_ray(value: Mapping[str, Any], model: str) -> Iterator[str]:
    """The settings of an `LLMConfig` that no plan has."""
    for path, setting in leaves(value).items():
        is_model = path[0] == "model_loading_config" and setting == model
        if not is_model and path[0] not in _READ_OF_RAY and path != ("deployment_config", "num_replicas"):
            yield ".".join(path)[:120]


def _as_flags(settings: Mapping[str, Any]) -> Iterator[str]:
    """Arguments of an engine as flags."""
    for name, setting in settings.items():
        yield f"--{name}={json.dumps(setting, default=str) if is_nested(setting) else str(setting)}"


def _disaggregated(value: Mapping[str, Any]) -> Iterator[Process]:
    """The servers of each side; settings above the sides apply to both."""
    common = {name: setting for name, setting in value.items() if name not in (*_SIDES, *_OF_FRONT)}
    for side, role in _SIDES.items():
        side_settings = as_mapping(value.get(side))
        settings = common | {name: setting for name, setting in side_settings.items() if name not in _OF_FRONT}
        words = (*_as_flags({"server_role": role, **settings}),)
        yield Process(
            engine="trtllm", words=words, hint=side, copies=max(1, as_int(side_settings.get("num_instances")) or 1)
        )
