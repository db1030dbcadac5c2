"""Counts of nodes, of the GPUs of each and of all GPUs: where they do not fit, which of them is of something else."""

from __future__ import annotations

from .claims import Claims
from .evidence import holds
from .statement_rank import standing_of

_LEFT = "is left of them"


def check_counts(claims: Claims) -> None:
    """Where nodes, GPUs of each and all GPUs do not fit, drop what says it least plainly, or refuse them."""
    nodes, per_node, gpus = (claims.values.get(name) for name in ("nodes", "gpus_per_node", "gpus"))
    if gpus is None or nodes is None:
        return
    is_left = per_node is not None and _parts_of(claims, nodes, per_node).get(gpus) == _LEFT
    if gpus != nodes * (per_node or gpus // nodes) and not is_left and _are_of_others(claims):
        return
    if per_node is not None and nodes * per_node != gpus and _is_no_size(claims, nodes, per_node, gpus):
        claims.drop("gpus_per_node")
        per_node = None
    if per_node is not None and nodes * per_node != gpus:
        _settle_total(claims, nodes, per_node, gpus)
    elif gpus % nodes:
        raise claims.refusal(
            f"{gpus} GPUs ({claims.words['gpus']!r}) do not divide evenly "
            f"over {nodes} nodes ({claims.words['nodes']!r})"
        )


def _are_of_others(claims: Claims) -> bool:
    """Drop nodes that are said of something else than the GPUs; whether they are."""
    of_nodes = claims.words["nodes"]
    if standing_of(claims.text, of_nodes) <= max(0, standing_of(claims.text, claims.words["gpus"])):
        return False
    claims.reading(f"{of_nodes!r} is said of something else, and was not read as what there is")
    claims.drop("nodes")
    return True


def _is_no_size(claims: Claims, nodes: int, per_node: int, gpus: int) -> bool:
    """Whether the GPUs of each node say less plainly what there is than the total beside them, which is noted."""
    words = claims.words["gpus_per_node"]
    is_part = nodes == 1 and gpus < per_node and not holds(words, per_node)
    is_other = not is_part and gpus % nodes == 0 and not claims.is_plain("gpus_per_node")
    if is_part:
        claims.reading(f"{words!r} has {per_node} GPUs, of which {gpus} are planned for")
    elif is_other:
        claims.leave_unread(f"{words!r} was not read as the GPUs per node")
    return is_part or is_other


def _settle_total(claims: Claims, nodes: int, per_node: int, gpus: int) -> None:
    """Drop a total that is said of more, of a part or of something else than the counted nodes; else refuse it."""
    words, of_nodes, parts = claims.words["gpus"], claims.words["nodes"], _parts_of(claims, nodes, per_node)
    if nodes * per_node < gpus and not holds(words, gpus):
        claims.reading(f"{words!r} is what {of_nodes!r} are a part of")
    elif gpus in parts:
        claims.reading(f"{words!r} is what {parts[gpus]}")
    elif not claims.is_plain("gpus"):
        counted = f"{of_nodes!r} with {claims.words['gpus_per_node']!r}"
        claims.leave_unread(f"{words!r} was not read as the number of GPUs, which {counted} say")
    elif standing_of(claims.text, of_nodes) < standing_of(claims.text, words):
        claims.reading(f"{words!r} is said of something else, and was not read as what there is")
    else:
        raise claims.refusal(
            f"the GPU counts contradict each other: {words!r} says {gpus}, "
            f"but {nodes} x {per_node} = {nodes * per_node} ({of_nodes!r})"
        )
    claims.drop("gpus")


def _parts_of(claims: Claims, nodes: int, per_node: int) -> dict[int, str]:
    """GPU counts that state a part of all GPUs, with that part in words: a node's, or those not reserved."""
    reserved = [c for c in claims.values.get("constraints", ()) if c.kind in ("reserved_gpus", "reserved_nodes")]
    reserved_gpus = sum(c.value * (per_node if c.kind == "reserved_nodes" else 1) for c in reserved)
    return {nodes * per_node - reserved_gpus: _LEFT, per_node: "each node has"}
