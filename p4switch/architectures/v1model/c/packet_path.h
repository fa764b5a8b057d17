/* The path of a packet through v1model's blocks, as in BMv2's simple_switch. */

enum { NORMAL = 0, INGRESS_CLONE = 1, EGRESS_CLONE = 2, RECIRCULATED = 4, REPLICA = 5, RESUBMITTED = 6 };

/* The length in bytes that p would have on the wire if it left now. */
static uint32_t length_of(const phv *p) { return deparser_bytes(p) + payload_len(p); }

/* Drops and frees p. */
static void drop(p4_switch *sw, phv *p, uint32_t port, p4_drop_reason reason)
{
    packet_drop(sw, p, port, length_of(p), reason);
    packet_delete(sw, p);
}

static void enqueue(p4_switch *sw, phv *p, uint32_t port)
{
    p->base.egress_port = port;
    p->base.ingress_port = p->ingress_port;
    p->base.len = min32(length_of(p), p->truncate);
    p->base.priority = (uint32_t)get_priority(p);
    TRACE(P4_TRACE_ENQUEUE, P4_NO_POINT, port, p->base.len, NULL, 0);
    sw->env.enqueue(sw->env.ctx, &p->base);
}

/* Sends a packet made by cloning. Takes q. It is lost if the session does not exist. */
static void emit_clone(p4_switch *sw, phv *q, uint32_t session)
{
    const p4_group *group = p4_group_find(&sw->clones, session);
    sw->counts.cloned++;
    if (!may_hop(q)) {
        drop(sw, q, q->ingress_port, P4_DROP_HOPS);
        return;
    }
    replicate(sw, q, group, &sw->counts.cloned, set_egress_rid);
}

/* Copies the packet as it entered ingress, parsed again, with the metadata of a field list. */
static void clone_ingress(p4_switch *sw, phv *p)
{
    uint32_t session = p->clone_session & 0x7fff;
    const p4_group *group = p4_group_find(&sw->clones, session);
    phv *q = packet_new(sw, p->base.frame);
    q->base.frame = frame_copy(sw, p->base.frame);
    if (group && group->truncate)
        frame_truncate(q->base.frame, group->truncate);
    q->now = p->now;
    q->ingress_port = p->ingress_port;
    family_join(q, p);
    NEW_COPY(q);
    TRACE(P4_TRACE_CLONE, P4_NO_POINT, session, q->copy, NULL, 0);
    q->ingress_len = p->ingress_len;
    q->length = q->base.frame->wire_len;
    set_ingress_port(q, p->ingress_port);
    run_parser(sw, q);
    memset(&q->m, 0, sizeof q->m);
    copy_field_list(q, p, p->clone_list);
    set_instance_type(q, INGRESS_CLONE);
    emit_clone(sw, q, session);
}

/* Copies the packet as it is at the end of egress, before deparsing, with the metadata of a field list. */
static void clone_egress(p4_switch *sw, phv *p)
{
    uint32_t session = p->clone_session & 0x7fff;
    const p4_group *group = p4_group_find(&sw->clones, session);
    phv *q = packet_copy(sw, p);
    TRACE(P4_TRACE_CLONE, P4_NO_POINT, session, q->copy, NULL, 0);
    memset(&q->m, 0, sizeof q->m);
    copy_field_list(q, p, p->clone_list);
    set_instance_type(q, EGRESS_CLONE);
    q->clone_session = q->clone_list = q->digest = q->resubmit = q->recirculate = 0;
    q->exit = 0;
    q->truncate = group && group->truncate ? group->truncate : NO_TRUNCATION;
    emit_clone(sw, q, session);
}

/* --- ingress ----------------------------------------------------------------------------------------------------------- */

/* Handles a packet whose frame is yet to be parsed. Takes p. */
static void ingress(p4_switch *sw, phv *p)
{
    for (;;) {
        p->length = p->ingress_len = p->base.frame->wire_len;
        run_parser(sw, p);
        set_parser_error(p, p->error);
        verify_checksums(sw, p);
        set_checksum_error(p, p->checksum_error);
        NOTE(p);
        TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 0, 0, NULL, 0);
        run_ingress(sw, p);
        TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 0, 1, NULL, 0);
        p->exit = 0;
        if (CAN_LOOP && P4_UNLIKELY(p->endless)) {
            drop(sw, p, p->ingress_port, P4_DROP_ENDLESS);
            return;
        }

        if (P4_UNLIKELY(p->clone_session)) {
            clone_ingress(sw, p);
            p->clone_session = p->clone_list = 0;
        }
        if (P4_UNLIKELY(p->digest)) {
            send_digest(sw, p, p->digest);
            p->digest = 0;
        }
        if (P4_LIKELY(!p->resubmit))
            break;
        if (!may_hop(p)) {
            drop(sw, p, p->ingress_port, P4_DROP_HOPS);
            return;
        }
        TRACE(P4_TRACE_RESUBMIT, P4_NO_POINT, 0, 0, NULL, 0);
        phv *q = packet_new(sw, p->base.frame);
        q->now = p->now;
        q->ingress_port = p->ingress_port;
        family_join(q, p);
        copy_field_list(q, p, p->resubmit);
        set_instance_type(q, RESUBMITTED);
        set_packet_length(q, p->base.frame->wire_len);
        packet_release(p);
        p = q;
    }

    uint32_t group = (uint32_t)get_mcast_grp(p);
    if (P4_UNLIKELY(group)) {
        TRACE(P4_TRACE_MULTICAST, P4_NO_POINT, group, 0, NULL, 0);
        set_instance_type(p, REPLICA);
        /* requests of ingress belong to the packet, which ends here; as in simple_switch */
        p->truncate = NO_TRUNCATION;
        replicate(sw, p, p4_group_find(&sw->multicast, group), &sw->counts.multicast, set_egress_rid);
        return;
    }
    uint32_t port = (uint32_t)get_egress_spec(p);
    if (P4_UNLIKELY(port == sw->drop_port)) {
        drop(sw, p, p->ingress_port, P4_DROP_PROGRAM_INGRESS);
        return;
    }
    set_instance_type(p, NORMAL);
    enqueue(sw, p, port);
}

static void receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    phv *p = packet_receive(sw, frame, port, now);
    set_ingress_port(p, port);
    set_packet_length(p, frame->wire_len);
    set_instance_type(p, NORMAL);
    set_ingress_timestamp(p, now);
    ingress(sw, p);
}

/* --- egress ------------------------------------------------------------------------------------------------------------- */

static p4_frame *transmit(p4_switch *sw, p4_packet *packet, p4_tick now)
{
    phv *p = (phv *)(void *)packet;
    __builtin_prefetch(p->base.frame, 1); /* a packet that has waited is not in the cache, and neither is its frame */
    __builtin_prefetch((const uint8_t *)p->base.frame + P4_CACHE_LINE, 1);
    p->now = now;
    if (P4_UNLIKELY(packet->trimmed)) {
        p->length = min32(p->length, packet->len);
        p->truncate = min32(p->truncate, packet->len);
    }
    set_egress_timestamp(p, now);
    set_enq_timestamp(p, packet->enq_time);
    set_enq_qdepth(p, packet->enq_depth);
    set_deq_timedelta(p, packet->deq_time - packet->enq_time);
    set_deq_qdepth(p, packet->deq_depth);
    set_qid(p, packet->priority);
    set_egress_port(p, packet->egress_port);
    set_egress_spec(p, sw->drop_port + 1);
    set_packet_length(p, p->length);
    TRACE(P4_TRACE_DEQUEUE, P4_NO_POINT, packet->egress_port, packet->deq_depth, NULL, 0);
    NOTE(p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 1, 0, NULL, 0);
    run_egress(sw, p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 1, 1, NULL, 0);

    if (CAN_LOOP && P4_UNLIKELY(p->endless)) {
        drop(sw, p, packet->egress_port, P4_DROP_ENDLESS);
        return NULL;
    }
    if (P4_UNLIKELY(p->clone_session)) {
        clone_egress(sw, p);
        p->clone_session = 0;
    }
    if (P4_UNLIKELY((uint32_t)get_egress_spec(p) == sw->drop_port)) {
        drop(sw, p, packet->egress_port, P4_DROP_PROGRAM_EGRESS);
        return NULL;
    }
    update_checksums(sw, p);
    run_deparser(sw, p);
    deparser_tell(sw, p);
    p4_frame *frame = deparse(sw, p, deparser_bytes(p), deparser_write);

    if (P4_UNLIKELY(p->recirculate)) {
        phv *q = packet_new(sw, frame);
        q->now = now;
        q->ingress_port = p->ingress_port;
        family_join(q, p);
        copy_field_list(q, p, p->recirculate);
        set_instance_type(q, RECIRCULATED);
        set_packet_length(q, frame->wire_len);
        packet_release(p);
        p = q;
        TRACE(P4_TRACE_RECIRCULATE, P4_NO_POINT, 0, 0, NULL, 0);
        if (may_hop(p))
            ingress(sw, p);
        else
            drop(sw, p, p->ingress_port, P4_DROP_HOPS);
        return NULL;
    }
    if (P4_UNLIKELY(frame->wire_len > p->truncate))
        frame_truncate(frame, p->truncate);
    sw->counts.transmitted++;
    TRACE(P4_TRACE_TRANSMIT, P4_NO_POINT, packet->egress_port, frame->wire_len, frame->data, frame->data_len);
    packet_release(p);
    return frame;
}
