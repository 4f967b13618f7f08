"""The model card of a saved agent: what it is, how it was trained, what it reached, how to load it.

`README.md` in the form of the Hugging Face Hub: YAML front matter, then Markdown. What people typed is data here: in the YAML it
goes through a dumper, in the text every character with a meaning is escaped. Paths of this machine are not told, only their last
part. The licence is left to the person: it follows from the base model's and the data's.
"""

import re
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData

from corl_core.config import RunConfig
from corl_core.config_sections import AgentConfig
from corl_core.data.hub import is_dataset_id
from corl_core.methods import METHODS
from corl_core.runs.folder import Run
from corl_core.runs.results import checkpoint, evaluations
from corl_core.tiny_names import find_school, is_tiny, parse_tiny
from corl_core.training.adapters import FOLDER as ADAPTER

FILE = "README.md"
RULES = {
    "last": "the last step's",
    "peer_agreement": "those of the evaluation whose votes agreed best with the peer's, which needs no labels",
    "ground_truth": "those of the most accurate evaluation, which used true answers",
}
MEASURED = {"eval/accuracy": "Accuracy of sampled answers", "eval/majority_accuracy": "Accuracy of the majority vote"}
LOAD = """```python
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "path/to/this/folder"
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
```"""
CITATION = """```bibtex
@misc{yang2026corl,
  title = {Co-RL: Unsupervised Reasoning Emerges from Diverse Cohort in Multi-agent RL},
  author = {Yunhao Yang and Yuexin Bian and Yunjie Tian and Di Fu and Tianjin Huang and Yuanyuan Shi and Ziang Xiao and
            Nuno Vasconcelos and Yijiang Li},
  year = {2026}, eprint = {2608.17253}, archivePrefix = {arXiv}, primaryClass = {cs.LG}
}
```"""


def write(folder: Path, run: Run, agent: str, step: int, num_questions: int) -> None:
    """Puts the card beside the weights in `folder`, which are those after `step` updates; `num_questions`: different training
    questions. The journal gives the evaluations so far, and the rule that chose the weights once it has."""
    config = run.config.for_agent(agent)
    chosen = checkpoint(run, agent) if folder.name == "model" else {}
    parts = [
        f"# {text(config.name)}: agent {text(agent)}",
        _what(config, agent, chosen.get("step", step)),
        "## Results\n\n" + _results(evaluations(run, agent), chosen),
        "## Data\n\n" + _data(config, num_questions),
        "## Settings\n\n" + _settings(config, config.agent(agent)),
        "## Load it\n\n" + LOAD + _adapters(config.agent(agent)),
        "## Licence\n\nThe base model's licence, and that of the training data, apply to these weights; see there.",
        "## Citation\n\n" + CITATION,
    ]
    card = f"---\n{front_matter(config, config.agent(agent))}\n---\n\n" + "\n\n".join(parts) + "\n"
    (folder / FILE).write_text(card, encoding="utf-8")


def front_matter(config: RunConfig, agent: AgentConfig) -> str:
    """What the Hub reads. Only what has an id there is named: a base model or dataset of this machine alone is not."""
    sources = {source for source in (config.data.train,) if is_dataset_id(source) and not Path(source).exists()}
    data = ModelCardData(
        base_model=agent.model if _is_on_hub(agent.model) else None,
        datasets=sorted(sources) or None,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["co-rl", "grpo", "trl", "reinforcement-learning", config.method.replace("_", "-")],
    )
    return data.to_yaml()


def text(value: Any) -> str:
    """Somebody's words on one line of Markdown, where they mean themselves: no markup, no HTML, no links."""
    return re.sub(r"([\\`*_{}\[\]<>()#!|~&$:@])", r"\\\1", " ".join(str(value).split()))


def block(value: str) -> str:
    """Somebody's words as a block of code, which they cannot close."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", value)), default=0))
    return f"{fence}text\n{value}\n{fence}"


def _is_on_hub(model: str) -> bool:
    return re.fullmatch(r"[\w.-]+/[\w.-]+", model) is not None and not Path(model).exists()


def _named(agent: AgentConfig) -> str:
    """The base model in words."""
    if is_tiny(agent.model):
        school = find_school(parse_tiny(agent.model)[0], agent.school)
        return f"{text(agent.model)} (a tiny model, taught arithmetic by the school {text(school.name)})"
    details = f", revision {text(agent.revision)}" if agent.revision else ""
    details += f", weights of {text(agent.gguf_file)}" if agent.gguf_file else ""
    if not _is_on_hub(agent.model):
        return f"{text(Path(agent.model).name)} (a local folder){details}"
    return f"[{text(agent.model)}](https://huggingface.co/{agent.model}){details}"


def _what(config: RunConfig, name: str, step: int) -> str:
    method, agent = METHODS[config.method], config.agent(name)
    lines = [
        f"- Base model: {_named(agent)}",
        f"- Method: {method.label}, rewarded for {method.about}, with "
        "[GRPO](https://arxiv.org/abs/2402.03300) as [TRL](https://github.com/huggingface/trl) has it",
        f"- Weights: after {step:,} of {config.grpo.max_steps:,} updates",
    ]
    if len(config.agents) > 1:
        others = "; ".join(f"{text(one.name)}\\: {_named(one)}" for one in config.agents)
        lines.append(f"- Cohort{', ' + config.variant if config.variant else ''}: {others}")
    if config.has_ring:
        ring = ", ".join(f"{text(mine)} from {text(its)}" for mine, its in config.peers().items())
        lines.append(f"- Ring, who takes pseudo-labels from whom: {ring}; this agent's come from {text(config.peers()[name])}")
    return "\n".join(lines)


def _results(lines: list[dict[str, Any]], chosen: dict[str, Any]) -> str:
    rule = f"Weights kept: {RULES[chosen['rule']]}, after {chosen['step']:,} updates.\n\n" if chosen else ""
    shown = {line["step"]: line["metrics"] for line in lines}
    ends = [(step, shown[step]) for step in sorted({*[*shown][:1], *[*shown][-1:], chosen.get("step")} & shown.keys())]
    if not any(name in metrics for _, metrics in ends for name in MEASURED):
        return rule + "Nothing was measured on held-out questions with known answers."
    heads = ["Held-out questions", *(f"after {step:,} updates" for step, _ in ends)]
    table = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for name, said in MEASURED.items():
        cells = [f"{metrics[name]:.3f}" if name in metrics else "–" for _, metrics in ends]
        table.append(f"| {said} | {' | '.join(cells)} |")
    return rule + "\n".join(table)


def _data(config: RunConfig, num_questions: int) -> str:
    data = config.data
    truth = any(signal.labels_from == "truth" for signal in config.signals.values())
    source = data.train if is_dataset_id(data.train) and not Path(data.train).exists() else Path(data.train).name
    lines = [
        f"- Questions: {text(source)}{f', {text(data.config)}' if data.config else ''}, {num_questions:,} different ones",
        f"- True answers: {'the reward' if truth else 'not read by the training; they only measure'}",
    ]
    if config.eval.checkpoint == "ground_truth":
        lines.append("- True answers of held-out questions chose the weights")
    lines += ["", "Prompt, before any chat template:", "", block(data.prompt_template.format(question="{question}"))]
    return "\n".join(lines + (["", "System message:", "", block(data.system_prompt)] if data.system_prompt else []))


def _settings(config: RunConfig, agent: AgentConfig) -> str:
    grpo = config.grpo
    rows = {
        "Questions a step × completions each": f"{grpo.questions_per_step:,} × {grpo.num_generations:,}",
        "Longest completion": f"{grpo.max_completion_length:,} tokens", "Temperature": f"{grpo.temperature:g}",
        "Learning rate": f"{grpo.learning_rate:g}, {grpo.lr_scheduler_type}", "Loss, beta": f"{grpo.loss_type}, {grpo.beta:g}",
        "Trained": _trained(agent), "Seed": str(config.seed),
    }  # fmt: skip
    return "\n".join(["| Setting | Value |", "| --- | --- |", *(f"| {name} | {text(value)} |" for name, value in rows.items())])


def _trained(agent: AgentConfig) -> str:
    if agent.lora is None:
        return f"all weights, {agent.dtype}"
    bits = "4-bit" if agent.lora.load_in_4bit else agent.dtype
    return f"LoRA, rank {agent.lora.r}, alpha {agent.lora.lora_alpha}, on {bits} weights"


def _adapters(agent: AgentConfig) -> str:
    return f"\n\nThe adapters are merged into these weights; alone they are in `{ADAPTER}/`." if agent.lora else ""
