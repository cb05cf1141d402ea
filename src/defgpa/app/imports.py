"""One lock for the modules that threads of the server import when they are first needed.

The page opens before scipy and scikit-learn are loaded. Threads that import them at the same time
can meet a module half initialised, since their modules import each other in circles.
"""

from __future__ import annotations

import threading

IMPORT_LOCK = threading.RLock()
