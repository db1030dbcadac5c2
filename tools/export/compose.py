"""Docker Compose: one file for all nodes; each command is a service that sees exactly its GPUs in the plan.

On several nodes the services of a node are a profile, and every node is given all addresses, in its environment or a
file `.env`. Fields and variables: compose-spec/compose-spec, `05-services.md`, `deploy.md` (devices), `08-configs.md`
(content, Compose 2.23), `12-interpolation.md`, `15-profiles.md`. Services use the host's network, as NIXL and the
engines' own ports need, so that no port is published.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .result import ConfigFile, Launch
from .server import Server
from .target import Written, port_of, variable_of
from .text import checkpoint_name, is_plain, nodes_named, only_nvidia, refuse_mpirun, tail_lines, ways_of, yaml_text

_VARIABLE = re.compile(r"\$([A-Z]+\d*)")
_FOLDER = "/launch"
# Two hours: a server may load a checkpoint of a terabyte.
_LOAD_TIME = "2h"
# The usual limits for containers of these engines: locked memory for RDMA, and a larger stack.
_ULIMITS = {"memlock": -1, "stack": 67_108_864}
_CACHE = "/cache/huggingface"


def compose_file(written: Written) -> str:
    """The compose file that runs the servers of a plan.

    Raises CannotExportError: servers start by mpirun, or the GPUs are not NVIDIA's.
    """
    only_nvidia(written, "how a compose file reserves GPUs by their numbers is known")
    launches = [launch for server_launches in written.launches for launch in server_launches]
    nodes = list(dict.fromkeys(launch.node for launch in launches))
    values = {
        "MODEL": _checkpoint(written),
        **{variable_of(node): _address(node, nodes) for node in nodes_named(launches)},
    }
    services: dict[str, Any] = {}
    for server, server_launches, files in zip(written.servers, written.launches, written.files, strict=True):
        refuse_mpirun(server, server_launches, "and containers of a compose file cannot start processes in each other")
        for launch in server_launches:
            service = _service(written, launch, files, values)
            if len(nodes) > 1:
                service = {"profiles": [launch.node], **service}
            if launch is server_launches[0]:
                service["healthcheck"] = _health(server)
            services[f"{launch.node}-replica{launch.server}"] = service
    contents = {_name(file): {"content": _filled(file.text, values)} for files in written.files for file in files}
    objects = [{"services": services, **({"configs": contents} if contents else {})}]
    return yaml_text(written, _remarks(nodes, list(values)[1:]), objects, tail_lines(written, ways_of(written)))


def _remarks(nodes: Sequence[str], addresses: Sequence[str]) -> list[str]:
    start = "docker compose -f FILE up"
    if len(nodes) > 1:
        start = (
            f"docker compose -f FILE --profile {nodes[0]} up on node {nodes[0]}, and so on for {', '.join(nodes[1:])}"
        )
        if addresses:
            start += f", on each with the addresses {' '.join(addresses)} in its environment or in .env beside FILE"
    remarks = [
        f"start with {start} (Compose 2.23 or later, NVIDIA Container Toolkit)",
        "GPUs are numbered as nvidia-smi does; a checkpoint that is a path has to lie under the cache that is mounted",
    ]
    if len(nodes) > 1:
        rdma = "add the RDMA devices to the services (devices: [/dev/infiniband]): without them traffic between nodes"
        remarks.append(f"{rdma} goes over TCP")
    return remarks


def _checkpoint(written: Written) -> str:
    """The checkpoint as the file states it: replaceable by the caller, if its name may stand in a default."""
    if written.checkpoint_format is not None:
        return f"${{MODEL:?a checkpoint in {written.checkpoint_format}}}"
    name = checkpoint_name(written)
    return f"${{MODEL:-{name}}}" if is_plain(name) else name.replace("$", "$$")


def _address(node: str, nodes: Sequence[str]) -> str:
    variable = variable_of(node)
    return f"${{{variable}:-127.0.0.1}}" if len(nodes) == 1 else f"${{{variable}:?the address of node {node}}}"


def _filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with the values of its variables."""
    return _VARIABLE.sub(lambda match: values[match[1]], text)


def _service(
    written: Written, launch: Launch, files: Sequence[ConfigFile], values: Mapping[str, str]
) -> dict[str, Any]:
    ranks = [int(gpu) for gpu in launch.environment["CUDA_VISIBLE_DEVICES"].split(",")]
    visible = sorted(ranks)
    environment = {name: _filled(value, values) for name, value in launch.environment.items()}
    # A container numbers its GPUs from 0, in the order of their places in the machine.
    environment |= {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(str(visible.index(gpu)) for gpu in ranks),
        "HF_HOME": _CACHE,
        "HF_TOKEN": "${HF_TOKEN:-}",
    }
    gpus = {"driver": "nvidia", "device_ids": [str(gpu) for gpu in visible], "capabilities": ["gpu"]}
    mounted = [{"source": _name(file), "target": f"{_FOLDER}/{file.name}"} for file in files]
    return {
        "image": written.image,
        "entrypoint": [],
        "command": [_filled(word, values) for word in launch.arguments],
        "environment": environment,
        **({"working_dir": _FOLDER, "configs": mounted} if mounted else {}),
        "network_mode": "host",
        "ipc": "host",
        "ulimits": _ULIMITS,
        "volumes": [f"${{HF_HOME:-~/.cache/huggingface}}:{_CACHE}"],
        "deploy": {"resources": {"reservations": {"devices": [gpus]}}},
    }


def _name(file: ConfigFile) -> str:
    return file.name.partition(".")[0]


def _health(server: Server) -> dict[str, Any]:
    url = f"http://127.0.0.1:{port_of(server)}/health"
    ask = f"import urllib.request; urllib.request.urlopen({url!r}, timeout=5)"
    return {"test": ["CMD", "python3", "-c", ask], "interval": "10s", "timeout": "10s", "start_period": _LOAD_TIME}
