"""What a file tells of itself: the command that makes it and the runs it shows, in its own format's metadata.

  PDF   the Info dictionary: Title, Subject (the command), Keywords (the run ids)
  SVG   Dublin Core in <metadata>: title, description (the command), subject (the run ids)
  PNG   text chunks: Title, Description (the command), Comment (the run ids)
  HTML  <meta name="corl-command"> and <meta name="corl-runs">
  CSV   leading lines that begin with "# "; pandas.read_csv(comment="#") passes over them
  TeX   leading lines that begin with "% "

No file carries a date or a path, so the same command on the same runs writes the same bytes.
"""

from dataclasses import dataclass
from typing import Any

from corl_core.figures.text import one_line

CREATOR = "Co-RL Lab"


@dataclass(frozen=True)
class Stamp:
    """Where a file comes from. Every text is one printable line."""

    title: str
    command: str
    run_ids: tuple[str, ...]

    @property
    def runs(self) -> str:
        """The run ids in one line."""
        return one_line(", ".join(self.run_ids))

    def of(self, kind: str) -> dict[str, Any]:
        """The metadata that matplotlib writes into a file of this kind."""
        title, command = one_line(self.title), one_line(self.command)
        if kind == "pdf":
            known = {"Title": title, "Subject": command, "Keywords": self.runs}
            return known | {"Creator": CREATOR, "CreationDate": None}
        if kind == "svg":
            known = {"Title": title, "Description": command, "Keywords": [one_line(run_id) for run_id in self.run_ids]}
            return known | {"Creator": [CREATOR], "Date": None}
        return {"Title": title, "Description": command, "Comment": f"runs: {self.runs}", "Software": CREATOR}

    def lines(self, mark: str) -> str:
        """Comment lines for a text file, each with the mark before it."""
        told = (f"{CREATOR}: {one_line(self.title)}", f"command: {one_line(self.command)}", f"runs: {self.runs}")
        return "".join(f"{mark} {line}\n" for line in told)
