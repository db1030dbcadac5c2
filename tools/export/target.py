"""What an exporter is: an engine of one tested version, and the commands of one of its servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from ..catalog.dtypes import DType
from ..engines.engine import Engine
from ..plan.devices import NodeShare, node_shares
from .result import ConfigFile, Launch
from .server import Server, ServingSettings

# A server and its host and port.
Way = tuple[Server, str]
Fronts = Callable[[Sequence[Way], Sequence[Way]], tuple[str, ...]]
MODEL = "$MODEL"
# 16-bit formats as engines spell them.
_DTYPES: Mapping[DType | None, str] = {"bf16": "bfloat16", "fp16": "float16"}
# The first port of each kind; server k of a plan uses the k-th after it.
HTTP_PORT = 8000
MASTER_PORT = 29_500
HANDOFF_PORT = 15_000
# Ranks of a server use consecutive ports from the first on.
_PORTS_OF_A_SERVER = 100


class Written(Struct, frozen=True, kw_only=True):
    """The content of an export: `launches[i]` and `files[i]` start `servers[i]`.

    `image`: the container with the engine for these GPUs, "" if none is known. `gpus_per_node`: GPUs of a cluster node,
    each a `card`. `checkpoint_format`: the format that a checkpoint must have, if not the model's own. `head` describes
    the text, `check` how to see whether it runs as predicted, and `fronts` what joins servers: prefill servers, and all
    others.
    """

    engine: Engine
    image: str
    model: str
    gpus_per_node: int
    checkpoint_format: DType | None
    card: str
    gpu_resource: str
    servers: tuple[Server, ...]
    launches: tuple[tuple[Launch, ...], ...]
    files: tuple[tuple[ConfigFile, ...], ...]
    head: tuple[str, ...]
    check: tuple[str, ...]
    fronts: Fronts


class CannotExportError(Exception):
    """The form has no way to write what the plan wants; the message says what."""


class Commands(Struct, frozen=True):
    """How one server starts: a launch per node, and the files that it reads."""

    launches: tuple[Launch, ...]
    files: tuple[ConfigFile, ...] = ()


class Target(Struct, frozen=True):
    """One engine to write for; `fronts` is what joins several servers.

    `commands` gets servers of plans that the rules accept for the engine (EN) and refuses none.
    """

    engine: Engine
    commands: Callable[[Server, ServingSettings], Commands]
    fronts: Fronts


def variable_of(node: str) -> str:
    """The shell variable with the address of a node."""
    return node.upper()


def address_of(node: str) -> str:
    """The address of a node, as a command states it."""
    return f"${variable_of(node)}"


def port_of(server: Server) -> int:
    """The port on which a server answers."""
    return HTTP_PORT + server.index


def master_port_of(server: Server) -> int:
    """The port where the processes of a server meet."""
    return MASTER_PORT + server.index


def handoff_port_of(server: Server) -> int:
    """The first port that a server hands KV caches over on."""
    return HANDOFF_PORT + _PORTS_OF_A_SERVER * server.index


def launch(server: Server, share: NodeShare, environment: Mapping[str, str], arguments: Sequence[str]) -> Launch:
    """One process on one node, which sees the server's GPUs there in the order of its ranks."""
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, share.gpus))}
    return Launch(
        node=share.node,
        server=server.index,
        role=server.role,
        environment={**visible, **environment},
        arguments=tuple(arguments),
    )


def spread_of(server: Server, engine: Engine) -> Sequence[NodeShare]:
    """The devices of a server in the engine's rank order, node by node, as rule EN013 requires."""
    return node_shares(server.devices(engine.rank_order))


def cut_variable(server: Server, engine: Engine) -> dict[str, str]:
    """The environment that makes an engine cut stages as planned; empty if its default does."""
    cut = own_cut(server, engine)
    return {} if cut is None else {engine.cut_variable: ",".join(map(str, cut))}


def own_cut(server: Server, engine: Engine) -> tuple[int, ...] | None:
    """The layers of the stages; `None` if the engine's default cut is the same."""
    default = engine.default_cut(sum(server.layers), server.pp)
    return None if server.layers == default else server.layers


def cache_format(settings: ServingSettings, engine: Engine) -> str | None:
    """The engine's name of the KV cache's format; `None` for 16 bits. Rule EN014 excludes formats without a name."""
    return None if settings.kv_cache is None else engine.cache_formats[settings.kv_cache]


def serving_flags(server: Server, settings: ServingSettings, engine: Engine) -> list[str]:
    """Flags of the settings of a server."""
    stated = settings.token_budget
    return engine.vocabulary.written(
        max_sequences=engine.of_server(settings.max_sequences, server.groups),
        token_budget=settings.own_tokens if stated is None else engine.of_server(stated, server.groups),
        max_tokens=settings.max_tokens,
        memory_share=f"{settings.memory_share:g}",
        kv_cache=cache_format(settings, engine),
        dtype=_DTYPES.get(settings.dtype),
        quantization=None if settings.quantisation is None else engine.makes[settings.quantisation],
        host_cache=None if (figure := host_figure(server, settings, engine)) is None else str(figure),
    )


def host_figure(server: Server, settings: ServingSettings, engine: Engine) -> float | int | None:
    """The engine's figure for host memory that caches shared prefixes; `None` on decode servers, which need none."""
    if settings.kv_offload_bytes is None or server.role == "decode":
        return None
    if server.role == "prefill" and not engine.keeps_beside_transfer:
        return None
    return engine.host_figure(settings.kv_offload_bytes, server.context * server.tp * server.pp)


def urls(ways: Sequence[Way]) -> str:
    """The URLs of servers."""
    return " ".join(f"http://{address}" for _, address in ways)


def above_one(value: int) -> int | None:
    """`value`, or `None` if it is the engines' default 1."""
    return value if value > 1 else None
