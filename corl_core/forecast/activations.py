"""What the update keeps for its backward pass, in bytes, for each layer and token.

A decoder layer of transformers saves, for every token of the micro-batch (D: hidden size, Q: heads × head size, F: MLP width;
w, c: bytes of a weight and of a computed value, which differ where float32 weights are computed with in bfloat16):

    two norms           4 D the input in float32, w D the normed one (only where the norm is trained), each
    linear inputs       c D for each of q, k, v, gate and up where it is cast or adapted; else w D once for each norm
    attention           c Q each for queries, keys and values (repeated to all heads) and output; 4 bytes a head for its sums
    gated MLP           c F each for gate, its activation, up, and their product (GPT-NeoX: input and output of the activation)
    mask                c bytes a pair of positions, because prompts are padded (eager attention: 4 + 2 c bytes a pair and head)

A compiled layer (`training/compiled.py`) keeps less, because torch computes elementwise operations again where that is cheaper
than to keep them: its input, w D; the normed input of attention, that of the MLP and attention's projected output, c D each;
attention as above; gate, up and their product.

With gradient checkpointing (arXiv 1604.06174) only each layer's input stays, w D, and one layer at a time is computed again. It
may be for the first layers alone, which the backward pass comes to when it has done with the others.
"""

from dataclasses import dataclass

from corl_core.forecast.shape import Shape


@dataclass(frozen=True)
class Precision:
    """Bytes of a frozen or trained weight, and of a value computed with it; whether adapters are trained instead of weights."""

    weight: int
    compute: int
    adapters: bool = False
    rank: int = 0
    compiled: bool = False

    @property
    def casts(self) -> bool:
        """Whether each linear layer has its weights and its input cast (autocast)."""
        return self.weight != self.compute


def layer_bytes(shape: Shape, precision: Precision, length: int, attention: str = "sdpa") -> float:
    """Saved by one layer for one token of a row of `length` tokens."""
    w, c, hidden, query = precision.weight, precision.compute, shape.hidden, shape.query
    if precision.compiled:
        kept = w * hidden + 3 * c * hidden + 4 * c * query + 4 * shape.heads + (3 if shape.gated else 1) * c * shape.mlp
        return kept + pair_bytes(shape, c, attention) * length
    copies = precision.casts or precision.adapters
    trained_norm = 0 if precision.adapters else w * hidden
    norms = 2 * ((4 if shape.gated else w) * hidden + (trained_norm if shape.gated else 0))
    inputs = (len(shape.projections()) - 2 if shape.gated else 2) * c * hidden if copies else 2 * w * hidden
    attended = 4 * c * query + 4 * shape.heads + (c * query if precision.adapters else 0)
    gates = (4 if shape.gated else 2) * c * shape.mlp
    adapters = len(shape.projections()) * c * precision.rank
    return norms + inputs + attended + gates + adapters + pair_bytes(shape, c, attention) * length


def pair_bytes(shape: Shape, compute: int, attention: str) -> float:
    """Saved by one layer for one pair of positions."""
    if attention == "flash_attention_2":
        return 0
    return (4 + 2 * compute) * shape.heads if attention == "eager" else compute


def kept_bytes(shape: Shape, precision: Precision, rows: int, length: int, again: int, attention: str = "sdpa") -> float:
    """Saved by all layers for a micro-batch, up to the start of its backward pass; `again`: layers that are checkpointed."""
    tokens = rows * length
    mask = tokens * length if attention != "flash_attention_2" else 0  # of booleans, shared by the layers
    others = (shape.layers - again) * layer_bytes(shape, precision, length, attention)
    return tokens * (again * precision.weight * shape.hidden + others) + mask


def last_norm_bytes(shape: Shape, precision: Precision, rows: int, length: int) -> float:
    """Saved by the norm before the head."""
    return rows * length * shape.hidden * (4 + (0 if precision.adapters else precision.weight))


def recomputed_bytes(shape: Shape, precision: Precision, rows: int, length: int, attention: str = "sdpa") -> float:
    """Of the one layer that checkpointing has computed again, when its backward pass begins; a float32 input is the kept one."""
    again = precision.weight * shape.hidden if precision.weight == 4 else 0
    return rows * length * (layer_bytes(shape, precision, length, attention) - again)


def backward_bytes(shape: Shape, precision: Precision, rows: int, length: int) -> float:
    """Gradients of values within one layer at their most: two of the MLP's width and two of the model's."""
    return rows * length * (2 * precision.compute * shape.mlp + 2 * precision.weight * shape.hidden)
