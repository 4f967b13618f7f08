"""The paper's own pairs, to set a reader's beside them.

Source: arXiv 2608.17253, appendix A, tables 5 and 6: 500 problems of MATH, levels 3 to 5, base checkpoints, zero-shot, one
sample at temperature 0.8. The paper reports a correlation of −0.98 between kappa and c.
"""

from dataclasses import dataclass

SOURCE = "arXiv 2608.17253, App. A, tables 5 and 6: 500 MATH problems (levels 3–5), base checkpoints, one sample at T = 0.8"


@dataclass(frozen=True)
class PaperPair:
    """One row. Shares are fractions of the 500 problems; 'seeds only' rows are two samplings of one model."""

    pair: str
    kappa: float
    exactly_one_right: float
    same_wrong: float
    union: float

    @property
    def seeds_only(self) -> bool:
        return self.pair.endswith("seeds only")


PAPER_PAIRS = (
    PaperPair("Qwen2.5-3B × Llama-3.2-3B", 0.38, 0.312, 0.024, 0.630),
    PaperPair("Llama-3.2-3B × Phi-3.5-mini", 0.31, 0.328, 0.030, 0.530),
    PaperPair("Qwen2.5-3B × Phi-3.5-mini", 0.38, 0.312, 0.040, 0.554),
    PaperPair("Qwen2.5-3B × MiniCPM3-4B", 0.41, 0.294, 0.044, 0.604),
    PaperPair("Qwen2.5-3B × Qwen3-1.7B-Base", 0.52, 0.242, 0.042, 0.632),
    PaperPair("Qwen3-1.7B, seeds only", 0.52, 0.240, 0.050, 0.664),
    PaperPair("Qwen2.5-3B, seeds only", 0.56, 0.220, 0.044, 0.626),
    PaperPair("Qwen2.5-7B × Llama-3.1-8B", 0.42, 0.294, 0.018, 0.714),
    PaperPair("Qwen2.5-7B × Qwen2.5-3B", 0.51, 0.242, 0.038, 0.698),
    PaperPair("Qwen2.5-7B × Qwen3-1.7B", 0.51, 0.244, 0.040, 0.704),
    PaperPair("Llama-3.1-8B, seeds only", 0.51, 0.246, 0.030, 0.620),
    PaperPair("Qwen2.5-7B, seeds only", 0.58, 0.190, 0.052, 0.746),
)
