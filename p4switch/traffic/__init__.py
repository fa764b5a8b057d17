"""The traffic manager: queues, admission, schedulers, link rates, wires and PFC, in C, without clock or events.

The fabric drives it with events, the switch process by the wall clock. What one of them needs more is its own.
"""

from pathlib import Path

C_FOLDER = Path(__file__).parent / "c"
HEADERS = tuple(sorted(C_FOLDER.glob("*.h")))
SOURCES = tuple(path for path in sorted(C_FOLDER.glob("*.c")) if not path.name.startswith("py_"))
PYTHON_SOURCES = tuple(sorted(C_FOLDER.glob("py_*.c")))  # how Python's settings reach it
