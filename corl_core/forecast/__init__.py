"""Forecast: memory an agent and hours for a run's configuration, before anything is started. Numbers alone: nothing here imports
a training library, so that the dashboard can use it.

    shape        sizes of a decoder and the parameters that follow
    models       the shape of an agent's model, from what is on this machine
    activations  what the update keeps for its backward pass
    memory       peak memory of a process, term by term and phase by phase
    cards        datasheets, visible GPUs, this processor: what a device does in a second
    device       which of them a forecast is about
    split        whether an agent's weights are split over its processes
    duration     seconds of a step from its floating-point operations and bytes
    plan         a whole run: placement, sums on each GPU, hours
    prompts      how long the prompts are
    remedies     what would fit, each tried through the same forecast
    report       words, table, JSON
    probe        a few steps of the actual run, scaled
    room         a run that cannot fit is not started
"""
