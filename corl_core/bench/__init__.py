"""Measurements behind the README's tables; each is a command that prints Markdown (`python -m corl_core bench …`)."""
