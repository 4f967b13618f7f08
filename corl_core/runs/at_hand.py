"""What a run names on this machine's disk, looked at before the run is made: agents would find it missing a minute later."""

from pathlib import Path

from corl_core.config import AgentConfig, ConfigError, RunConfig
from corl_core.tiny_names import is_tiny


def check(config: RunConfig) -> None:
    """Raises ConfigError for a model, a tokenizer or a GGUF file that is not there. What agents elsewhere need, nodes say."""
    if config.launcher == "local":
        for agent in config.agents:
            _model(agent)
            _folder(agent, "tokenizer", agent.tokenizer)


def _model(agent: AgentConfig) -> None:
    if is_tiny(agent.model):
        return
    _folder(agent, "model", agent.model)
    folder = Path(agent.model)
    if not folder.is_dir():
        return
    if agent.revision is not None:
        raise ConfigError(
            f"agents: '{agent.name}' has revision='{agent.revision}' with model='{agent.model}', a folder, which has no "
            "revisions: remove it, or give a Hugging Face id"
        )
    if agent.gguf_file is not None and not (folder / agent.gguf_file).is_file():
        files = ", ".join(sorted(path.name for path in folder.glob("*.gguf"))[:5]) or "no .gguf file"
        raise ConfigError(
            f"agents: '{agent.name}' has gguf_file='{agent.gguf_file}', which is not in model='{agent.model}'; there is {files}"
        )


def _folder(agent: AgentConfig, field: str, name: str | None) -> None:
    """A whole path is one of a folder; other names may be ids on the Hub."""
    if name is not None and name.startswith(("/", "~")) and not Path(name).is_dir():
        raise ConfigError(
            f"agents: '{agent.name}' has {field}='{name}': there is no such folder; give its whole path, or a Hugging Face id"
        )
