"""What every section of a configuration has in common: no unknown key, no endless text, no infinity."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from corl_core.config_errors import brief, did_you_mean

MAX_TEXT = 20_000  # characters of any text in a configuration
AgentName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]


def with_question(template: str | None) -> str | None:
    """A prompt template, as it was given. Raises ValueError unless {question} is its one field."""
    if template is None:
        return None
    try:
        text = template.format(question="<q>")
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise ValueError(
            f"prompt_template={template!r} is not a format string with the one field {{question}} ({error}); "
            "double every other brace: {{ and }}"
        ) from error
    if "<q>" not in text:
        raise ValueError(f"prompt_template={template!r} has no {{question}}; without it every prompt is the same")
    return template


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _unknown_keys(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values:
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key {brief(key)}{did_you_mean(str(key)[:80], list(cls.model_fields))}")
                if isinstance(values[key], str) and len(values[key]) > MAX_TEXT:
                    raise ValueError(f"{key} has {len(values[key]):,} characters, and {MAX_TEXT:,} are allowed; shorten it")
        return values
