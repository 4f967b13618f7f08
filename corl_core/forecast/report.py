"""A forecast in words, as a Markdown table, and as JSON."""

from typing import Any

from corl_core.forecast.memory import GIB, HELD, SLACK
from corl_core.forecast.plan import AgentForecast, Forecast
from corl_core.forecast.remedies import Remedy

TERMS = {
    "weights": "weights", "gradients": "gradients", "optimizer": "AdamW's moments", "sampling_copy": "copies for sampling",
    "whole": "whole weights for sampling", "reference": "reference model", "teacher": "teacher", "buckets": "DDP's buckets",
    "cache": "KV cache", "sampling_work": "sampling's logits", "activations": "activations and head",
}  # fmt: skip
ALWAYS = ("weights", "gradients", "optimizer", "cache", "activations")


def gib(size: float) -> str:
    """Bytes as '37.2 GiB', or MiB under one."""
    return f"{size / GIB:,.1f} GiB" if size >= 0.95 * GIB else f"{size / 2**20:,.0f} MiB"


def hours(value: float) -> str:
    """'45 s', '12 min', '5.2 h', '9.3 days' or '6,936 days'."""
    seconds = value * 3600
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    days = value / 24
    return f"{value:.1f} h" if days < 3 else f"{days:.1f} days" if days < 99.95 else f"{days:,.0f} days"


def billions(number: float) -> str:
    """Parameters as '3.09 B', '135 M' or '110 k'."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f}"


def headline(made: Forecast) -> str:
    """The forecast in one line: '37 GiB a GPU, 5.2 h on H200, 86% sampling'."""
    where = "a GPU" if made.device.on_gpu else "of memory"
    words = f"About {gib(max(made.needed.values()))} {where}"
    if made.hours is None:
        return f"{words}; hours unknown for {made.device.gpus[0].name}"
    return f"{words}, {hours(made.hours)} at the most on {_device(made)}, {made.sampling_share:.0%} sampling"


def problems(made: Forecast, found: list[Remedy]) -> list[str]:
    """Why the run cannot fit, a sentence for each GPU, and what would; [] where it fits."""
    said = []
    for name, size in made.full.items():
        who = " and ".join(f"'{agent.name}'" for agent in made.places[name])
        where = f"GPU {name}" if name else "this machine"
        verb = "needs" if len(made.places[name]) == 1 else "need"
        said.append(f"{who} {verb} {gib(made.needed[name])} on {where}, which has {gib(size)}.")
    if said and found:
        here = len(made.device.gpus)
        more = {one: f"; on {one.gpus} GPUs in all" if one.gpus > here else "" for one in found}
        ways = [f"{one.words} ({gib(one.needed)}{more[one]}; {one.settings})" for one in found]
        said.append(f"It would fit with: {'; or '.join(ways)}.")
    elif said:
        said.append("No single remedy that is known here makes it fit: use smaller models, or several remedies together.")
    return said


def table(made: Forecast) -> str:
    """Markdown: a column an agent, then what each GPU holds and the time."""
    agents = made.agents
    lines = ["| | " + " | ".join(agent.name for agent in agents) + " |", "| --- |" + " ---: |" * len(agents)]
    for label, values in rows(made):
        lines.append(f"| {label} | " + " | ".join(values) + " |")
    return "\n".join([*lines, "", *(f"* {note}" for note in notes(made))])


def rows(made: Forecast) -> list[tuple[str, list[str]]]:
    """(what, one text for each agent): the table without its frame."""
    agents = made.agents
    found = [("model", [agent.model for agent in agents])]
    found.append(("parameters", [billions(agent.shape.parameters) for agent in agents]))
    for term, words in TERMS.items():
        values = [getattr(agent.memory, term) for agent in agents]
        if term in ALWAYS or any(values):
            found.append((words, [gib(value) for value in values]))
    for phase in agents[0].memory.phases:
        found.append((f"peak while {_while(phase)}", [gib(agent.memory.phases[phase]) for agent in agents]))
    found.append(("**needs, each process**", [f"**{gib(agent.needed)}**" for agent in agents]))
    if all(agent.step for agent in agents):
        found.append(("seconds a step: sampling", [f"{agent.step.sampling_s:.3g}" for agent in agents]))
        found.append(("seconds a step: update", [f"{agent.step.update_s:.3g}" for agent in agents]))
    return found


def notes(made: Forecast) -> list[str]:
    """What each place holds, how long it takes, how much is sampled, and what all that rests on."""
    agents = made.agents
    said = []
    sizes = {gpu.id: gpu.memory for gpu in made.device.gpus} or {"": made.device.host_memory}
    for name, needed in made.needed.items():
        where = f"GPU {name}" if name else "memory of this machine"
        room = f" of {gib(sizes[name])}" if sizes.get(name) else ""
        said.append(f"{where}: {gib(needed)}{room} ({', '.join(agent.name for agent in made.places[name])})")
    if made.hours is not None:
        share = f"{made.sampling_share:.0%} of it sampling"
        said.append(f"time: {hours(made.hours)} at the most, {share}; rates: {_known_from(made)}")
    said.append(f"each agent samples {made.completions:,} completions, at most {made.tokens:,} tokens")
    prompts = {f"{agent.work.prompt_tokens:,} tokens ({agent.prompt_from})" for agent in agents}
    said.append(f"longest prompt: {', '.join(sorted(prompts))}; every completion as long as allowed")
    context = agents[0].context
    said.append(f"a process needs its largest phase × {1 + SLACK:.2f} (allocator, assumed) + {gib(context)} (libraries, assumed)")
    return said


def as_json(made: Forecast, found: list[Remedy]) -> dict[str, Any]:
    """Everything, bytes and seconds."""
    return {
        "fits": made.fits, "hours": made.hours, "sampling_share": made.sampling_share, "completions": made.completions,
        "tokens": made.tokens, "device": _device(made), "rates": _known_from(made), "needed_bytes": made.needed,
        "agents": [_agent(agent) for agent in made.agents],
        "problems": problems(made, found),
        "remedies": [{"words": one.words, "settings": one.settings, "needed_bytes": one.needed} for one in found],
    }  # fmt: skip


def _agent(agent: AgentForecast) -> dict[str, Any]:
    memory = agent.memory
    terms = {term: getattr(memory, term) for term in (*HELD, "cache", "sampling_work", "gradients", "activations")}
    times = None if agent.step is None else {"sampling_s": agent.step.sampling_s, "update_s": agent.step.update_s}
    return {
        "name": agent.name, "model": agent.model, "parameters": agent.shape.parameters, "gpus": list(agent.gpus),
        "needed_bytes": agent.needed, "widest": memory.widest, "phases_bytes": memory.phases, "terms_bytes": terms, "step": times,
    }  # fmt: skip


def _while(phase: str) -> str:
    return {"sampling": "sampling", "update": "updating", "optimizer": "stepping"}[phase]


def _device(made: Forecast) -> str:
    rates = next(iter(made.device.rates.values()), None)
    return rates.name if rates else made.device.gpus[0].name


def _known_from(made: Forecast) -> str:
    used = {agent.holding.compute for agent in made.agents} & set(made.device.rates)
    return "; ".join(dict.fromkeys(made.device.rates[compute].known_from for compute in sorted(used)))
