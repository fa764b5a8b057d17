/* What the actions and calculations of a generated pipeline call. Included once by each, after its packet struct. */

/* Most packets of a network are not dropped: where this is called is away from where the others go. */
P4_INLINE void mark_to_drop(p4_switch *sw, phv *p)
{
    set_egress_spec(p, sw->drop_port);
    set_mcast_grp(p, 0);
}

P4_INLINE uint32_t payload_len(const phv *p) { return p->base.frame->wire_len - p->parsed; }

/* The payload with its zeros; returns its length. */
P4_UNUSED static size_t payload_copy(const phv *p, uint8_t *to)
{
    uint32_t len = payload_len(p);
    p4_copy_padded(to, p->base.frame, p->parsed, len);
    return len;
}
