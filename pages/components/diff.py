"""How configurations differ."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from corl_core.config import RunConfig
from pages.components.data import Known

NOT_SET = "not set"


def differences(runs: Sequence[Known], everything: bool = False) -> pd.DataFrame:
    """Config fields as rows and runs as columns; only fields that differ, unless `everything`."""
    table = pd.DataFrame({run.id: pd.Series(_shown(run.config)) for run in runs}, dtype=object)
    table = table.fillna(NOT_SET)
    if not everything:
        table = table[table.nunique(axis=1) > 1]
    names = {run.id: run.label for run in runs}
    twice = len(set(names.values())) < len(names)
    return table.rename(columns={} if twice else names).rename_axis("field").reset_index()


def _shown(config: RunConfig) -> dict[str, Any]:
    return {key: NOT_SET if value is None else str(value) for key, value in config.flat().items()}
