"""A module that must not be imported before a fork: it starts a thread."""

import threading
import time

threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
