"""The operations of the embedding and of the LM head, whole on every device or split by vocabulary."""

from __future__ import annotations

from ..clock import rate_dtype
from ..operation import Operation
from ..operators.work import Matrix, embedding, linear, norm
from .writer import ProgramWriter, shape_of

# Logits leave the head in fp32 where they are gathered for sampling.
_LOGIT_BYTES = 4


def write_embedding(writer: ProgramWriter) -> None:
    """Token ids to hidden states; split by vocabulary, each device looks up its rows and the sum restores the rest."""
    context, load = writer.context, writer.context.load
    ids = (("batch", load.sequences), ("seq", load.new_tokens))
    hidden = shape_of(load.sequences, load.new_tokens, "hidden", context.hidden)
    row_bytes = context.setting.weight_bytes("vocabulary")
    work = embedding(load.tokens, context.hidden, row_bytes, context.element_bytes)
    writer.compute(Operation("embedding.lookup", "Embedding", "embedding", "embedding", ids, hidden), work)
    if context.shape.vocab_shards > 1:
        # Cut over several attention groups, each works on the tokens of all.
        tokens = load.all_tokens if context.shape.vocabulary_spans_groups else load.tokens
        size = tokens * context.hidden * context.element_bytes
        writer.transfer(
            Operation("embedding.close", "AllReduce", "embedding", "vocabulary", hidden, hidden),
            context.links.all_reduce(size, context.shape.vocab_group),
        )


def write_head(writer: ProgramWriter) -> None:
    """Final norm, the last position of each sequence, its logits, and their gathering where the head is split."""
    context, load, setting = writer.context, writer.context.load, writer.context.setting
    architecture, shards = setting.architecture, context.shape.vocab_shards
    if load.new_tokens > 1:
        whole = shape_of(load.sequences, load.new_tokens, "hidden", context.hidden)
        last = shape_of(load.sequences, 1, "hidden", context.hidden)
        writer.reshape(Operation("head.last", "Split", "head", "head", whole, last))
    positions = load.sequences
    here = shape_of(positions, 1, "hidden", context.hidden)
    vectors = setting.tensor_bytes(architecture.final_norm_tensors).total
    work = norm(positions, context.hidden, vectors, context.element_bytes)
    writer.compute(Operation("head.norm", "Norm", "head", "head", here, here), work)
    if context.shape.vocabulary_spans_groups:
        positions = positions * load.groups
        before, here = here, shape_of(positions, 1, "hidden", context.hidden)
        size = positions * context.hidden * context.element_bytes
        gather = context.links.all_gather(size, context.shape.vocab_group)
        writer.transfer(Operation("head.tokens", "AllGather", "head", "vocabulary", before, here), gather)
    # A tied table is read by the head as one H x V matrix too.
    elements = architecture.hidden_size * architecture.vocab_size / shards
    weight_bytes = elements * setting.weight_bytes("vocabulary")
    vocabulary = architecture.vocab_size / shards
    rate = rate_dtype(setting.weight_dtype("vocabulary"), setting.precision.activations)
    matrix = Matrix(elements, weight_bytes, setting.weight_dtype("vocabulary"), rate)
    work = linear(positions, matrix, context.hidden, context.element_bytes)
    logits = shape_of(positions, 1, "vocab", vocabulary)
    writer.compute(Operation("head.logits", "Linear", "head", "head", here, logits, role="lm_head"), work)
    if shards > 1:
        whole = shape_of(positions, 1, "vocab", architecture.vocab_size)
        size = positions * architecture.vocab_size * _LOGIT_BYTES
        gather = context.links.all_gather(size, context.shape.vocab_group)
        writer.transfer(Operation("head.close", "AllGather", "head", "vocabulary", logits, whole), gather)
