"""What a measurement says as it goes: a line of JSON on stderr for all that is done, so that a cut loses nothing."""

import json
import sys
from typing import Any


def tell(**fields: Any) -> None:
    print(json.dumps(fields), file=sys.stderr, flush=True)


def versions() -> str:
    """Of what decides how fast attention is, in a line."""
    import torch
    import transformers

    parts = [f"torch {torch.__version__}", f"transformers {transformers.__version__}"]
    if torch.cuda.is_available():
        parts += [f"CUDA {torch.version.cuda}", f"cuDNN {torch.backends.cudnn.version()}", torch.cuda.get_device_name()]
    return ", ".join(parts)
