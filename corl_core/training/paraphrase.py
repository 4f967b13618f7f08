"""Asks a local causal LM for text, in batches: the model behind `python -m corl_core paraphrase`."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from corl_core.config import AgentConfig, ConfigError, DataConfig
from corl_core.data.paraphrase import PROMPT, Generate
from corl_core.training.models import is_templated, prompt

TEMPERATURE, TOP_P = 0.7, 0.8  # as Co-rewarding rephrases (arXiv 2508.00410)
ROOM_TOKENS = 64


def generator(model: str, revision: str | None, device: str, seed: int) -> Generate:
    """A function that asks the model for paraphrases, in its chat template if it has one. Raises ConfigError.

    A completion may have twice the tokens of the longest question of its batch, and ROOM_TOKENS more. Another attempt draws
    other completions; the same seed gives the same ones.
    """
    loaded, tokenizer = _load(AgentConfig(name="rewriter", model=model, revision=revision), device)
    plain = DataConfig(prompt_template=PROMPT)

    @torch.inference_mode()
    def generate(questions: list[str], attempt: int) -> list[str]:
        torch.manual_seed(1000 * seed + attempt)
        texts = [prompt(text, plain, tokenizer) for text in questions]
        batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=not is_templated(plain, tokenizer))
        size, longest = batch["input_ids"].shape[1], max(map(len, tokenizer(questions).input_ids))
        tokens = loaded.generate(
            input_ids=batch["input_ids"].to(loaded.device), attention_mask=batch["attention_mask"].to(loaded.device),
            max_new_tokens=2 * longest + ROOM_TOKENS, do_sample=True, temperature=TEMPERATURE, top_p=TOP_P,
            pad_token_id=tokenizer.pad_token_id,
        )  # fmt: skip
        return tokenizer.batch_decode(tokens[:, size:], skip_special_tokens=True)

    return generate


def _load(agent: AgentConfig, device: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    try:
        tokenizer = AutoTokenizer.from_pretrained(agent.model, revision=agent.revision, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(agent.model, revision=agent.revision, dtype="auto")
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"model '{agent.model}' cannot be loaded: {reason}; give a Hugging Face id or a folder") from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    where = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
    return model.to(where).eval(), tokenizer
