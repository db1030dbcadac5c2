"""Ray Serve LLM 2.60: a configuration for `serve run`, whose replicas are vLLM with its flags as `engine_kwargs`.

Ray puts the ranks of a replica where it has free GPUs, as close together as it can, and starts their processes itself.
One application serves replicas of one kind, or of one kind per phase. Fields: ray-project/ray, `python/ray/llm/
_internal/serve/` (`core/configs/llm_config.py`, `core/ingress/builder.py`, `serving_patterns/data_parallel/builder.py`,
`serving_patterns/prefill_decode/builder.py`, `engines/vllm/vllm_models.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .pods import Group, groups_of
from .target import CannotExportError, Written
from .text import checkpoint_name, engine_flags, kept_environment, yaml_text

# The version that ray[llm] 2.60 requires.
_VLLM = "0.29.0"
_REMARKS = (
    "Ray chooses nodes and GPUs, those of a replica as close together as it can; accelerator_type of an LLMConfig "
    "keeps replicas to one kind of GPU",
    f"ray[llm] 2.60 has vLLM {_VLLM}, not the version of these flags; HF_TOKEN is read from its workers' environment",
    "start with serve run FILE on a Ray cluster; it answers on port 8000",
)


def application(written: Written) -> str:
    """The configuration of a Ray Serve application that runs the servers of a plan.

    Raises:
        CannotExportError: the engine is not vLLM, or Ray would place the servers in another way than the plan.
    """
    if written.engine.name != "vllm":
        raise CannotExportError(
            f"Ray Serve LLM runs vLLM here, not {written.engine.name}: have the plan name vLLM, or none"
        )
    groups = groups_of(written)
    for group in groups:
        _check(group)
    builder, arguments = _application(written, groups)
    app = {
        "name": "servers",
        "route_prefix": "/",
        "import_path": f"ray.serve.llm:{builder}",
        "args": arguments,
    }
    return yaml_text(written, _REMARKS, [{"applications": [app]}], written.check)


def _check(group: Group) -> None:
    server, name = group.server, f"replica {group.server.index}"
    ranks = server.tp * server.pp
    if server.context > 1:
        raise CannotExportError(f"{name}: Ray counts a replica's GPUs as TP x PP, without context parallelism")
    if server.groups > 1 and len(server.nodes) > 1 and group.gpus % ranks:
        raise CannotExportError(
            f"{name}: Ray keeps each group of data-parallel attention to one node; the plan has groups of {ranks} "
            f"ranks on {group.gpus} GPUs a node"
        )


def _application(written: Written, groups: Sequence[Group]) -> tuple[str, dict[str, Any]]:
    """The builder of the application and its arguments."""
    if len(groups) == 1:
        config = _config(written, groups[0])
        if groups[0].server.groups > 1:
            return "build_dp_openai_app", {"llm_config": config}
        return "build_openai_app", {"llm_configs": [config]}
    by_role = {group.server.role: group for group in groups}
    if len(groups) == 2 and set(by_role) == {"prefill", "decode"}:
        return "build_pd_openai_app", {
            f"{role}_config": _config(written, by_role[role]) for role in ("prefill", "decode")
        }
    names = ", ".join(group.name for group in groups)
    raise CannotExportError(
        f"a Ray Serve application has replicas of one kind, or one kind for each phase; the plan has {names}"
    )


def _config(written: Written, group: Group) -> dict[str, Any]:
    launch = group.launches[0]
    # Ray assigns GPUs itself, and its own connector passes hosts and ports to NIXL.
    variables = kept_environment(launch)
    return {
        "model_loading_config": {"model_id": written.model, "model_source": checkpoint_name(written)},
        "deployment_config": {"num_replicas": group.count},
        "engine_kwargs": dict(_keywords(engine_flags(written.engine, launch.arguments))),
        **({"runtime_env": {"env_vars": variables}} if variables else {}),
    }


def _keywords(words: Sequence[str]) -> Iterator[tuple[str, object]]:
    """Flags of vLLM as arguments of its engine: numbers and JSON parsed, switches as true."""
    for place, word in enumerate(words):
        if not word.startswith("--"):
            continue
        value = words[place + 1] if place + 1 < len(words) and not words[place + 1].startswith("--") else "true"
        yield word[2:].replace("-", "_"), _value(value)


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
