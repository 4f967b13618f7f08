"""Questions kept as chats: lists of messages with role and content (OpenAI) or from and value (ShareGPT)."""

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

USER, ASSISTANT = ("user", "human"), ("assistant", "gpt", "model")


def messages(value: Any) -> list[tuple[str, str]] | None:
    """(role, text) of each message; None when the cell is no chat. Text that spells a chat is one."""
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        value = spelled_list(value)
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    if not all(isinstance(item, Mapping) and ({"content", "value"} & item.keys()) for item in value):
        return None
    return [(str(item.get("role") or item.get("from") or "user").lower(), _text(item)) for item in value]


def spelled_list(text: str) -> Any:
    """The list that a cell spells as JSON or as Python writes it (what pandas puts into CSV); None when it does neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def question(chat: Sequence[tuple[str, str]]) -> str:
    """What the user asked last; the last message when nobody is called user."""
    asked = [text for role, text in chat if role in USER]
    return asked[-1] if asked else chat[-1][1]


def reply(chat: Sequence[tuple[str, str]]) -> str | None:
    """The assistant's last message, if any."""
    return next((text for role, text in reversed(chat) if role in ASSISTANT and text.strip()), None)


def system(chat: Sequence[tuple[str, str]]) -> str | None:
    """The system message, if any."""
    return next((text for role, text in chat if role == "system"), None)


def _text(message: Mapping[str, Any]) -> str:
    """A message's text; the text parts of one that comes in parts."""
    content = message.get("content", message.get("value"))
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping) and part.get("text"))
    return "" if content is None else str(content)
