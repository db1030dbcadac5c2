"""Slurm: one batch script that starts all servers on the nodes of its job, and ends all when one ends.

`srun` maps the job's k-th node to the plan's k-th. Steps share a node's GPUs (`--overlap`), and each command names its
own; ranks of TensorRT-LLM are tasks joined by PMIx instead of mpirun. Options: Slurm's manuals of
`sbatch`, `srun` and `scontrol`; NVIDIA/TensorRT-LLM, `docs/source/commands/trtllm-serve` (multi-node with Slurm).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from .result import Launch
from .server import Server
from .target import CannotExportError, Written, variable_of
from .text import INDENT, checkpoint_lines, command_text, comment, file_lines, nodes_named, role_line, shell_script

_START = (
    "# Options for every step, such as --container-image=IMAGE of Pyxis, may stand in SRUN_OPTIONS.",
    "step=(srun --overlap --cpu-bind=none --kill-on-bad-exit=1 ${SRUN_OPTIONS:-})",
    'mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
)
_ADDRESS_OF = (
    "# The first address of a node; another one is taken where its variable is set.",
    """address() { srun --overlap --nodes=1 --ntasks=1 --nodelist="${nodes[$1]}" hostname -I | awk '{print $1}'; }""",
)
_BEGIN = ("servers=()", """trap 'kill "${servers[@]}" 2>/dev/null || true; wait' EXIT""")
# Not `wait -n`: some versions of bash then wait for the next command if one has already ended.
_END = (
    "# The first server that ends ends the job, with its status.",
    "while true; do",
    '  for server in "${servers[@]}"; do kill -0 "$server" 2>/dev/null || { wait "$server"; exit; }; done',
    "  sleep 5",
    "done",
)


def batch_script(written: Written) -> str:
    """The script for `sbatch` that starts the servers of a plan.

    Raises CannotExportError: ranks of TensorRT-LLM visit nodes in another order than Slurm's.
    """
    # The nodes of a job are ordered by name, so the plan's are too.
    nodes = sorted({node for server in written.servers for node in server.nodes}, key=lambda node: int(node[1:]))
    is_joined = written.engine.name == "trtllm"
    launches = [_joined(group[0]) for group in written.launches] if is_joined else [*chain(*written.launches)]
    head = map(comment, (written.head[0], "Start it with: sbatch SCRIPT", *written.head[1:], *_remarks(written, nodes)))
    lines = [
        *("#!/usr/bin/env bash", f"#SBATCH --nodes={len(nodes)}", f"#SBATCH --gpus-per-node={written.gpus_per_node}"),
        *("#SBATCH --ntasks-per-node=1", "#SBATCH --exclusive", "#SBATCH --mem=0", *head, "set -euo pipefail", ""),
        *(*checkpoint_lines(written), "", *_START),
    ]
    named = nodes_named(launches)
    if named:
        variables = ((variable_of(node), nodes.index(node)) for node in named)
        lines += [*_ADDRESS_OF, *(f'{name}="${{{name}:-$(address {place})}}"' for name, place in variables)]
    lines += ["", *(line for files in written.files for line in file_lines(files)), *_BEGIN]
    by_server = {server.index: server for server in written.servers}
    for launch in launches:
        lines += _step(by_server[launch.server], launch, nodes, is_joined)
    lines += _END
    return shell_script(written, lines)


def _remarks(written: Written, nodes: Sequence[str]) -> Iterator[str]:
    places = ", ".join(f"{variable_of(node)} the address of nodes[{place}]" for place, node in enumerate(nodes))
    yield f"Nodes of the job stand in the order of their names: {places}."
    yield "Mind: the engine has to be installed on the nodes, or in the container that SRUN_OPTIONS names"
    if any(written.files):
        yield "Mind: the folder of the job is written to, and has to be the same on all nodes"


def _joined(launch: Launch) -> Launch:
    """The TensorRT-LLM command that each rank runs."""
    words = launch.arguments[launch.arguments.index("trtllm-serve") :]
    return launch.model_copy(update={"arguments": ("trtllm-llmapi-launch", *words)})


def _step(server: Server, launch: Launch, nodes: Sequence[str], is_joined: bool) -> Iterator[str]:
    """The lines that start one command, or all ranks of it (`is_joined`)."""
    on, tasks = (server.nodes, len(server.devices())) if is_joined else ((launch.node,), 1)
    if list(on) != sorted(on, key=nodes.index):
        raise CannotExportError(
            f"replica {server.index} has its ranks on nodes {', '.join(on)} in this order; Slurm numbers tasks by the "
            "names of nodes"
        )
    options = [f"--nodes={len(on)}", f"--ntasks={tasks}"]
    if is_joined:
        options += [f"--ntasks-per-node={tasks // len(on)}", "--distribution=block", "--mpi=pmix"]
    names = ",".join(f"${{nodes[{nodes.index(node)}]}}" for node in on)
    command = command_text([*launch.environment.items()], launch.arguments, "")
    yield role_line(launch)
    yield f'"${{step[@]}}" {" ".join(options)} --nodelist="{names}" \\'
    yield f"{INDENT}env {command} &"
    yield "servers+=($!)"
