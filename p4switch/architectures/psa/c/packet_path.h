/* The path of a packet through PSA's blocks (PSA, section 6). Ingress hands bytes to egress.
 *
 * Where BMv2's psa_switch implements less than PSA, this file follows PSA: deparsers run for every packet, also for one
 * that is dropped or resubmitted, and the metadata that they write accompanies the packet.
 */

/* PSA_PacketPath_t */
enum { NORMAL, NORMAL_UNICAST, NORMAL_MULTICAST, CLONE_I2E, CLONE_E2E, RESUBMIT, RECIRCULATE };

/* Field lists of the metadata that accompanies a packet; `metadata.py` defines the same numbers. */
enum { WITH_RESUBMIT = 1, WITH_RECIRCULATE, WITH_NORMAL, WITH_CLONE_I2E, WITH_CLONE_E2E };

#define RECIRCULATE_PORT 0xfffffffau
#define MAX_PRIORITY 7u

static void egress(p4_switch *sw, phv *p, p4_tick now, p4_frame **sent);

/* Drops and frees p. */
static void drop(p4_switch *sw, phv *p, uint32_t port, p4_drop_reason reason)
{
    packet_drop(sw, p, port, p->base.frame->wire_len, reason);
    packet_delete(sw, p);
}

/* Makes a packet of `frame` that enters ingress, with some metadata of p. */
static phv *successor(p4_switch *sw, phv *p, p4_frame *frame, uint32_t with)
{
    phv *q = packet_new(sw, frame);
    q->now = p->now;
    q->ingress_port = p->ingress_port;
    q->ingress_len = q->length = frame->wire_len;
    copy_field_list(q, p, with);
    family_join(q, p);
    return q;
}

/* Enqueues p, and takes it. */
static void enqueue(p4_switch *sw, phv *p, uint32_t port)
{
    p->base.egress_port = port;
    p->base.ingress_port = p->ingress_port;
    p->base.len = p->base.frame->wire_len;
    p->base.priority = min32((uint32_t)get_egress_class_of_service(p), MAX_PRIORITY);
    if (P4_UNLIKELY(port == RECIRCULATE_PORT)) { /* no queue leads there */
        egress(sw, p, p->now, NULL);
        return;
    }
    TRACE(P4_TRACE_ENQUEUE, P4_NO_POINT, port, p->base.len, NULL, 0);
    sw->env.enqueue(sw->env.ctx, &p->base);
}

/* Sends the packet `frame`, a copy of p, to a session. It is lost if the session does not exist. */
static void clone(p4_switch *sw, phv *p, p4_frame *frame, uint32_t session, uint32_t path, uint32_t with)
{
    const p4_group *group = p4_group_find(&sw->clones, session);
    if (group && group->truncate)
        frame_truncate(frame, group->truncate);
    phv *q = successor(sw, p, frame, with);
    NEW_COPY(q);
    TRACE(P4_TRACE_CLONE, P4_NO_POINT, session, q->copy, NULL, 0);
    set_egress_parser_path(q, path);
    sw->counts.cloned++;
    if (!may_hop(q)) {
        drop(sw, q, q->ingress_port, P4_DROP_HOPS);
        return;
    }
    replicate(sw, q, group, &sw->counts.cloned, set_instance);
}

static void tell_digest(p4_switch *sw, phv *p)
{
    if (P4_UNLIKELY(p->digest)) {
        send_digest(sw, p, p->digest);
        p->digest = 0;
    }
}

/* --- ingress ------------------------------------------------------------------------------------------------------- */

/* Handles a packet whose frame is yet to be parsed. Takes p. */
static void ingress(p4_switch *sw, phv *p, uint32_t path)
{
    for (;;) {
        p->length = p->ingress_len = p->base.frame->wire_len;
        set_parser_port(p, p->ingress_port);
        set_parser_path(p, path);
        run_ingress_parser(sw, p);
        set_ingress_port(p, p->ingress_port);
        set_ingress_path(p, path);
        set_ingress_timestamp(p, p->now);
        set_ingress_error(p, p->error);
        set_drop(p, 1);
        NOTE(p);
        TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 0, 0, NULL, 0);
        run_ingress(sw, p);
        TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 0, 1, NULL, 0);
        p->exit = 0;
        if (CAN_LOOP && P4_UNLIKELY(p->endless)) {
            drop(sw, p, p->ingress_port, P4_DROP_ENDLESS);
            return;
        }
        run_ingress_deparser(sw, p);
        p->exit = 0;
        tell_digest(sw, p);
        if (P4_UNLIKELY(get_clone(p)))
            clone(sw, p, frame_copy(sw, p->base.frame), (uint32_t)get_clone_session_id(p), CLONE_I2E, WITH_CLONE_I2E);
        if (P4_UNLIKELY(get_drop(p))) {
            drop(sw, p, p->ingress_port, P4_DROP_PROGRAM_INGRESS);
            return;
        }
        if (P4_LIKELY(!get_resubmit(p)))
            break;
        if (!may_hop(p)) {
            drop(sw, p, p->ingress_port, P4_DROP_HOPS);
            return;
        }
        TRACE(P4_TRACE_RESUBMIT, P4_NO_POINT, 0, 0, NULL, 0);
        phv *q = successor(sw, p, p->base.frame, WITH_RESUBMIT);
        packet_release(p);
        p = q;
        path = RESUBMIT;
    }

    ingress_deparser_tell(sw, p);
    p4_frame *frame = deparse(sw, p, ingress_deparser_bytes(p), ingress_deparser_write);
    phv *q = successor(sw, p, frame, WITH_NORMAL);
    uint32_t group = (uint32_t)get_multicast_group(p), port = (uint32_t)get_egress_spec(p);
    set_egress_class_of_service(q, get_class_of_service(p));
    packet_release(p);
    if (P4_UNLIKELY(group)) {
        p = q;
        TRACE(P4_TRACE_MULTICAST, P4_NO_POINT, group, 0, NULL, 0);
        set_egress_parser_path(q, NORMAL_MULTICAST);
        replicate(sw, q, p4_group_find(&sw->multicast, group), &sw->counts.multicast, set_instance);
        return;
    }
    set_egress_parser_path(q, NORMAL_UNICAST);
    enqueue(sw, q, port);
}

static void receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    ingress(sw, packet_receive(sw, frame, port, now), NORMAL);
}

/* --- egress -------------------------------------------------------------------------------------------------------- */

/* Runs egress. Takes p; *sent is set to the frame that leaves, if there is one. */
static void egress(p4_switch *sw, phv *p, p4_tick now, p4_frame **sent)
{
    uint32_t port = p->base.egress_port, path = (uint32_t)get_egress_parser_path(p);
    p->now = now;
    set_egress_parser_port(p, port);
    run_egress_parser(sw, p);
    set_egress_port(p, port);
    set_egress_path(p, path);
    set_egress_timestamp(p, now);
    set_egress_error(p, p->error);
    NOTE(p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 1, 0, NULL, 0);
    run_egress(sw, p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 1, 1, NULL, 0);
    p->exit = 0;
    if (CAN_LOOP && P4_UNLIKELY(p->endless)) {
        drop(sw, p, port, P4_DROP_ENDLESS);
        return;
    }
    set_deparser_port(p, port);
    run_egress_deparser(sw, p);
    tell_digest(sw, p);
    egress_deparser_tell(sw, p);
    p4_frame *frame = deparse(sw, p, egress_deparser_bytes(p), egress_deparser_write);
    p->base.frame = frame;
    if (P4_UNLIKELY(get_egress_clone(p)))
        clone(sw, p, frame_copy(sw, frame), (uint32_t)get_egress_clone_session_id(p), CLONE_E2E, WITH_CLONE_E2E);
    if (P4_UNLIKELY(get_egress_drop(p))) {
        drop(sw, p, port, P4_DROP_PROGRAM_EGRESS);
        return;
    }
    if (P4_UNLIKELY(port == RECIRCULATE_PORT)) {
        if (!may_hop(p)) {
            drop(sw, p, p->ingress_port, P4_DROP_HOPS);
            return;
        }
        TRACE(P4_TRACE_RECIRCULATE, P4_NO_POINT, 0, 0, NULL, 0);
        phv *q = successor(sw, p, frame, WITH_RECIRCULATE);
        packet_release(p);
        q->ingress_port = RECIRCULATE_PORT;
        ingress(sw, q, RECIRCULATE);
        return;
    }
    sw->counts.transmitted++;
    TRACE(P4_TRACE_TRANSMIT, P4_NO_POINT, port, frame->wire_len, frame->data, frame->data_len);
    packet_release(p);
    *sent = frame;
}

static p4_frame *transmit(p4_switch *sw, p4_packet *packet, p4_tick now)
{
    phv *p = (phv *)(void *)packet;
    p4_frame *sent = NULL;
    __builtin_prefetch(p->base.frame, 1); /* a packet that has waited is not in the cache, and neither is its frame */
    TRACE(P4_TRACE_DEQUEUE, P4_NO_POINT, packet->egress_port, packet->deq_depth, NULL, 0);
    egress(sw, p, now, &sent);
    return sent;
}
