"""Mutated P4 programs, and arbitrary bytes: they are compiled or refused in time, and compiled ones can be loaded."""

from __future__ import annotations

import random
import re
import signal
import traceback
from collections.abc import Sequence
from pathlib import Path

from p4switch import engine
from p4switch.compiler import _compile
from p4switch.engine import ProgramError
from p4switch.errors import UserError
from tools.attack.attack import P4SRC, ROOT, Attack, Finding

TIME_LIMIT_S = 10
"""Limit of CPU time, beyond the compiler's own budget."""
_PROGRAMS = 10  # an attempt
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|[A-Za-z_]\w*|\d\w*|\s+|.', re.DOTALL)
_TEXT = """
    apply table action control parser state transition select accept reject header header_union struct enum bit int
    varbit bool error const if else switch return exit for in out inout true false default _ key actions entries
    default_action size exact lpm ternary isValid setValid setInvalid hit miss action_run extract lookahead emit next
    last lastIndex push_front pop_front verify tuple type typedef extern package value_set 0 1 8w255 4s7 -1 1000000
    { } ( ) [ ] < > ; : , . = + - * / % & | ^ ~ ! ? ++ << >> == != <= >= && || &&& .. |+| |-| @name {#} ...
"""
_WORDS = _TEXT.split()


def mutate(text: str, rng: random.Random) -> str:
    """Return a text with one to four changes of tokens."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.randint(1, 4)):
        if not tokens:
            break
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        choice = rng.randrange(8)
        if choice == 0:
            del tokens[i]
        elif choice == 1:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif choice == 2:
            tokens[i] = tokens[j]
        elif choice == 3:
            tokens.insert(i, " " + rng.choice(_WORDS) + " ")
        elif choice == 4:
            tokens[i] = rng.choice(_WORDS)
        elif choice == 5:
            length = rng.randint(1, 30)
            tokens[j:j] = tokens[i : i + length]
        elif choice == 6:
            del tokens[i : i + rng.randint(1, 30)]
        else:
            names = [k for k, t in enumerate(tokens) if re.fullmatch(r"[A-Za-z_]\w*", t)]
            if names:
                tokens[rng.choice(names)] = tokens[rng.choice(names)]
    return "".join(tokens)


def arbitrary(rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return rng.randbytes(rng.randint(0, 300))
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(1, 80))).encode()


def _expired(signum: int, frame: object) -> None:
    raise TimeoutError


class Programs(Attack):
    units = "programs"
    short_turns = 270

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        own = [*P4SRC.glob("*.p4"), *(ROOT / "tests" / "p4switch").glob("*/*.p4")]
        self._sources = sorted(own) + sorted(corpus)

    def attempt(self, rng: random.Random) -> int:
        for _ in range(_PROGRAMS):
            source = rng.choice(self._sources)
            if rng.random() < 0.05:
                data = arbitrary(rng)
            else:
                data = mutate(source.read_text(errors="replace"), rng).encode(errors="replace")
            if problem := self.problem(data, [source.parent, P4SRC, P4SRC / "include"]):
                raise Finding(problem, {"program.p4": data})
        return _PROGRAMS

    def problem(self, data: bytes, include: Sequence[Path]) -> str | None:
        """Return what is wrong with a compilation; None if it succeeded, or was refused with a message."""
        path = self.folder / "program.p4"
        path.write_bytes(data)
        signal.signal(signal.SIGVTALRM, _expired)
        signal.setitimer(signal.ITIMER_VIRTUAL, TIME_LIMIT_S)
        try:
            engine.generated(_compile(path, include, None).program)
        except ProgramError as error:
            return f"compiled, but cannot be loaded: {error}"
        except UserError:
            return None
        except TimeoutError:
            return f"hang: more than {TIME_LIMIT_S} s"
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)[-1:]
            place = ", ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames)
            return f"crash: {type(error).__name__}: {str(error)[:100]} at {place}"
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return None
