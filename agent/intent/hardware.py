"""The hardware of a request: which accelerators, how many nodes of how many, and what of it is assumed."""

from __future__ import annotations

from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.cluster import SAY_NETWORK, facts_of
from ...tools.catalog.hardware import find_accelerator, variant_taken
from ...tools.language.merge import refusal
from ...tools.language.said import Said
from ...tools.plan.constraints import chosen_kinds
from .intent import Assumption, HardwareChoice
from .notes import Notes

DEFAULT_NODE_SIZE = 8
DEFAULT_ACCELERATOR = "h100-sxm"


def assumed_variant(said: Said) -> dict[str, str]:
    """Why the variant of the accelerator was taken, where its words leave that open."""
    words = said.words.get("accelerator")
    if said.accelerator is None or said.accelerator_object is not None or words is None:
        return {}
    reason = variant_taken(words, find_accelerator(said.accelerator))
    return {} if reason is None else {"accelerator": reason}


def hardware_choices(said: Said, notes: Notes) -> tuple[HardwareChoice, ...]:
    """Hardware of each kind that was named to choose from; none where one kind was named, or no number was stated."""
    kinds = chosen_kinds(said.constraints)
    if not kinds or said.accelerator is not None or said.accelerator_object is not None:
        return ()
    if said.gpus_of_kinds is not None and len(said.gpus_of_kinds) == len(kinds):
        each = [said.model_copy(update={"gpus": gpus}) for gpus in said.gpus_of_kinds]
        return tuple(
            complete_hardware(stated, find_accelerator(kind), Notes()) for stated, kind in zip(each, kinds, strict=True)
        )
    if said.gpus is None and said.nodes is None and said.gpus_per_node is None:
        return ()
    # Assumptions on counts are noted once, for the first kind.
    first, *others = (find_accelerator(kind) for kind in kinds)
    return complete_hardware(said, first, notes), *(complete_hardware(said, other, Notes()) for other in others)


def named_accelerator(said: Said, notes: Notes) -> Accelerator | None:
    """The accelerator that was named. A count without a kind is read as the most usual kind, and says so."""
    if said.accelerator_object is not None:
        return said.accelerator_object
    if said.accelerator is not None:
        return find_accelerator(said.accelerator)
    if said.gpus is None and said.nodes is None and said.gpus_per_node is None:
        return None
    notes.assume("hardware.accelerator", DEFAULT_ACCELERATOR, "GPUs were counted but no kind was named")
    return find_accelerator(DEFAULT_ACCELERATOR)


def complete_hardware(said: Said, accelerator: Accelerator, notes: Notes) -> HardwareChoice:
    """Nodes and GPUs per node of one kind, as stated or assumed, and the links that were stated."""
    nodes, per_node = _counts(said, accelerator, notes)
    links = said.intra_node_bw_gb_s, said.inter_node_bw_gb_s
    if nodes is not None and not facts_of(accelerator, nodes, per_node, *links).crosses_nodes:
        notes.assumptions.append(inside_nodes(accelerator.id))
    return HardwareChoice(
        accelerator=accelerator if said.accelerator_object is not None else accelerator.id,
        nodes=nodes,
        gpus_per_node=per_node,
        intra_node_bw_gb_s=said.intra_node_bw_gb_s,
        inter_node_bw_gb_s=said.inter_node_bw_gb_s,
        is_most=said.gpus_open and said.gpus is not None,
    )


def inside_nodes(accelerator: str) -> Assumption:
    """The assumption that only replicas inside a node are looked at, since the network between nodes is unknown."""
    reason = (
        f"how fast nodes of {accelerator} send to each other is not known: only replicas that stay in a node were "
        f"looked at; {SAY_NETWORK} to have all"
    )
    return Assumption(field="hardware.inter_node_bw_gb_s", value=None, reason=reason)


def _counts(said: Said, accelerator: Accelerator, notes: Notes) -> tuple[int | None, int]:
    """Nodes (`None`: open) and GPUs per node. Stated counts win over "as few as needed"."""
    nodes, per_node, gpus = said.nodes, said.gpus_per_node, said.gpus
    if gpus is not None and nodes is not None:
        return nodes, _divided(said, gpus, nodes, "nodes")
    if gpus is not None and per_node is not None:
        if gpus < per_node:
            return 1, gpus
        return _divided(said, gpus, per_node, "GPUs per node"), per_node
    usual = _usual_size(accelerator, notes) if per_node is None else per_node
    if gpus is not None:
        return _filled_nodes(gpus, usual, notes)
    if nodes is not None:
        if per_node is None:
            notes.assume("hardware.gpus_per_node", usual, f"the usual node of {accelerator.id} holds {usual}")
        return nodes, usual
    if per_node is not None and not said.gpus_open:
        return notes.assume("hardware.nodes", 1, "a node was named and no number of nodes"), per_node
    if per_node is None:
        notes.assume("hardware.gpus_per_node", usual, f"the usual node of {accelerator.id} holds {usual}")
    if not said.gpus_open:
        notes.assume("hardware.nodes", None, "no number of GPUs was named: the fewest that do")
    return None, usual


def _divided(said: Said, gpus: int, by: int, noun: str) -> int:
    if gpus % by:
        raise refusal(said, f"{gpus} GPUs do not divide evenly by {by} {noun}; mend one of the two")
    return gpus // by


def _usual_size(accelerator: Accelerator, notes: Notes) -> int:
    if accelerator.typical_node_accelerators is not None:
        return accelerator.typical_node_accelerators
    return notes.assume(
        "hardware.typical_node", DEFAULT_NODE_SIZE, f"{accelerator.id} states no usual node; most servers hold 8"
    )


def _filled_nodes(gpus: int, usual: int, notes: Notes) -> tuple[int, int]:
    """A bare count: part of one node, whole usual nodes, or else the fewest nodes that share it evenly."""
    if gpus <= usual:
        nodes = 1
        reason = f"{gpus} GPUs fit in one node of the usual {usual}"
    elif gpus % usual == 0:
        nodes = gpus // usual
        reason = f"{gpus} GPUs fill {nodes} nodes of the usual {usual}"
    else:
        nodes = next(n for n in range(-(-gpus // usual), gpus + 1) if gpus % n == 0)
        reason = f"{gpus} GPUs do not fill nodes of the usual {usual}: the fewest nodes that share them evenly"
    notes.assume("hardware.nodes", nodes, reason)
    return nodes, gpus // nodes
