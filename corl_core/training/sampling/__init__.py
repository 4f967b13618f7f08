"""Sampling at fixed addresses: a decode step that a CUDA graph can replay, for models of real size.

A decode step of a small batch is hundreds of small kernels, each of which takes longer to launch than to run. Here every tensor
of the step has an address that stays (buckets, cache, state), so the step is captured once for each size and replayed.

    buckets    which sizes there are
    cache      keys and values in slots, written in place
    attention  one query token a row, heads of a group folded into the query length
    draw       the next token and what is measured of it
    lean       fewer kernels for norms and rotary embeddings, checked against the model's own
    weights    a bfloat16 copy of float32 weights; what a model must be like
    step       one decode step over all of these
    graphs     capture and replay
    static     the loop: one prefill a prompt, steps, rows retired as they end

All but `graphs` runs on a CPU by the same code.
"""
