"""CRCs compared with check values and binascii, and the Internet checksum with RFC 1071, in both domains."""

from __future__ import annotations

import binascii

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4switch.bits.checksums import CRCS, Crc, hashed, internet_checksum, xor_words
from p4switch.bits.integers import INTEGERS

CHECK = b"123456789"


@pytest.mark.parametrize(
    ("crc", "expected"),
    [
        (CRCS["crc8_custom"], 0xF4),  # the check values of CRC-8, CRC-16/ARC, CRC-16/IBM-3740 and CRC-32/ISO-HDLC
        (CRCS["crc16"], 0xBB3D),
        (CRCS["crcCCITT"], 0x29B1),
        (CRCS["crc32"], 0xCBF43926),
        (Crc(64, 0x1B, 2**64 - 1, 2**64 - 1, True), 0xB90956C775A41001),  # CRC-64/GO-ISO
    ],
)
def test_check_values(crc: Crc, expected: int) -> None:
    assert crc.of(CHECK) == expected


@given(st.binary(max_size=40))
def test_crcs_against_binascii(data: bytes) -> None:
    assert CRCS["crc32"].of(data) == binascii.crc32(data)
    assert CRCS["crcCCITT"].of(data) == binascii.crc_hqx(data, 0xFFFF)
    assert hashed("crc32", int.from_bytes(data, "big"), 8 * len(data)) == binascii.crc32(data)


def test_bits_are_filled_up_to_bytes_at_the_end() -> None:
    assert hashed("crc16", 0b1010, 4) == CRCS["crc16"].of(b"\xa0")
    assert hashed("identity", 0b1010, 4) == 0xA0
    assert hashed("no such algorithm", 0, 8) is None


def test_words_are_filled_up_at_the_end() -> None:
    assert xor_words(b"\x01\x02\x10\x20\x05", 2) == 0x1422
    assert xor_words(b"\x01\x02\x10\x20\x05", 4) == 0x04021020


@pytest.mark.parametrize(("data", "bits", "total"), [(0x0001F203F4F5F6F7, 64, 0xDDF2), (0x0001F2, 24, 0xF201)])
def test_the_internet_checksum(data: int, bits: int, total: int) -> None:
    """By RFC 1071, section 3, 0001 f203 f4f5 f6f7 has the sum ddf2. Half a word is the high half."""
    assert internet_checksum(INTEGERS, data, bits) == total ^ 0xFFFF
    z3 = pytest.importorskip("z3", reason="z3 is not installed")
    from p4switch.bits.formulas import FORMULAS

    known = z3.simplify(internet_checksum(FORMULAS, z3.BitVecVal(data, bits), bits))
    assert known.as_long() == total ^ 0xFFFF


@given(st.binary(min_size=2, max_size=64).filter(lambda data: len(data) % 2 == 0))
def test_data_with_its_checksum_has_the_checksum_zero(data: bytes) -> None:
    whole = int.from_bytes(data, "big")
    checksum = internet_checksum(INTEGERS, whole, 8 * len(data))
    assert internet_checksum(INTEGERS, whole << 16 | checksum, 8 * len(data) + 16) == 0
