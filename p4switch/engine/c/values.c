/* Conversion of values of fields and parameters between the control plane and entries or registers. */
#include "control.h"

void p4_store(uint8_t *to, uint32_t width, const uint8_t *value)
{
    uint32_t size = p4_storage(width), bytes = p4_byte_width(width);
    for (uint32_t i = 0; i < size; i += 8) {
        uint64_t limb = 0;
        for (uint32_t b = 0; b < 8 && i + b < bytes; b++)
            limb |= (uint64_t)value[bytes - 1 - i - b] << (8 * b);
        memcpy(to + i, &limb, size < 8 ? size : 8); /* little-endian hosts only, see switch.c */
    }
}

void p4_load(const uint8_t *from, uint32_t width, uint8_t *value)
{
    uint32_t bytes = p4_byte_width(width);
    for (uint32_t i = 0; i < bytes; i++)
        value[bytes - 1 - i] = from[i];
}

int p4_check_value(p4_switch *sw, const char *where, const char *name, uint32_t width, p4_bytes v)
{
    if (v.len != p4_byte_width(width))
        return p4_fail(sw, P4_INVALID, "%s: %s has %u bits: expected %u bytes, got %zu", where, name, width,
                       p4_byte_width(width), v.len);
    if (width % 8 && v.data[0] >> (width % 8))
        return p4_fail(sw, P4_INVALID, "%s: the value of %s does not fit in %u bits", where, name, width);
    return P4_OK;
}
