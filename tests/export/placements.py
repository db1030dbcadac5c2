"""Which device computes which part, from the commands alone and the rank order that the engines document."""

from __future__ import annotations

from typing import Any

import yaml

from shardwright.tools.export.result import Export, Launch

# Flags by which the processes of a server find each other, and clients the server; a launcher may set them instead.
MEETING = {
    *("--host", "--port", "--headless", "--nnodes", "--node-rank", "--master-addr", "--master-port"),
    *("--dist-init-addr", "--data-parallel-size-local", "--data-parallel-start-rank"),
    *("--data-parallel-address", "--data-parallel-rpc-port", "--disaggregation-bootstrap-port"),
}


def options(arguments: tuple[str, ...]) -> dict[str, str]:
    """Value of each flag of the engine; a switch has an empty one."""
    if arguments[0] == "mpirun":
        arguments = arguments[arguments.index("trtllm-serve") :]
    flags = [place for place, word in enumerate(arguments) if word.startswith("--")]
    return {
        arguments[place]: arguments[place + 1] if place + 1 < len(arguments) and place + 1 not in flags else ""
        for place in flags
    }


def config_of(result: Export, launch: Launch) -> dict[str, Any]:
    name = options(launch.arguments)["--config"]
    return yaml.safe_load(next(file.text for file in result.files if file.name == name))


def _ranks(result: Export, server: int) -> list[str]:
    """The devices of a server in rank order, as its processes see them."""
    launches = [launch for launch in result.launches if launch.server == server]
    first = launches[0]
    if result.target == "trtllm" and first.arguments[0] == "mpirun":
        # The GPUs that are named, on each host.
        hosts = first.arguments[first.arguments.index("-H") + 1].split(",")
        gpus = first.environment["CUDA_VISIBLE_DEVICES"].split(",")
        assert all(host.endswith(f":{len(gpus)}") for host in hosts)
        return [f"{host[1:].partition(':')[0].lower()}.g{gpu}" for host in hosts for gpu in gpus]
    return [
        f"{launch.node}.g{gpu}" for launch in launches for gpu in launch.environment["CUDA_VISIBLE_DEVICES"].split(",")
    ]


def stages(result: Export, server: int) -> list[list[str]]:
    """The devices of each stage of a server, by the rank order that its engine documents."""
    ranks = _ranks(result, server)
    launch = next(launch for launch in result.launches if launch.server == server)
    flags = options(launch.arguments)
    if result.target == "vllm":
        # Data-parallel groups outermost, then stages.
        pp = int(flags.get("--pipeline-parallel-size", 1))
        groups = int(flags.get("--data-parallel-size", 1))
        size = len(ranks) // groups // pp
        return [
            [ranks[(group * pp + stage) * size + rank] for group in range(groups) for rank in range(size)]
            for stage in range(pp)
        ]
    if result.target == "sglang":
        pp = int(flags.get("--pp-size", 1))
    else:
        pp = int(config_of(result, launch)["pipeline_parallel_size"])
    width = len(ranks) // pp
    return [ranks[stage * width : (stage + 1) * width] for stage in range(pp)]


def world(result: Export, launch: Launch) -> int:
    """Count of the ranks of a server, by its degrees alone."""
    flags = options(launch.arguments)
    if result.target == "vllm":
        names = ("tensor-parallel", "pipeline-parallel", "data-parallel", "prefill-context-parallel")
        sizes = [int(flags.get(f"--{name}-size", 1)) for name in names]
    elif result.target == "sglang":
        sizes = [int(flags.get(name, 1)) for name in ("--tp-size", "--pp-size")]
    else:
        config = config_of(result, launch)
        sizes = [config.get(f"{name}_parallel_size", 1) for name in ("tensor", "pipeline", "context")]
    world = 1
    for size in sizes:
        world *= size
    return world
