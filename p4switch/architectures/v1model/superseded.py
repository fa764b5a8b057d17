"""Names of earlier versions of v1model and of P4-14, and their present replacements."""

from __future__ import annotations

_FIELDS = "@field_list(INDEX) before the metadata fields that it keeps"

SUPERSEDED = {
    "clone3": f"clone_preserving_field_list(TYPE, SESSION, INDEX), and {_FIELDS}",
    "resubmit": f"resubmit_preserving_field_list(INDEX), and {_FIELDS}",
    "recirculate": f"recirculate_preserving_field_list(INDEX), and {_FIELDS}",
    "clone_ingress_pkt_to_egress": f"clone_preserving_field_list(CloneType.I2E, SESSION, INDEX), and {_FIELDS}",
    "clone_egress_pkt_to_egress": f"clone_preserving_field_list(CloneType.E2E, SESSION, INDEX), and {_FIELDS}",
    "clone_i2e": f"clone_preserving_field_list(CloneType.I2E, SESSION, INDEX), and {_FIELDS}",
    "clone_e2e": f"clone_preserving_field_list(CloneType.E2E, SESSION, INDEX), and {_FIELDS}",
    "generate_digest": "digest<T>(RECEIVER, DATA)",
    "drop": "mark_to_drop(standard_metadata)",
    "modify_field_with_hash_based_offset": "hash(RESULT, ALGORITHM, BASE, DATA, MAX)",
    "modify_field_rng_uniform": "random(RESULT, LOW, HIGH)",
    "count": "COUNTER.count(INDEX), of a counter that is declared in the control",
    "execute_meter": "METER.execute_meter(INDEX, RESULT), of a meter that is declared in the control",
    "register_read": "REGISTER.read(RESULT, INDEX), of a register that is declared in the control",
    "register_write": "REGISTER.write(INDEX, VALUE), of a register that is declared in the control",
    "calc_checksum": "update_checksum(CONDITION, DATA, CHECKSUM, HashAlgorithm.csum16)",
    "Checksum16.get": "verify_checksum or update_checksum(CONDITION, DATA, CHECKSUM, HashAlgorithm.csum16)",
    "standard_metadata_t.drop": "mark_to_drop(standard_metadata)",
    "standard_metadata_t.clone_spec": f"clone_preserving_field_list(TYPE, SESSION, INDEX), and {_FIELDS}",
    "standard_metadata_t.recirculate_port": f"recirculate_preserving_field_list(INDEX), and {_FIELDS}",
    "standard_metadata_t.recirculate_flag": f"recirculate_preserving_field_list(INDEX), and {_FIELDS}",
    "standard_metadata_t.resubmit_flag": f"resubmit_preserving_field_list(INDEX), and {_FIELDS}",
    "standard_metadata_t.lf_field_list": "digest<T>(RECEIVER, DATA)",
}
"""Replacement for each obsolete function, action, or member of a type (`TYPE.MEMBER`)."""
