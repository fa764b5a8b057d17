/* Bits in network order, and integers of more than 128 bits.
 *
 * Wide integers are arrays of 64-bit limbs, the least significant first, in two's complement.
 */
#ifndef P4CC_WIDE_H
#define P4CC_WIDE_H

#include <stdint.h>
#include <string.h>

#define P4_INLINE static inline __attribute__((always_inline, unused))
#define P4_FUNCTION static __attribute__((noinline, unused))

typedef unsigned __int128 p4_u128;
typedef __int128 p4_i128;

P4_INLINE uint64_t p4_ld8(const uint8_t *p) { return *p; }
P4_INLINE uint64_t p4_ld16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return __builtin_bswap16(v); }
P4_INLINE uint64_t p4_ld32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
P4_INLINE uint64_t p4_ld64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v); }
P4_INLINE p4_u128 p4_ld128(const uint8_t *p) { return (p4_u128)p4_ld64(p) << 64 | p4_ld64(p + 8); }
P4_INLINE void p4_st8(uint8_t *p, uint64_t v) { *p = (uint8_t)v; }
P4_INLINE void p4_st16(uint8_t *p, uint64_t v) { uint16_t b = __builtin_bswap16((uint16_t)v); memcpy(p, &b, 2); }
P4_INLINE void p4_st32(uint8_t *p, uint64_t v) { uint32_t b = __builtin_bswap32((uint32_t)v); memcpy(p, &b, 4); }
P4_INLINE void p4_st64(uint8_t *p, uint64_t v) { uint64_t b = __builtin_bswap64(v); memcpy(p, &b, 8); }
P4_INLINE void p4_st128(uint8_t *p, p4_u128 v) { p4_st64(p, (uint64_t)(v >> 64)); p4_st64(p + 8, (uint64_t)v); }

P4_INLINE uint64_t p4_mask64(uint32_t width) { return width >= 64 ? ~0ull : (1ull << width) - 1; }
P4_INLINE p4_u128 p4_mask128(uint32_t width) { return width >= 128 ? ~(p4_u128)0 : ((p4_u128)1 << width) - 1; }
P4_INLINE int64_t p4_sext64(uint64_t v, uint32_t width) { return (int64_t)(v << (64 - width)) >> (64 - width); }
P4_INLINE p4_i128 p4_sext128(p4_u128 v, uint32_t width) { return (p4_i128)(v << (128 - width)) >> (128 - width); }

/* Shifts by any amount. */
P4_INLINE uint64_t p4_shl64(uint64_t v, uint64_t s) { return s < 64 ? v << s : 0; }
P4_INLINE p4_u128 p4_shl128(p4_u128 v, uint64_t s) { return s < 128 ? v << s : 0; }
P4_INLINE uint64_t p4_shr64(uint64_t v, uint64_t s) { return s < 64 ? v >> s : 0; }
P4_INLINE p4_u128 p4_shr128(p4_u128 v, uint64_t s) { return s < 128 ? v >> s : 0; }
P4_INLINE int64_t p4_sar64(int64_t v, uint64_t s) { return v >> (s < 64 ? s : 63); }
P4_INLINE p4_i128 p4_sar128(p4_i128 v, uint64_t s) { return v >> (s < 128 ? s : 127); }

/* `width` <= 64 bits that begin `bit` bits after `p`. */
P4_FUNCTION uint64_t p4_get_bits(const uint8_t *p, uint32_t bit, uint32_t width)
{
    uint64_t v = 0;
    p += bit / 8;
    uint32_t skip = bit % 8, have = 0;
    while (have < width) {
        uint32_t take = 8 - skip;
        if (take > width - have)
            take = width - have;
        v = v << take | ((uint64_t)(*p >> (8 - skip - take)) & ((1u << take) - 1));
        have += take;
        skip = 0;
        p++;
    }
    return v;
}

P4_FUNCTION void p4_put_bits(uint8_t *p, uint32_t bit, uint32_t width, uint64_t v)
{
    p += bit / 8;
    uint32_t skip = bit % 8;
    while (width) {
        uint32_t take = 8 - skip;
        if (take > width)
            take = width;
        uint8_t mask = (uint8_t)(((1u << take) - 1) << (8 - skip - take));
        uint8_t part = (uint8_t)((v >> (width - take)) << (8 - skip - take));
        *p = (uint8_t)((*p & ~mask) | (part & mask));
        width -= take;
        skip = 0;
        p++;
    }
}

P4_FUNCTION void p4_copy_bits(uint8_t *to, uint32_t to_bit, const uint8_t *from, uint32_t from_bit, uint32_t width)
{
    if (!((to_bit | from_bit | width) & 7)) {
        memcpy(to + to_bit / 8, from + from_bit / 8, width / 8);
        return;
    }
    while (width) {
        uint32_t take = width < 64 ? width : 64;
        p4_put_bits(to, to_bit, take, p4_get_bits(from, from_bit, take));
        to_bit += take;
        from_bit += take;
        width -= take;
    }
}

/* Wide integer of n limbs from `width` bits, and back. */
P4_FUNCTION void p4_big_get(uint64_t *v, uint32_t n, const uint8_t *p, uint32_t bit, uint32_t width)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t take = width < 64 ? width : 64;
        width -= take;
        v[i] = take ? p4_get_bits(p, bit + width, take) : 0;
    }
}

P4_FUNCTION void p4_big_put(uint8_t *p, uint32_t bit, uint32_t width, const uint64_t *v)
{
    for (uint32_t i = 0; width; i++) {
        uint32_t take = width < 64 ? width : 64;
        width -= take;
        p4_put_bits(p, bit + width, take, v[i]);
    }
}

P4_INLINE void p4_big_u128(uint64_t *v, uint32_t n, p4_u128 a)
{
    v[0] = (uint64_t)a;
    v[1] = (uint64_t)(a >> 64);
    for (uint32_t i = 2; i < n; i++)
        v[i] = 0;
}

P4_INLINE void p4_big_i128(uint64_t *v, uint32_t n, p4_i128 a)
{
    v[0] = (uint64_t)a;
    v[1] = (uint64_t)(a >> 64);
    for (uint32_t i = 2; i < n; i++)
        v[i] = a < 0 ? ~0ull : 0;
}

P4_INLINE p4_u128 p4_big_low(const uint64_t *a) { return (p4_u128)a[1] << 64 | a[0]; }

P4_FUNCTION void p4_big_resize(uint64_t *v, uint32_t n, const uint64_t *a, uint32_t na)
{
    uint64_t fill = (int64_t)a[na - 1] < 0 ? ~0ull : 0;
    for (uint32_t i = 0; i < n; i++)
        v[i] = i < na ? a[i] : fill;
}

P4_FUNCTION void p4_big_add(uint64_t *v, const uint64_t *a, const uint64_t *b, uint32_t n)
{
    p4_u128 carry = 0;
    for (uint32_t i = 0; i < n; i++) {
        carry += (p4_u128)a[i] + b[i];
        v[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

P4_FUNCTION void p4_big_sub(uint64_t *v, const uint64_t *a, const uint64_t *b, uint32_t n)
{
    p4_u128 carry = 1;
    for (uint32_t i = 0; i < n; i++) {
        carry += (p4_u128)a[i] + ~b[i];
        v[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

P4_FUNCTION void p4_big_mul(uint64_t *v, const uint64_t *a, const uint64_t *b, uint32_t n)
{
    memset(v, 0, n * sizeof *v);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; i + j < n; j++) {
            p4_u128 t = (p4_u128)a[i] * b[j] + v[i + j] + carry;
            v[i + j] = (uint64_t)t;
            carry = (uint64_t)(t >> 64);
        }
    }
}

P4_FUNCTION void p4_big_and(uint64_t *v, const uint64_t *a, const uint64_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v[i] = a[i] & b[i];
}

P4_FUNCTION void p4_big_or(uint64_t *v, const uint64_t *a, const uint64_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v[i] = a[i] | b[i];
}

P4_FUNCTION void p4_big_xor(uint64_t *v, const uint64_t *a, const uint64_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v[i] = a[i] ^ b[i];
}

P4_FUNCTION void p4_big_not(uint64_t *v, const uint64_t *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v[i] = ~a[i];
}

P4_FUNCTION void p4_big_shl(uint64_t *v, const uint64_t *a, uint32_t n, uint64_t s)
{
    uint64_t limbs = s / 64 < n ? s / 64 : n;
    uint32_t bits = s % 64;
    for (uint32_t i = n; i-- > 0;) {
        uint64_t high = i >= limbs ? a[i - limbs] : 0;
        uint64_t low = bits && i > limbs ? a[i - limbs - 1] >> (64 - bits) : 0;
        v[i] = (high << bits) | low;
    }
}

/* Arithmetic: fills with the sign. */
P4_FUNCTION void p4_big_sar(uint64_t *v, const uint64_t *a, uint32_t n, uint64_t s)
{
    uint64_t fill = (int64_t)a[n - 1] < 0 ? ~0ull : 0;
    uint64_t limbs = s / 64 < n ? s / 64 : n;
    uint32_t bits = s % 64;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t low = i + limbs < n ? a[i + limbs] : fill;
        uint64_t high = i + limbs + 1 < n ? a[i + limbs + 1] : fill;
        v[i] = bits ? (low >> bits) | (high << (64 - bits)) : low;
    }
}

/* Keeps the low `width` bits; `sign` tells whether the highest of them fills the rest. */
P4_FUNCTION void p4_big_cut(uint64_t *v, const uint64_t *a, uint32_t n, uint32_t width, int sign)
{
    uint64_t fill = sign && (a[(width - 1) / 64] >> ((width - 1) % 64) & 1) ? ~0ull : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (width >= 64 * (i + 1)) {
            v[i] = a[i];
        } else if (width <= 64 * i) {
            v[i] = fill;
        } else {
            uint64_t mask = p4_mask64(width - 64 * i);
            v[i] = (a[i] & mask) | (fill & ~mask);
        }
    }
}

P4_FUNCTION int p4_big_cmp(const uint64_t *a, const uint64_t *b, uint32_t n)
{
    if (a[n - 1] != b[n - 1])
        return (int64_t)a[n - 1] < (int64_t)b[n - 1] ? -1 : 1;
    for (uint32_t i = n - 1; i-- > 0;)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

P4_FUNCTION int p4_big_nonzero(const uint64_t *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i])
            return 1;
    return 0;
}

/* Quotient q and remainder r of a, b >= 0, bit by bit; both 0 for b = 0. q and r are neither a nor b. */
P4_FUNCTION void p4_big_divide(uint64_t *q, uint64_t *r, const uint64_t *a, const uint64_t *b, uint32_t n)
{
    memset(q, 0, n * sizeof *q);
    memset(r, 0, n * sizeof *r);
    if (!p4_big_nonzero(b, n))
        return;
    for (uint32_t i = 64 * n; i-- > 0;) {
        p4_big_shl(r, r, n, 1);
        r[0] |= a[i / 64] >> (i % 64) & 1;
        if (p4_big_cmp(r, b, n) >= 0) {
            p4_big_sub(r, r, b, n);
            q[i / 64] |= 1ull << (i % 64);
        }
    }
}

#endif
