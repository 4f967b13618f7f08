"""Asks a local causal LM for text, in batches: the model behind `python -m corl_core paraphrase`."""

import torch

from corl_core.config import DataConfig
from corl_core.data.paraphrase import PROMPT, Generate
from corl_core.training.models import is_templated, pick_device, pretrained, prompt

TEMPERATURE, TOP_P = 0.7, 0.8  # as Co-rewarding rephrases (arXiv 2508.00410)
ROOM_TOKENS = 64


def generator(model: str, revision: str | None, device: str, seed: int) -> Generate:
    """A function that asks the model for paraphrases, in its chat template if it has one. Raises ModelError.

    A completion may have twice the tokens of the longest question of its batch, and ROOM_TOKENS more. Another attempt draws
    other completions; the same seed gives the same ones.
    """
    loaded, tokenizer = pretrained(model, revision, "auto")
    loaded = loaded.to(pick_device(device)).eval()
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
