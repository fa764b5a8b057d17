"""The key of a cached compilation includes the code that the compilation executes."""

import subprocess
import sys
from pathlib import Path

from p4switch import compiler

PROGRAM = Path(__file__).parents[3] / "p4src" / "ecn.p4"
# The folders of p4switch from which the compiler imported something.
FOLDERS = f"""
import sys
from p4switch.compiler import _compile
_compile({str(PROGRAM)!r}, [], None, None)
print(*sorted({{name.split(".")[1] for name in sys.modules if name.startswith("p4switch.") and name.count(".") > 1}}))
"""


def test_the_key_has_all_sources_that_a_compilation_imports() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FOLDERS], capture_output=True, text=True, timeout=120, check=True
    )
    assert set(done.stdout.split()) <= set(compiler._SOURCES)
