"""The traffic manager: queues, admission, schedulers, link rates, wires and PFC. It is written in C.

It has no clock and no events of its own. The fabric drives it by events, and the switch process by the wall clock.
"""

from pathlib import Path

C_FOLDER = Path(__file__).parent / "c"
HEADERS = tuple(sorted(C_FOLDER.glob("*.h")))
SOURCES = tuple(path for path in sorted(C_FOLDER.glob("*.c")) if not path.name.startswith("py_"))
PYTHON_SOURCES = tuple(sorted(C_FOLDER.glob("py_*.c")))  # conversion of settings from Python
