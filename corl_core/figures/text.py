"""Names that people gave, made fit for a file's own language: a line, a legend, a table cell, a file name."""

import re

FORMULA = ("=", "+", "-", "@")
_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def one_line(text: str) -> str:
    """Printable text in one line: what XML, a PDF's Info and a comment line can hold."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def for_matplotlib(text: str) -> str:
    """Text as it is: no mathtext, and no hidden legend entry for a leading underscore."""
    escaped = one_line(text).replace("$", r"\$")
    return " " + escaped if escaped.startswith("_") else escaped


def for_cell(text: str) -> str:
    """A table's cell that no spreadsheet runs as a formula: OWASP's rule, an apostrophe before = + - @, tab and return."""
    return f"'{text}" if text.startswith((*FORMULA, "\t", "\r")) else text


def for_tex(text: str) -> str:
    """LaTeX that shows the text as it is."""
    return "".join(_TEX.get(letter, letter) for letter in one_line(text))


def for_file_name(text: str, otherwise: str = "unnamed") -> str:
    """A file name that is safe everywhere: letters, digits, '.', '_' and '-', no leading dot or dash, at most 80 long."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-_")[:80].rstrip(".-_") or otherwise
