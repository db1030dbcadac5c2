"""Remarks on an export: what a person has to take care of before it runs as planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..engines.release import release_of
from ..performance.capacity import held_requests
from ..performance.layout import LoadedLayout
from ..plan.document import Plan
from ..plan.prefixes import DEFAULT_ROUTING, Routing
from .result import TargetName
from .server import Server, ServingSettings
from .target import Target

# Forms that join equal servers by a Kubernetes Service, which picks servers at random or in turn (its documentation,
# "Virtual IPs and Service Proxies").
_DEALT_BY_SERVICE = frozenset({"kubernetes"})
_DEALT: Mapping[Routing, str] = {
    "round_robin": "to the next server in turn",
    "least_loaded": "to the server with the fewest",
    "sticky": "to the server that its conversation began on",
    "prefix_aware": "to the server whose cache holds most of its prompt",
}


def remarks_of(plan: Plan, layout: LoadedLayout, target: Target, settings: ServingSettings) -> Iterator[str]:
    """What a person has to take care of before the export runs as planned."""
    version = None if plan.serving is None else plan.serving.engine_version
    if version is not None and release_of(version) != release_of(target.engine.version):
        yield f"the plan names version {version}; these flags are those of {target.engine.version}"
    if settings.checkpoint_format is not None:
        yield f"MODEL has to be a checkpoint in {settings.checkpoint_format}"
    if settings.quantisation is not None:
        yield f"the checkpoint is made {settings.quantisation} when it is loaded"
    if settings.overlaps:
        yield "halves of a batch overlap by DeepEP, which has to be installed"
    if layout.is_disaggregated:
        yield "the servers of the two phases need NIXL and a network that reaches from one to the other"
        if settings.hands_on_in_stages and (pushes := target.engine.pushes_from_stages) is not None:
            yield (
                f"the stages of a prefill server write their parts of a cache ({pushes}): the proxy or router in front "
                "has to speak that mode, in which both servers of a request are started at once"
            )
        if settings.kv_offload_bytes is not None and not target.engine.keeps_beside_transfer:
            yield (
                f"memory of the host for the KV cache is left out: {target.engine.title} has one connector, which "
                "hands caches over here (join the two by a MultiConnector of your own)"
            )
    yield from _limits(layout, target, settings)


def dealing(plan: Plan, servers: Sequence[Server], name: TargetName) -> Iterator[str]:
    """Remark if the load balancer of a role's servers distributes requests in another way than the figures assume."""
    roles = [server.role for server in servers]
    if name in _DEALT_BY_SERVICE and len({*roles}) < len(roles):
        prefixes = plan.workload.prefixes
        routing = (None if prefixes is None else prefixes.routing) or DEFAULT_ROUTING
        yield (
            "a Service deals connections among its pods whatever they have to do, while the figures of this plan deal "
            f"each request {_DEALT[routing]}: put a balancer that does so before the pods (the engine's router, or a "
            "gateway by least requests), or expect to wait longer for the first token"
        )


def _limits(layout: LoadedLayout, target: Target, settings: ServingSettings) -> Iterator[str]:
    """The length above which requests are refused, and the number at once above which they wait."""
    setting = layout.setting
    most, longest = setting.architecture.max_position_embeddings, settings.longest_tokens
    if settings.max_tokens < most:
        origin = "kept" if settings.keeps_max_tokens else f"set for the load, tighter than {target.engine.title}'s own"
        yield (
            f"requests longer than {settings.max_tokens:,} tokens in all are refused by this command "
            f"({target.engine.vocabulary.flag('max_tokens')}, {origin}); the load's longest has {longest:,}, the model "
            f"takes {most:,}"
        )
    stated = setting.serving.max_batch
    origin = f"{target.engine.title}'s own" if stated is None else "the plan's"
    held = held_requests(layout)
    cache = "" if held is None else f"; the KV cache of all servers holds {held:,} requests of the load's length"
    where = " in each attention group" if layout.phase("decode").attention_groups > 1 else ""
    yield (
        f"a server runs at most {settings.max_sequences:,} requests at once{where} "
        f"({target.engine.vocabulary.flag('max_sequences')}, {origin}), others wait{cache}"
    )
