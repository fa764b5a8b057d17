/* Key fields, packed into the words of an entry. */
#include "control.h"

/* ORs `bytes` into the words of a field. */
static void pack(uint64_t *words, const p4_key_info *k, const uint8_t *bytes)
{
    uint32_t n = p4_byte_width(k->width);
    uint32_t parts = k->width > 64 ? (k->width + 63) / 64 : 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bit = 8 * (n - 1 - i); /* position of the byte's lowest bit within the value */
        words[k->word + parts - 1 - bit / 64] |= (uint64_t)bytes[i] << (bit % 64 + k->shift);
    }
}

static void prefix_mask(uint8_t *mask, uint32_t width, uint32_t length)
{
    memset(mask, 0, p4_byte_width(width));
    uint32_t pad = 8 * p4_byte_width(width) - width;
    for (uint32_t i = 0; i < length; i++)
        mask[(pad + i) / 8] |= (uint8_t)(0x80 >> ((pad + i) % 8));
}

#define MAX_BYTES 256 /* size of a key field: the schema limits widths to 2048 bits */

int p4_pack_key(p4_switch *sw, const char *where, const p4_key_info *infos, uint32_t n_infos, uint32_t key_words,
                const p4_match *key, size_t n_keys, uint64_t *words, uint64_t *masks, uint32_t *prefix)
{
    if (n_keys != n_infos)
        return p4_fail(sw, P4_INVALID, "%s: expected %u key fields, got %zu", where, n_infos, n_keys);
    memset(words, 0, key_words * sizeof *words);
    memset(masks, 0, key_words * sizeof *masks);
    *prefix = 0;
    for (uint32_t i = 0; i < n_infos; i++) {
        const p4_key_info *k = &infos[i];
        const p4_match *m = &key[i];
        uint32_t n = p4_byte_width(k->width);
        uint8_t value[MAX_BYTES] = {0}, mask[MAX_BYTES];
        int status;

        prefix_mask(mask, k->width, k->width);
        if (!m->value.data) {
            if (k->kind == P4_EXACT || k->kind == P4_VALID)
                return p4_fail(sw, P4_INVALID, "%s: exact field %s needs a value", where, k->name);
            if (k->kind != P4_RANGE)
                memset(mask, 0, n);
        } else {
            if ((status = p4_check_value(sw, where, k->name, k->width, m->value)))
                return status;
            memcpy(value, m->value.data, n);
            int masked = k->kind == P4_TERNARY || k->kind == P4_OPTIONAL;
            if (k->kind == P4_RANGE || (masked && m->mask.len)) {
                if ((status = p4_check_value(sw, where, k->name, k->width, m->mask)))
                    return status;
                memcpy(mask, m->mask.data, n);
                if (k->kind == P4_RANGE && memcmp(value, mask, n) > 0)
                    return p4_fail(sw, P4_INVALID, "%s: range of %s is empty: low is above high", where, k->name);
            } else if (m->prefix >= 0) {
                if ((uint32_t)m->prefix > k->width)
                    return p4_fail(sw, P4_INVALID, "%s: prefix of %d bits is longer than %s (%u bits)", where,
                                   m->prefix, k->name, k->width);
                prefix_mask(mask, k->width, (uint32_t)m->prefix);
            }
        }
        if (k->kind == P4_LPM)
            *prefix = m->value.data ? m->prefix >= 0 ? (uint32_t)m->prefix : k->width : 0;
        for (uint32_t b = 0; b < n; b++) {
            if (k->mask)
                value[b] &= k->mask[b];
            if (k->kind != P4_RANGE)
                value[b] &= mask[b];
        }
        pack(words, k, value);
        pack(masks, k, mask);
    }
    return P4_OK;
}
