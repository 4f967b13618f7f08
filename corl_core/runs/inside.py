"""Files of a run that are no files of a run: links that lead out of its folder are not read.

A runs folder may be shared or come from elsewhere, and a link in it could make a page show any file that the dashboard may read.
A run's folder itself may be a link (a run kept on another disk), and so may a file that stays within the folder.
"""

from pathlib import Path


def leads_out(folder: Path, path: Path) -> bool:
    """Whether `path`, somewhere in a run's `folder`, is reached through a link that leads out of the folder."""
    here = path
    while here != folder and here != here.parent:
        if here.is_symlink():
            return not path.resolve().is_relative_to(folder.resolve())
        here = here.parent
    return False


def make_folder(path: Path, within: Path) -> None:
    """Makes a folder, and those above it up to `within`, which is never made: a run whose folder somebody deletes must not come
    back (FileNotFoundError)."""
    folder = within
    for name in path.relative_to(within).parts:
        folder = folder / name
        folder.mkdir(exist_ok=True)
