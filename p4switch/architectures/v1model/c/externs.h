/* Functions that the externs of v1model call. */

P4_INLINE void mark_to_drop(p4_switch *sw, phv *p)
{
    set_egress_spec(p, sw->drop_port);
    set_mcast_grp(p, 0);
}
