"""Which tokens end a completion: all that the model, its tokenizer and its chat template name.

An instruct model has several (Llama 3: `<|end_of_text|>`, `<|eom_id|>`, `<|eot_id|>`; Qwen2.5: `<|im_end|>`, `<|endoftext|>`). A
base model whose tokenizer has a chat template names only the end of a text, yet in that template a turn ends with another token:
without it in the set, an agent would be graded for the user's next question, which it makes up.
"""

from jinja2 import TemplateError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

MESSAGE = "corl-message"


def name_all(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, templated: bool) -> None:
    """Puts every stop token into the model's generation config, which samplers read and which is saved with the weights."""
    generation = model.generation_config
    named = generation.eos_token_id if generation.eos_token_id is not None else []
    ids = list(named) if isinstance(named, list) else [named]
    ids += [tokenizer.eos_token_id, end_of_turn(tokenizer) if templated else None]
    distinct = [id for id in dict.fromkeys(ids) if id is not None]
    generation.eos_token_id = distinct[0] if len(distinct) == 1 else distinct or None
    if generation.pad_token_id is None:
        generation.pad_token_id = tokenizer.pad_token_id
    try:
        generation.validate(strict=True)
    except ValueError:  # e.g. a temperature without sampling, with which transformers refuses to save the model
        generation.do_sample = True


def end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The special token that closes an assistant's message in the chat template; None where there is none."""
    if not tokenizer.chat_template:
        return None
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": MESSAGE}]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False)
    except TemplateError:
        return None
    ids = tokenizer(text.rpartition(MESSAGE)[2].strip(), add_special_tokens=False).input_ids
    special = {id for id, token in tokenizer.added_tokens_decoder.items() if token.special} | set(tokenizer.all_special_ids)
    return ids[0] if ids and ids[0] in special else None
