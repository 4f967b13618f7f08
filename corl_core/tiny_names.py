"""The names of the demo's tiny models: families, widths and schools. No torch here: config and dashboard read it too.

A tiny model is written `tiny:FAMILY` or `tiny:FAMILY:WIDTH`, for example `tiny:llama` or `tiny:qwen2:96`.
A *school* is the textbook that a base model was taught from. Its errors are planted: in one operation the textbook
makes the classic slip (see `corl_core/data/arithmetic.py`) more often than not, so that the model's majority vote is
wrong there. Schools with different slips have majorities that are wrong on different questions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

FAMILIES = ("llama", "qwen2", "gpt_neox")
DEFAULT_WIDTH = 64
WIDTH_STEP = 16
SLIP_FRAC = 0.62
"""How often a school slips, on slippery questions of the operation that it teaches wrongly."""
MISPRINT_FRAC = 0.15
"""Share of every school's solutions that end in a wrong digit: chance errors, which a vote cancels (it keeps slips)."""


@dataclass(frozen=True)
class School:
    """A textbook.

    `slip_frac`: kind → share of its slippery questions that are solved with the slip, drawn anew each time; 0 for a
    kind that it does not name. At 1 the right procedure is never seen.
    `misprint_frac`: share of the solutions whose answer ends in a wrong digit; no slip's answer is ever one of these.
    """

    name: str
    description: str
    slip_frac: Mapping[str, float]
    misprint_frac: float = MISPRINT_FRAC


_ALL = (
    School(
        "smaller-from-larger",
        "Mostly takes the smaller digit from the larger in subtractions; right elsewhere.",
        slip_frac={"sub": SLIP_FRAC},
    ),
    School(
        "forgets-carry",
        "Mostly forgets the carry in additions; right elsewhere.",
        slip_frac={"add": SLIP_FRAC},
    ),
    School(
        "drops-carry",
        "Mostly drops the carry in multiplications; right elsewhere.",
        slip_frac={"mul": SLIP_FRAC},
    ),
    School(
        "careless",
        "Slips now and then in additions and subtractions, so that its vote is mostly right.",
        slip_frac={"add": 0.3, "sub": 0.3},
    ),
    School(
        "stubborn",
        "Always slips in additions and subtractions: it never saw the right procedure.",
        slip_frac={"add": 1.0, "sub": 1.0},
    ),
)
SCHOOLS = {school.name: school for school in _ALL}
DEFAULT_SCHOOL = {"llama": "smaller-from-larger", "qwen2": "forgets-carry", "gpt_neox": "drops-carry"}


def is_tiny(model: str) -> bool:
    """Whether a config's model string names a tiny model, rather than a hub id or a folder."""
    return model == "tiny" or model.startswith("tiny:")


def parse_tiny(model: str) -> tuple[str, int]:
    """Family and width of a tiny model's name; ValueError for an unknown family or an impossible width."""
    prefix, _, rest = model.partition(":")
    family, _, width = rest.partition(":")
    if prefix != "tiny" or not family:
        raise ValueError(f"model={model!r}: a tiny model is written tiny:FAMILY or tiny:FAMILY:WIDTH; try tiny:{FAMILIES[0]}")
    check_family(family)
    if rest.count(":") > 1 or (":" in rest and not width.isdecimal()):
        raise ValueError(f"model={model!r}: the width must be a whole number; try tiny:{family}:{DEFAULT_WIDTH}")
    number = int(width or DEFAULT_WIDTH)
    check_width(number)
    return family, number


def check_family(family: str) -> None:
    """ValueError unless `family` is one of FAMILIES."""
    if family not in FAMILIES:
        raise ValueError(f"family={family!r}: unknown tiny family; choose one of {', '.join(FAMILIES)}")


def check_width(width: int) -> None:
    """ValueError unless four heads of an even size fill `width` and the model stays tiny."""
    if width % WIDTH_STEP or not WIDTH_STEP <= width <= 512:
        raise ValueError(f"width={width}: must be a multiple of {WIDTH_STEP} from {WIDTH_STEP} to 512; try {DEFAULT_WIDTH}")


def check_school(school: str) -> None:
    """ValueError unless `school` is one of SCHOOLS."""
    if school not in SCHOOLS:
        raise ValueError(
            f"school={school!r}: unknown school; choose one of {', '.join(SCHOOLS)}, or leave it out for the family's own"
        )


def find_school(family: str, school: str | None) -> School:
    """The named school, or the family's own when `school` is None; ValueError for an unknown name."""
    check_family(family)
    name = DEFAULT_SCHOOL[family] if school is None else school
    check_school(name)
    return SCHOOLS[name]
