"""The hash algorithms of PSA, by BMv2's names."""

ALGORITHMS = {
    "IDENTITY": "identity",
    "CRC32": "crc32",
    "CRC32_CUSTOM": "crc32_custom",
    "CRC16": "crc16",
    "CRC16_CUSTOM": "crc16_custom",
    "ONES_COMPLEMENT16": "csum16",
    "TARGET_DEFAULT": "crc16",  # p4c's choice
}
