/* What the C of externs calls. */

/* A one's complement sum less the bytes from `from` to `to` of a packet, as words of 16 bits. */
P4_UNUSED static uint32_t p4_csum_without(uint32_t sum, const uint8_t *front, uint32_t front_len, const p4_frame *frame,
                                          uint32_t from, uint32_t to)
{
    for (uint32_t at = from; at < to; at += 2) {
        uint8_t word[2] = {0, 0};
        p4_copy_behind(word, front, front_len, frame, at, to - at < 2 ? 1 : 2);
        sum += 0xffffu ^ ((uint32_t)word[0] << 8 | word[1]);
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}
