"""`python -m tests.scenario.demo`. Importing takes a second; a Ctrl-C then is no fault either."""

import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0, 1 when something failed, 130 when it was interrupted."""
    try:
        from tests.scenario.demo.program import run

        return run(argv)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
