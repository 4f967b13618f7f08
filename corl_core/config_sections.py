"""The sections of a run's configuration: agents, data, optimisation, voting, evaluation, exchange.

Each field has one line of meaning, which the launch form shows, and its bounds. An unknown key names the nearest known one.
"""

from pathlib import PurePath
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from corl_core import tiny_names
from corl_core.config_models import LoraSettings, PlacementSettings
from corl_core.config_sections_base import AgentName, Strict, with_question


class AgentConfig(Strict):
    """One trained model of the cohort."""

    OWN: ClassVar[dict[str, tuple[str, ...]]] = {
        "data": ("prompt_template", "system_prompt", "chat_template"),
        "grpo": ("learning_rate", "temperature", "max_completion_length", "gradient_accumulation_steps"),
    }
    """Section of the run → its fields that an agent may have a value of its own for."""

    name: AgentName = Field(description="Short name, unique in the cohort: a-z, 0-9, '-' and '_'.")
    model: str = Field(
        min_length=1,
        description="Where the base model comes from: 'tiny:FAMILY' (built in), a Hugging Face id, or a local folder.",
    )
    revision: str | None = Field(None, description="Branch, tag or commit of a Hugging Face id.")
    school: str | None = Field(
        None, description="For a tiny model: the school that taught it. None: its family's own school."
    )
    seed: int = Field(
        0, ge=0, le=9, description="For a tiny model: tells apart two models of one family and school in one cohort."
    )
    paraphrase: bool = Field(
        False, description="Train on each question's paraphrase where there is one; evaluation asks the originals."
    )
    gguf_file: str | None = Field(
        None, max_length=300, description="Weights' file of a GGUF repository or folder, e.g. 'model.gguf'."
    )
    tokenizer: str | None = Field(
        None, max_length=500, description="Another tokenizer: an id, 'id@revision' or a folder. None: the model's own."
    )
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="Precision of the weights that are trained. bfloat16 halves their memory, and loses updates smaller than "
        "about 1/256 of a weight; it suits frozen weights under LoRA.",
    )
    attn_implementation: Literal["auto", "sdpa", "eager", "flash_attention_2"] = Field(
        "auto", description="How attention is computed (transformers). auto: the model's default."
    )
    lora: LoraSettings | None = Field(None, description="Train low-rank adapters. None: all weights.")
    placement: PlacementSettings = Field(default_factory=PlacementSettings, description="Where the agent trains.")
    prompt_template: str | None = Field(None, description="This agent's own prompt_template. None: that of 'data'.")
    system_prompt: str | None = Field(
        None, description="This agent's own system message; empty for none. None: that of 'data'."
    )
    chat_template: Literal["auto", "always", "never"] | None = Field(
        None, description="Whether this agent's prompts are wrapped in its chat template. None: as 'data' says."
    )
    learning_rate: float | None = Field(None, gt=0, le=1, description="This agent's own learning rate. None: that of 'grpo'.")
    temperature: float | None = Field(None, gt=0, le=5, description="This agent's own temperature. None: that of 'grpo'.")
    max_completion_length: int | None = Field(
        None, ge=1, description="This agent's own longest completion, in tokens. None: that of 'grpo'."
    )
    gradient_accumulation_steps: int | None = Field(
        None, ge=1, description="This agent's own number of slices of a step. None: that of 'grpo'."
    )

    _template_has_question = field_validator("prompt_template")(with_question)

    @field_validator("gguf_file")
    @classmethod
    def _gguf_is_inside(cls, value: str | None) -> str | None:
        if value is not None and (not value.endswith(".gguf") or PurePath(value).is_absolute() or ".." in PurePath(value).parts):
            raise ValueError(
                f"gguf_file={value!r}: the name of a .gguf file inside the repository or folder that 'model' names, "
                "e.g. 'model.gguf'"
            )
        return value

    @property
    def own(self) -> dict[str, dict[str, Any]]:
        """Section of the run → the fields that this agent has a value of its own for."""
        return {
            section: {field: value for field in fields if (value := getattr(self, field)) is not None}
            for section, fields in self.OWN.items()
        }

    @model_validator(mode="after")
    def _tiny_is_known(self) -> "AgentConfig":
        if self.model.startswith("tiny:"):
            tiny_names.parse_tiny(self.model)
            if self.school is not None:
                tiny_names.check_school(self.school)
            for field in ("gguf_file", "tokenizer", "revision"):
                if (value := getattr(self, field)) is not None:
                    raise ValueError(
                        f"{field}={value!r} with model={self.model!r}: a tiny model is made here, with its own tokenizer; "
                        f"remove '{field}'"
                    )
        elif self.school is not None:
            raise ValueError(
                f"school={self.school!r} with model={self.model!r}: only tiny models are schooled; "
                "remove 'school' or use a model like 'tiny:llama'"
            )
        if self.gguf_file is not None and self.lora is not None and self.lora.load_in_4bit:
            raise ValueError(
                f"gguf_file={self.gguf_file!r} with lora.load_in_4bit=True: the weights of a GGUF file are unpacked to be "
                "trained; remove load_in_4bit, or name the model's safetensors repository"
            )
        return self


class DataConfig(Strict):
    """Training questions, held-out questions, and how a question becomes a prompt."""

    train: str = Field(
        "arithmetic",
        description="Training questions: 'arithmetic' (built in), a .jsonl/.json/.csv/.tsv/.parquet file, "
        "or a Hugging Face dataset id.",
    )
    train_split: str = Field("train", description="Split of a Hugging Face dataset to train on.")
    config: str | None = Field(None, description="Configuration (subset) of a Hugging Face dataset.")
    revision: str | None = Field(None, description="Branch, tag or commit of a Hugging Face dataset.")
    eval: str | None = Field(
        None, description="Held-out questions, given as for 'train'. None: the built-in ones for 'arithmetic', else none."
    )
    eval_split: str = Field("test", description="Split of a Hugging Face dataset to evaluate on.")
    eval_config: str | None = Field(
        None, description="Configuration of the dataset to evaluate on. None: the training one's when it is the same dataset."
    )
    eval_revision: str | None = Field(
        None, description="Revision of the dataset to evaluate on. None: the training one's when it is the same dataset."
    )
    question_column: str | None = Field(
        None, description="Column with the question; a nested one by its dotted name. None: guessed from its name."
    )
    answer_column: str | None = Field(
        None, description="Column with the true answer, bare or as a worked solution. None: guessed; may be absent."
    )
    paraphrase_column: str | None = Field(
        None, description="Column with the same question in other words. None: guessed; may be absent."
    )
    choices_column: str | None = Field(
        None, description="Column with the choices, or several with commas between them ('A, B, C, D'). None: guessed."
    )
    image_column: str | None = Field(None, description="Column with images, which are not shown to the models. None: guessed.")
    num_questions: int | None = Field(None, ge=1, description="Use only the first so many training questions.")
    prompt_template: str = Field(
        "{question}\nPlease reason step by step, and put your final answer within \\boxed{{}}.",
        description="Python format string that turns a question into a prompt; {question} is required.",
    )
    system_prompt: str | None = Field(None, description="System message; used with a chat template only.")
    chat_template: Literal["auto", "always", "never"] = Field(
        "auto", description="Wrap the prompt in the tokenizer's chat template: auto does so when it has one."
    )

    _template_has_question = field_validator("prompt_template")(with_question)


WORTH_COMPILING = 10**8  # parameters; a smaller model is trained before compiling has paid


class GRPOSettings(Strict):
    """GRPO, with TRL's names and TRL's meaning."""

    max_steps: int = Field(200, ge=1, description="Optimiser steps an agent takes.")
    questions_per_step: int = Field(8, ge=1, description="Different questions in each step.")
    num_generations: int = Field(8, ge=2, description="Completions (K) an agent samples for each question: one group.")
    max_completion_length: int = Field(512, ge=1, description="Longest completion, in tokens.")
    temperature: float = Field(1.0, gt=0, le=5, description="Sampling temperature.")
    learning_rate: float = Field(3e-6, gt=0, le=1, description="Peak learning rate of AdamW.")
    lr_scheduler_type: Literal["linear", "cosine", "cosine_with_min_lr", "constant", "constant_with_warmup"] = Field(
        "linear", description="How the learning rate changes over the run."
    )
    min_lr_rate: float = Field(
        0.1, ge=0, le=1, description="With cosine_with_min_lr: the last learning rate as a share of the peak."
    )
    warmup_steps: int = Field(0, ge=0, description="Steps over which the learning rate rises to its peak.")
    weight_decay: float = Field(0.0, ge=0, description="AdamW's decoupled weight decay.")
    adam_beta2: float = Field(0.999, gt=0, lt=1, description="AdamW's second-moment decay.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradient norm above which gradients are scaled down.")
    beta: float = Field(0.0, ge=0, description="Weight of the KL penalty towards the base model.")
    epsilon: float = Field(0.2, gt=0, description="Clip range of the probability ratio.")
    num_iterations: int = Field(1, ge=1, description="Updates made from each batch of rollouts.")
    gradient_accumulation_steps: int = Field(
        1, ge=1, description="Slices a step's rollouts are split into for the update, to save memory."
    )
    loss_type: Literal["bnpo", "dapo", "grpo", "dr_grpo"] = Field(
        "bnpo",
        description="How token losses are averaged (TRL): bnpo is the mean over the completion tokens of a step, or of each of "
        "its slices, whose means are then averaged.",
    )
    scale_rewards: Literal["group", "batch", "none"] = Field(
        "group", description="Whose standard deviation divides the advantages."
    )
    bf16: bool = Field(False, description="Compute in bfloat16 (for GPUs; slower on most CPUs).")
    gradient_checkpointing: bool = Field(False, description="Trade time for memory in the backward pass.")
    checkpointed_layers: int | None = Field(
        None, ge=1, description="With gradient_checkpointing: how many of the layers trade, the first ones. None: all of them."
    )
    torch_compile: bool | None = Field(
        None,
        description="Compile the model's layers for the update. None: on a GPU, for agents of one process that train all weights "
        "of a model of 100 million parameters or more.",
    )

    @model_validator(mode="after")
    def _layers_trade(self) -> "GRPOSettings":
        if self.checkpointed_layers is not None and not self.gradient_checkpointing:
            raise ValueError(
                f"checkpointed_layers={self.checkpointed_layers} says how much of gradient_checkpointing there is; set "
                "gradient_checkpointing=true too, or remove it"
            )
        return self

    def compiles(self, on_gpu: bool, num_parameters: float, trains_all: bool, num_processes: int) -> bool:
        """What `torch_compile` comes to for an agent."""
        if self.torch_compile is not None:
            return self.torch_compile
        return on_gpu and num_parameters >= WORTH_COMPILING and trains_all and num_processes == 1


class VoteConfig(Strict):
    """How a group of answers becomes a vote, and when a vote counts."""

    tie: Literal["first", "abstain"] = Field(
        "first", description="Two answers with the same count: the one sampled first wins, or no vote is cast."
    )
    num_votes: int | None = Field(
        None,
        ge=2,
        description="Completions sampled for a vote; the first num_generations of them are trained on. None: just those.",
    )
    min_share: float = Field(
        0.0, ge=0, le=1, description="Smallest vote share (of the parsed answers) at which a vote counts as a pseudo-label."
    )


class EvalConfig(Strict):
    """Held-out evaluation; it never touches training and its sampling does not disturb the rollouts'."""

    every_steps: int = Field(25, ge=1, description="Steps between evaluations; step 0 and the last step always are.")
    num_questions: int = Field(200, ge=0, description="Held-out questions; 0 turns evaluation off.")
    num_samples: int = Field(8, ge=1, description="Completions sampled for each held-out question.")
    checkpoint: Literal["last", "peer_agreement", "ground_truth"] = Field(
        "last",
        description="Which weights are kept: those of the last step; of the evaluation whose votes agree best with the "
        "peer's; or of the most accurate one, which uses true answers, and the run says so.",
    )


class ExchangeConfig(Strict):
    """The vote exchange between agents."""

    timeout_s: float = Field(
        600, gt=0, description="Longest an agent waits for its peer's votes, in seconds, before the run ends with an error."
    )


class CheckpointConfig(Strict):
    """What a run that was stopped, or that died, can go on from."""

    every_steps: int = Field(100, ge=0, description="Steps between checkpoints; 0 writes none but when the run is stopped.")
    keep: int = Field(2, ge=2, description="Checkpoints kept of each agent; on a ring one agent may be one ahead of another.")
