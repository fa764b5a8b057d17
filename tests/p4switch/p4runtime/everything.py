"""P4Info and BMv2 JSON of everything.p4, as far as a controller is concerned, written by hand.

They let the device be tested without compiler and engine; `test_compiled.py` checks that the compiler's agree.
"""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import text_format

from p4switch.p4runtime.messages import Message, p4info_pb2

_WIDTHS = {"e": 16, "l": 32, "t": 16, "r": 8, "o": 8, "kind": 16}
_KINDS = {"e": "exact", "l": "lpm", "t": "ternary", "r": "range", "o": "optional"}
_I = "EverythingIngress"
_ACTIONS: dict[str, dict[str, int]] = {
    "NoAction": {},
    f"{_I}.send": {"port": 9},
    f"{_I}.drop": {},
    f"{_I}.to_group": {"group": 16},
    f"{_I}.learn": {},
    f"{_I}.counted_send": {"port": 9},
    f"{_I}.counted_drop": {},
}
# Table: key fields with their kinds, actions (with @ and scope), and what else P4Info says.
_SEND = ["send", "drop", "NoAction@DEFAULT_ONLY"]
_TABLES: dict[str, tuple[dict[str, str], list[str], str]] = {
    "exact_one": (
        {"e": "exact"},
        ["counted_send", "counted_drop", "NoAction@DEFAULT_ONLY"],
        "size: 16 direct_resource_ids: 301 direct_resource_ids: 302",
    ),
    "lpm_one": ({"l": "lpm"}, ["send", "drop", "to_group", "learn@TABLE_ONLY"], "size: 1024"),
    "mixed": (_KINDS, ["send", "drop", "NoAction"], "size: 1024 const_default_action_id: 101"),
    "constant": (
        {"t": "ternary"},
        ["send", "drop", "NoAction"],
        "size: 2 is_const_table: true has_initial_entries: true",
    ),
    "preset": ({"r": "exact"}, ["send", "drop", "NoAction"], "size: 8 has_initial_entries: true"),
    "selected": ({"o": "exact"}, _SEND, "size: 32 implementation_id: 303"),
    "profiled": ({"o": "exact"}, _SEND, "size: 32 implementation_id: 304"),
    "keyless": ({}, ["send", "drop", "NoAction"], "size: 1024"),
    "fading": ({"e": "exact"}, ["send", "NoAction"], "size: 16 idle_timeout_behavior: NOTIFY_CONTROL"),
}
_DEFAULTS = {"lpm_one": "drop"}


def _preamble(ident: int, name: str) -> str:
    return f'preamble {{ id: {ident} name: "{name}" alias: "{name.rsplit(".", 1)[-1]}" }}'


def _full(action: str) -> str:
    return action if action == "NoAction" else f"{_I}.{action}"


def p4info() -> Message:
    action_ids = {name: 101 + i for i, name in enumerate(_ACTIONS)}
    text = []
    for name, params in _ACTIONS.items():
        fields = " ".join(
            f'params {{ id: {i} name: "{p}" bitwidth: {w} }}' for i, (p, w) in enumerate(params.items(), 1)
        )
        text.append(f"actions {{ {_preamble(action_ids[name], name)} {fields} }}")
    for i, (name, (key, actions, more)) in enumerate(_TABLES.items()):
        fields = " ".join(
            f'match_fields {{ id: {j} name: "{f}" bitwidth: {_WIDTHS[f]} match_type: {kind.upper()} }}'
            for j, (f, kind) in enumerate(key.items(), 1)
        )
        refs = []
        for ref in actions:
            action, _, scope = ref.partition("@")
            refs.append(f"action_refs {{ id: {action_ids[_full(action)]} scope: {scope or 'TABLE_AND_DEFAULT'} }}")
        text.append(f"tables {{ {_preamble(201 + i, f'{_I}.{name}')} {fields} {' '.join(refs)} {more} }}")
    text.append(f"""
        direct_counters {{ {_preamble(301, f"{_I}.hits")} spec {{ unit: BOTH }} direct_table_id: 201 }}
        direct_meters {{ {_preamble(302, f"{_I}.rates")} spec {{ unit: BYTES }} direct_table_id: 201 }}
        action_profiles {{ {_preamble(303, f"{_I}.selector")} table_ids: 206 with_selector: true size: 64 }}
        action_profiles {{ {_preamble(304, f"{_I}.profile")} table_ids: 207 size: 8 }}
        counters {{ {_preamble(305, f"{_I}.cells")} spec {{ unit: BOTH }} size: 4 }}
        meters {{ {_preamble(306, f"{_I}.limits")} spec {{ unit: PACKETS }} size: 4 }}
        registers {{ {_preamble(307, f"{_I}.words")} type_spec {{ bitstring {{ bit {{ bitwidth: 32 }} }} }} size: 4 }}
        registers {{ {_preamble(308, f"{_I}.signs")} type_spec {{ bitstring {{ int {{ bitwidth: 12 }} }} }} size: 2 }}
        value_sets {{ {_preamble(309, "EverythingParser.kinds")} size: 4
                      match {{ id: 1 bitwidth: 16 match_type: EXACT }} }}
        digests {{ {_preamble(310, "learn_t")} type_spec {{ struct {{ name: "learn_t" }} }} }}
        controller_packet_metadata {{ {_preamble(311, "packet_in")}
            metadata {{ id: 1 name: "ingress_port" bitwidth: 9 }} metadata {{ id: 2 name: "reason" bitwidth: 7 }} }}
        controller_packet_metadata {{ {_preamble(312, "packet_out")}
            metadata {{ id: 1 name: "egress_port" bitwidth: 9 }} metadata {{ id: 2 name: "hint" bitwidth: 7 }} }}
        type_info {{ structs {{ key: "learn_t" value {{
            members {{ name: "e" type_spec {{ bitstring {{ bit {{ bitwidth: 16 }} }} }} }}
            members {{ name: "port" type_spec {{ bitstring {{ bit {{ bitwidth: 9 }} }} }} }} }} }} }}
    """)
    return text_format.Parse("\n".join(text), p4info_pb2.P4Info())


def device_config() -> bytes:
    actions = [
        {"id": i, "name": name, "runtime_data": [{"name": p, "bitwidth": w} for p, w in params.items()]}
        for i, (name, params) in enumerate(_ACTIONS.items())
    ]
    action_id = {a["name"]: a["id"] for a in actions}
    tables = []
    for name, (key, refs, more) in _TABLES.items():
        names = [_full(ref.partition("@")[0]) for ref in refs]
        table: dict[str, Any] = {
            "name": f"{_I}.{name}",
            # An optional key is a ternary one in BMv2 JSON.
            "key": [
                {"match_type": {"optional": "ternary"}.get(kind, kind), "name": f, "target": ["wide", f], "mask": None}
                for f, kind in key.items()
            ],
            "action_ids": [action_id[n] for n in names],
            "actions": names,
        }
        if "implementation_id" not in more:
            table["default_entry"] = {
                "action_id": action_id[_full(_DEFAULTS.get(name, "NoAction"))],
                "action_data": [],
                "action_const": name == "mixed",
                "action_entry_const": name == "mixed",
            }
        tables.append(table)
    by_name = {t["name"].rsplit(".", 1)[-1]: t for t in tables}
    send, drop = action_id[f"{_I}.send"], action_id[f"{_I}.drop"]
    by_name["constant"]["entries"] = [
        {
            "match_key": [{"match_type": "ternary", "key": "0x0100", "mask": "0xff00"}],
            "priority": 1,
            "action_entry": {"action_id": send, "action_data": ["0x001"]},
        },
        {
            "match_key": [{"match_type": "ternary", "key": "0x0000", "mask": "0xf000"}],
            "priority": 2,
            "action_entry": {"action_id": send, "action_data": ["0x002"]},
        },
    ]
    by_name["preset"]["entries"] = [
        {
            "match_key": [{"match_type": "exact", "key": "0x01"}],
            "priority": 1,
            "action_entry": {"action_id": send, "action_data": ["0x001"]},
        },
        {
            "match_key": [{"match_type": "exact", "key": "0x02"}],
            "priority": 2,
            "action_entry": {"action_id": drop, "action_data": []},
        },
    ]
    learnt = [
        {"type": "field", "value": ["wide", "e"]},
        {"type": "field", "value": ["standard_metadata", "egress_port"]},
    ]
    return json.dumps(
        {
            "header_types": [
                {"name": "wide_t", "fields": [[f, w, False] for f, w in _WIDTHS.items()]},
                {"name": "standard_metadata", "fields": [["egress_port", 9, False]]},
            ],
            "headers": [
                {"name": "wide", "header_type": "wide_t"},
                {"name": "standard_metadata", "header_type": "standard_metadata"},
            ],
            "actions": actions,
            "pipelines": [
                {
                    "name": "ingress",
                    "tables": tables,
                    "action_profiles": [{"name": f"{_I}.selector"}, {"name": f"{_I}.profile"}],
                }
            ],
            "counter_arrays": [{"name": f"{_I}.hits", "is_direct": True}, {"name": f"{_I}.cells", "size": 4}],
            "meter_arrays": [
                {"name": f"{_I}.rates", "is_direct": True},
                {"name": f"{_I}.limits", "size": 4, "type": "packets"},
            ],
            "register_arrays": [
                {"name": f"{_I}.words", "size": 4, "bitwidth": 32},
                {"name": f"{_I}.signs", "size": 2, "bitwidth": 12},
            ],
            "parse_vsets": [{"name": "EverythingParser.kinds"}],
            "learn_lists": [{"id": 1, "name": "learn_t", "elements": learnt}],
        }
    ).encode()
