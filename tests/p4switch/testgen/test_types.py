"""Values of every type wherever they meet z3: tests are generated, and pass on the switch."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("z3", reason="z3 is not installed")

from p4switch.stf import run_test
from p4switch.testgen import generate, write

TYPES = {  # name of a type, its width, and two of its values
    "bool": (1, "true", "false"),
    "bit<1>": (1, "1w1", "1w0"),
    "bit<4>": (4, "4w3", "4w9"),
    "int<4>": (4, "-4s3", "4s2"),
    "serializable_t": (4, "serializable_t.two", "serializable_t.one"),
    "negative_t": (4, "negative_t.below", "negative_t.one"),
    "new_t": (4, "(new_t)4w3", "(new_t)4w8"),
    "new_bool_t": (1, "(new_bool_t)true", "(new_bool_t)false"),
    "new_int_t": (4, "(new_int_t)-4s3", "(new_int_t)4s2"),
    "plain_t": (0, "plain_t.green", "plain_t.red"),
    "error": (0, "error.NoMatch", "error.PacketTooShort"),
}
SIZED = [name for name, (bits, *_) in TYPES.items() if bits]
NUMBERS = [name for name in SIZED if "bool" not in name]
_IS = "v{i} = %s == {a};"
# Of each place: what stands in the declarations, the parser and ingress for the value `v` of a type `{T}` that is `{a}`
# or `{b}`, and which types can stand there. `v` is `meta.v{i}`, from the packet where the type has bits.
PLACES: dict[str, tuple[str, str, str, list[str]]] = {
    "lookahead": ("", "meta.w{i} = pk.lookahead<{T}>();", _IS % "meta.w{i}", SIZED),
    "lookahead of a struct": ("", "s_t l{i} = pk.lookahead<s_t>(); meta.w{i} = l{i}.v{i};", _IS % "meta.w{i}", SIZED),
    "lookahead of a header": ("", "v_t l{i} = pk.lookahead<v_t>(); meta.w{i} = l{i}.v{i};", _IS % "meta.w{i}", SIZED),
    "field": ("", "", _IS % "meta.v{i}", list(TYPES)),
    "conditional": ("", "", "{T} t{i} = hdr.x.b == 5 ? meta.v{i} : {b};" + _IS % "t{i}", list(TYPES)),
    "exact key": ("{exact}", "", "t{i}.apply();", list(TYPES)),
    "ternary key": ("{ternary}", "", "t{i}.apply();", list(TYPES)),
    "optional key": ("{optional}", "", "t{i}.apply();", list(TYPES)),
    "range key": ("{range}", "", "t{i}.apply();", NUMBERS),
    "constant entry": ("{entries}", "", "t{i}.apply();", list(TYPES)),
    "parameter": ("{parameter}", "", "t{i}.apply();" + _IS % "meta.v{i}", list(TYPES)),
    "select": ("", "{select}", "v{i} = meta.r == {i} + 1;", SIZED),
    "value set": ("", "{value_set}", "v{i} = meta.r == {i} + 1;", SIZED),
    "register": (
        "register<{T}>(4) r{i};",
        "",
        "r{i}.write(1, meta.v{i}); {T} q{i}; r{i}.read(q{i}, 1);" + _IS % "q{i}",
        [t for t in TYPES if "bool" not in t],
    ),
    "random": ("", "", "{T} q{i}; random(q{i}, {b}, {a});" + _IS % "q{i}", ["bool", "bit<1>", "new_bool_t"]),
    "digest": (
        "",
        "",
        'digest(1, {{ meta.v{i} }}); log_msg("{{}}", {{ meta.v{i} }});' + _IS % "meta.v{i}",
        list(TYPES),
    ),
    "hash": (
        "",
        "",
        "bit<16> q{i}; hash(q{i}, HashAlgorithm.csum16, 16w0, {{ meta.v{i} }}, 32w65536); v{i} = q{i}[0:0] == 1;",
        SIZED,
    ),
    "struct": (
        "",
        "",
        "one{i}_t p{i}; p{i}.v = meta.v{i}; one{i}_t q{i}; q{i}.v = {a}; v{i} = p{i} == q{i};",
        list(TYPES),
    ),
    "stack": (
        "",
        "",
        "hdr.s[0].setValid(); hdr.s[1].setValid(); hdr.s[0].v{i} = meta.v{i}; hdr.s[1].v{i} = {b};"
        + _IS % "hdr.s[hdr.x.b[0:0]].v{i}",
        SIZED,
    ),
    "argument": (
        "",
        "",
        "bool z{i}; {T} q{i} = f{i}(meta.v{i}, z{i}); v{i} = z{i} && q{i} == meta.v{i};",
        list(TYPES),
    ),
}


def _table(key: str, kind: str, entries: str = "") -> str:
    properties = f"actions = {{{{ hit{{i}}; NoAction; }}}} default_action = NoAction; {entries}"
    return f'table t{{i}} {{{{ key = {{{{ {key}: {kind} @name("k"); }}}} {properties} }}}}'


def program(place: str) -> str:
    declared, parsed, applied, names = PLACES[place]
    hit = "action hit{i}(bit<1> n) {{ v{i} = n == 1; }} "
    entries = "const entries = {{ {a}: hit{i}(1); {b}: hit{i}(0); }}"
    parts = {kind: hit + _table("meta.v{i}", kind) for kind in ("exact", "ternary", "optional", "range")}
    parts["entries"] = hit + _table("meta.v{i}", "exact", entries)
    parts["parameter"] = "action hit{i}({T} n) {{ meta.v{i} = n; }} " + _table("hdr.x.b", "exact")
    lists: list[list[str]] = [[] for _ in range(9)]
    fields, metadata, structs, functions, locals_, parser, ingress, states, sets = lists
    start = "transition accept;"
    for i, name in enumerate(names):
        bits, a, b = TYPES[name]
        words = {"T": name, "i": i, "a": a, "b": b}
        metadata.append(f"{name} v{i}; {name} w{i};")
        structs.append(f"struct one{i}_t {{ {name} v; }}")
        functions.append(f"{name} f{i}(in {name} x, out bool z) {{ z = x == {a}; return x; }}")
        if bits:
            fields.append(f"{name} v{i};")
            ingress.append(f"meta.v{i} = hdr.v.v{i};")
        else:
            ingress.append(f"if (hdr.x.b == {i}) {{ meta.v{i} = {a}; }} else {{ meta.v{i} = {b}; }}")
        text = parts.get(declared.strip("{}"), declared)
        locals_.append(f"bool v{i} = false; " + text.format(**words))
        ingress.append(applied.format(**words) + f" if (v{i}) {{ hdr.x.c{i} = 1; }}")
        if parsed not in ("{select}", "{value_set}"):
            parser.append(parsed.format(**words))
        else:
            case = f"vs{i}" if parsed == "{value_set}" else a
            sets.append(f"value_set<{name}>(4) vs{i};" if parsed == "{value_set}" else "")
            following = f"ask{i + 1}" if i + 1 < len(names) else "accept"
            cases = f"{{ {case}: got{i}; default: {following}; }}"
            states.append(f"state ask{i} {{ transition select(hdr.v.v{i}) {cases} }}")
            states.append(f"state got{i} {{ meta.r = {i} + 1; transition accept; }}")
            start = "transition ask0;"
    pad = -sum(TYPES[name][0] for name in names) % 8 or 8
    results = " ".join(f"bit<1> c{i};" for i in range(len(names)))
    rest = -len(names) % 8 or 8
    return f"""
#include <core.p4>
#include <v1model.p4>
enum bit<4> serializable_t {{ one = 1, two = 2 }}
enum int<4> negative_t {{ one = 1, below = -2 }}
enum plain_t {{ red, green }}
type bit<4> new_t;
type bool new_bool_t;
type int<4> new_int_t;
header v_t {{ {" ".join(fields)} bit<{pad}> pad; }}
struct s_t {{ {" ".join(fields)} bit<{pad}> pad; }}
header x_t {{ bit<8> b; {results} bit<{rest}> rest; }}
struct headers_t {{ v_t v; x_t x; v_t[2] s; }}
struct metadata_t {{ {" ".join(metadata)} bit<8> r; }}
{" ".join(structs)} {" ".join(functions)}
parser P(packet_in pk, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    {" ".join(sets)}
    state start {{ {" ".join(parser)} pk.extract(hdr.v); pk.extract(hdr.x); {start} }}
    {" ".join(states)}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    {" ".join(locals_)}
    apply {{ sm.egress_spec = 1; {" ".join(ingress)} }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control D(packet_out pk, in headers_t hdr) {{ apply {{ pk.emit(hdr.v); pk.emit(hdr.x); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.mark.parametrize("place", PLACES)
def test_values_of_every_type(place: str, tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text(program(place))
    code, result = generate(path, seconds=60)
    assert not result.missing
    assert not result.only_unstable
    for test in write(tmp_path, path, [], code, result):
        run_test(path, test)
