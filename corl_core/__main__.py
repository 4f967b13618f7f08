"""`python -m corl_core VERB …`; see `corl_core.cli`."""

import sys

from corl_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
