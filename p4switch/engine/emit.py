"""Text of C functions."""


class Emitter:
    """Collects the lines of one C function body and names its temporaries."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 1
        self._temps = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

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
