"""A module whose import waits until somebody writes to the named pipe PROCESS_STAND_IN_GATE."""

import os
from pathlib import Path

Path(os.environ["PROCESS_STAND_IN_GATE"]).read_bytes()
