/* Hash algorithms over n bytes. A program defines the CRCs that it uses by P4_CRC_*; their tables are filled in when
 * its library is loaded. */
#ifndef P4CC_HASH_H
#define P4CC_HASH_H

#include "wide.h"

/* Sum for the Internet checksum (RFC 1071) of n bytes, where an odd last byte is the high half of a word. Words are
 * read as little-endian, because the bytes of the sum can be swapped at the end. */
P4_INLINE uint64_t p4_csum_add(const uint8_t *b, size_t n)
{
    uint64_t sum = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32_t w;
        memcpy(&w, b + i, 4);
        sum += w;
    }
    if (i + 2 <= n) {
        uint16_t w;
        memcpy(&w, b + i, 2);
        sum += w;
        i += 2;
    }
    if (i < n)
        sum += b[i];
    return sum;
}

P4_INLINE uint64_t p4_csum_fold(uint64_t sum)
{
    sum = (sum >> 32) + (sum & 0xffffffff);
    sum = (sum >> 32) + (sum & 0xffffffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    return __builtin_bswap16((uint16_t)~sum);
}

P4_INLINE uint64_t p4_csum16(const uint8_t *b, size_t n) { return p4_csum_fold(p4_csum_add(b, n)); }

P4_FUNCTION uint64_t p4_xor_words(const uint8_t *b, size_t n, size_t size)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++)
        x ^= (uint64_t)b[i] << (8 * (size - 1 - i % size));
    return x;
}

P4_INLINE uint64_t p4_identity(const uint8_t *b, size_t n)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n && i < 8; i++)
        x = x << 8 | b[i];
    return x;
}

/* CRC with reflected input and output; table[k][b] is the CRC of byte b followed by k zero bytes. */
P4_INLINE uint32_t p4_crc_reflected32(const uint32_t table[8][256], const uint8_t *b, size_t n, uint32_t crc)
{
    for (; n >= 8; n -= 8, b += 8) {
        uint64_t w;
        memcpy(&w, b, 8);
        w ^= crc;
        crc = table[7][w & 255] ^ table[6][w >> 8 & 255] ^ table[5][w >> 16 & 255] ^ table[4][w >> 24 & 255] ^
              table[3][w >> 32 & 255] ^ table[2][w >> 40 & 255] ^ table[1][w >> 48 & 255] ^ table[0][w >> 56];
    }
    if (n >= 4) {
        uint32_t w;
        memcpy(&w, b, 4);
        w ^= crc;
        crc = table[3][w & 255] ^ table[2][w >> 8 & 255] ^ table[1][w >> 16 & 255] ^ table[0][w >> 24];
        n -= 4, b += 4;
    }
    for (; n; n--)
        crc = table[0][(crc ^ *b++) & 255] ^ crc >> 8;
    return crc;
}

P4_INLINE uint64_t p4_crc_reflected64(const uint64_t table[256], const uint8_t *b, size_t n, uint64_t crc)
{
    for (; n; n--)
        crc = table[(crc ^ *b++) & 255] ^ crc >> 8;
    return crc;
}

/* CRC without reflection; crc is kept in the top bits of `width`. */
P4_INLINE uint64_t p4_crc_plain(const uint64_t table[256], const uint8_t *b, size_t n, uint64_t crc, uint32_t width)
{
    for (; n; n--)
        crc = (table[(crc >> (width - 8) ^ *b++) & 255] ^ crc << 8) & p4_mask64(width);
    return crc;
}

P4_INLINE uint64_t p4_crc_bits(uint64_t crc, uint64_t reversed)
{
    for (int bit = 0; bit < 8; bit++)
        crc = crc >> 1 ^ (crc & 1 ? reversed : 0);
    return crc;
}

P4_FUNCTION void p4_crc_fill32(uint32_t table[8][256], uint64_t reversed)
{
    for (uint32_t b = 0; b < 256; b++) {
        table[0][b] = (uint32_t)p4_crc_bits(b, reversed);
        for (int k = 1; k < 8; k++)
            table[k][b] = (uint32_t)p4_crc_bits(table[k - 1][b], reversed);
    }
}

P4_FUNCTION void p4_crc_fill64(uint64_t table[256], uint64_t reversed)
{
    for (uint32_t b = 0; b < 256; b++)
        table[b] = p4_crc_bits(b, reversed);
}

P4_FUNCTION void p4_crc_fill_plain(uint64_t table[256], uint64_t polynomial, uint32_t width)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint64_t crc = (uint64_t)b << (width - 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ (crc >> (width - 1) & 1 ? polynomial : 0)) & p4_mask64(width);
        table[b] = crc;
    }
}

/* Reflected CRCs have the bits of their polynomial in reverse order. */
#define P4_CRC_REFLECTED32(name, reversed)                                                                            \
    static uint32_t name##_table[8][256];                                                                             \
    __attribute__((constructor)) static void name##_fill(void) { p4_crc_fill32(name##_table, reversed); }
#define P4_CRC_REFLECTED64(name, reversed)                                                                            \
    static uint64_t name##_table[256];                                                                                \
    __attribute__((constructor)) static void name##_fill(void) { p4_crc_fill64(name##_table, reversed); }
#define P4_CRC_PLAIN(name, polynomial, width)                                                                         \
    static uint64_t name##_table[256];                                                                                \
    __attribute__((constructor)) static void name##_fill(void) { p4_crc_fill_plain(name##_table, polynomial, width); }

#endif
