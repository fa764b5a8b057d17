"""Fuzzes the compiler: mutations of valid programs, and arbitrary bytes. It may refuse them, but not crash or hang.

    python tools/fuzz_compiler.py PROGRAMS [--seconds N] [--seed N] [--keep FOLDER]

PROGRAMS is a folder of .p4 files to start from. What crashes or takes more than 5 s of CPU time is kept in FOLDER.
"""

from __future__ import annotations

import random
import re
import signal
import sys
import time
import traceback
from pathlib import Path

import click

from p4switch.compiler import _compile
from p4switch.errors import UserError

TIME_LIMIT_S = 5
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
    """One to four changes of tokens."""
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


def attempt(path: Path, include: Path) -> str | None:
    """What went wrong with the program in `path`; None if it was compiled, or refused with a message."""
    signal.signal(signal.SIGVTALRM, _expired)
    signal.setitimer(signal.ITIMER_VIRTUAL, TIME_LIMIT_S)
    try:
        _compile(path, [include], None)
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


@click.command(help=__doc__)
@click.argument("programs", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seconds", default=600, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--keep", default="fuzz-findings", show_default=True, type=click.Path(path_type=Path))
def main(programs: Path, seconds: int, seed: int, keep: Path) -> None:
    rng = random.Random(seed)
    sources = sorted(programs.glob("*.p4"))
    deadline = time.monotonic() + seconds
    seen: set[str] = set()
    count = 0
    keep.mkdir(parents=True, exist_ok=True)
    candidate = keep / "candidate.p4"
    while time.monotonic() < deadline:
        count += 1
        if rng.random() < 0.05:
            candidate.write_bytes(arbitrary(rng))
        else:
            candidate.write_text(mutate(rng.choice(sources).read_text(errors="replace"), rng))
        problem = attempt(candidate, programs)
        if problem is not None and problem not in seen:
            seen.add(problem)
            kept = keep / f"finding-{len(seen)}.p4"
            kept.write_bytes(candidate.read_bytes())
            print(f"{kept}: {problem}", flush=True)
    candidate.unlink(missing_ok=True)
    print(f"{count} programs, {len(seen)} findings")
    sys.exit(1 if seen else 0)


if __name__ == "__main__":
    main()
