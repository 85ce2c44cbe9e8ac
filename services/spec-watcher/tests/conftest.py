"""Makes the helper modules beside the tests importable: with importlib mode pytest does not."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
