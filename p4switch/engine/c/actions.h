/* Functions that the actions and calculations of a generated pipeline call. Each includes it once, after its packet
 * struct. */

P4_INLINE uint32_t payload_len(const phv *p) { return p->base.frame->wire_len - p->parsed; }

/* Appends the payload, including its zeros, and returns its length. */
P4_UNUSED static size_t payload_copy(const phv *p, uint8_t *to)
{
    uint32_t len = payload_len(p);
    p4_copy_padded(to, p->base.frame, p->parsed, len);
    return len;
}
