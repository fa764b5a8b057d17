"""Text of C functions and constants."""

from collections.abc import Mapping

_COMMENT_CHARS = 100


class Emitter:
    """Collects the lines of one C function body and names its temporaries."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 1
        self._temps = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def comment(self, text: str) -> None:
        """The first line of a piece of source, for readers."""
        first = text.strip().partition("\n")[0].strip()
        if first:
            plain = first[:_COMMENT_CHARS].encode("ascii", "replace").decode()
            self.line(f"/* {plain.replace('*/', '* /').replace('/*', '/ *')} */")

    def open(self, text: str) -> None:
        """A line that begins a block: `if (x)`, or nothing for a bare one."""
        self.line(f"{text} {{".lstrip())
        self._depth += 1

    def close(self, text: str = "") -> None:
        self._depth -= 1
        self.line(f"}}{text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:;")

    def name(self) -> str:
        self._temps += 1
        return f"t{self._temps}"

    def temp(self, c_type: str, value: str) -> str:
        """A constant with that value; returns its name."""
        name = self.name()
        self.line(f"const {c_type} {name} = {value};")
        return name

    def limbs(self, count: int) -> str:
        """An array for a wide integer; returns its name."""
        name = self.name()
        self.line(f"uint64_t {name}[{count}];")
        return name

    def text(self) -> str:
        return "\n".join(self.lines)


def initialiser(members: Mapping[str, object]) -> str:
    """Of a C struct, by the names of its members, on one line."""
    return "{" + ", ".join(f".{name} = {value}" for name, value in members.items()) + "}"


def long_initialiser(members: Mapping[str, object], indent: str = "") -> str:
    """As `initialiser`, a member a line."""
    return "{\n" + "".join(f"{indent}    .{name} = {value},\n" for name, value in members.items()) + f"{indent}}}"
