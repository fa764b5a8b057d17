/* What happens around parser, pipelines and deparser: BMv2's simple_switch, packet by packet.
 *
 * Included once by every generated pipeline, after its packet struct, its functions and its INTRINSIC fields.
 */

enum { NORMAL = 0, INGRESS_CLONE = 1, EGRESS_CLONE = 2, RECIRCULATED = 4, REPLICA = 5, RESUBMITTED = 6 };

#define NO_TRUNCATION UINT32_MAX

/* --- packets ------------------------------------------------------------------------------------------------------- */

/* What the packets share that one frame became: together they may not go on for ever. */
struct family {
    family *next;
    uint32_t members;
    uint32_t hops; /* resubmissions, recirculations and clonings so far */
#ifdef P4_TRACE
    uint32_t copies;
#endif
};

/* Of this program, not in use, of whatever switch. */
static phv *pool;
static family *families;

#ifdef __SANITIZE_ADDRESS__
#define PACKETS_TOGETHER 1 /* so that nothing out of bounds goes unseen */
#else
#define PACKETS_TOGETHER 64
#endif

/* More of them, beside each other, each on a line of its own: what a queue reads of it is the first. */
static __attribute__((noinline, cold)) void pool_grow(void)
{
    size_t stride = (sizeof(phv) + P4_CACHE_LINE - 1) / P4_CACHE_LINE * P4_CACHE_LINE;
    uint8_t *block = must_have(aligned_alloc(P4_CACHE_LINE, PACKETS_TOGETHER * stride));
    for (size_t i = PACKETS_TOGETHER; i--;) {
        phv *p = (phv *)(void *)(block + i * stride);
        p->base.next = (p4_packet *)(void *)pool;
        pool = p;
    }
}

static phv *packet_new(p4_switch *sw, p4_frame *frame)
{
    (void)sw;
    if (P4_UNLIKELY(!pool))
        pool_grow();
    phv *p = pool;
    pool = (phv *)(void *)p->base.next;
    memset(p, 0, sizeof *p);
    p->base.frame = frame;
    p->base.tag = frame->tag;
    p->truncate = NO_TRUNCATION;
    return p;
}

/* The family of p, made now if it has none. */
static family *family_of(phv *p)
{
    if (p->family)
        return p->family;
    family *f = families;
    if (f)
        families = f->next;
    else
        f = must_alloc(sizeof *f);
    f->members = 1;
    f->hops = 0;
#ifdef P4_TRACE
    f->copies = 0;
#endif
    return p->family = f;
}

/* q, made of p, joins its family. */
static void family_join(phv *q, phv *p)
{
    q->family = family_of(p);
    q->family->members++;
    NUMBER(q, p->number, p->copy);
}

/* One hop more for the family of p; whether it may have it. */
static int may_hop(phv *p)
{
    family *f = family_of(p);
    return f->hops < P4_MAX_HOPS && ++f->hops;
}

static void packet_release(phv *p)
{
    if (P4_UNLIKELY(p->family != NULL) && !--p->family->members) {
        p->family->next = families;
        families = p->family;
    }
    p->base.next = (p4_packet *)(void *)pool;
    pool = p;
}

static void packet_delete(p4_switch *sw, phv *p)
{
    if (p->base.frame)
        sw->env.frame_free(sw->env.ctx, p->base.frame);
    packet_release(p);
}

static p4_frame *frame_copy(p4_switch *sw, const p4_frame *frame)
{
    p4_frame *copy = sw->env.frame_new(sw->env.ctx, frame->data_len);
    copy->wire_len = frame->wire_len;
    copy->data_len = frame->data_len;
    copy->tag = frame->tag;
    memcpy(copy->data, frame->data, frame->data_len);
    return copy;
}

static phv *packet_copy(p4_switch *sw, phv *p)
{
    phv *q = packet_new(sw, p->base.frame);
    *q = *p;
    family_join(q, p);
    NEW_COPY(q);
    q->base.frame = frame_copy(sw, p->base.frame);
    return q;
}

static uint32_t min32(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void drop(p4_switch *sw, const phv *p, uint32_t port, p4_drop_reason reason)
{
    uint32_t len = header_bytes(p) + payload_len(p);
    sw->counts.dropped++;
    TRACE(P4_TRACE_DROP, P4_NO_POINT, reason, 0, NULL, 0);
    sw->env.drop(sw->env.ctx, port, p->base.tag, len, reason);
}

static void enqueue(p4_switch *sw, phv *p, uint32_t port)
{
    p->base.egress_port = port;
    p->base.ingress_port = p->ingress_port;
    p->base.len = min32(header_bytes(p) + payload_len(p), p->truncate);
    p->base.priority = (uint32_t)get_priority(p);
    TRACE(P4_TRACE_ENQUEUE, P4_NO_POINT, port, p->base.len, NULL, 0);
    sw->env.enqueue(sw->env.ctx, &p->base);
}

/* One packet for each replica; takes p. Those beyond p are added to made. */
static void replicate(p4_switch *sw, phv *p, const p4_group *group, uint64_t *made)
{
    if (!group || !group->count) {
        drop(sw, p, p->ingress_port, P4_DROP_NO_PORT);
        packet_delete(sw, p);
        return;
    }
    *made += group->count - 1;
    for (uint32_t i = 0; i + 1 < group->count; i++) {
        phv *q = packet_copy(sw, p);
        set_egress_rid(q, group->replicas[i].instance);
        enqueue(sw, q, group->replicas[i].port);
    }
    set_egress_rid(p, group->replicas[group->count - 1].instance);
    enqueue(sw, p, group->replicas[group->count - 1].port);
}

/* A packet made by cloning; takes q. Sessions that do not exist lose it. */
static void emit_clone(p4_switch *sw, phv *q, uint32_t session)
{
    const p4_group *group = p4_group_find(&sw->clones, session);
    sw->counts.cloned++;
    if (!may_hop(q)) {
        drop(sw, q, q->ingress_port, P4_DROP_HOPS);
        packet_delete(sw, q);
        return;
    }
    replicate(sw, q, group, &sw->counts.cloned);
}

/* The packet as it began ingress, parsed anew, with the metadata of a field list. */
static void clone_ingress(p4_switch *sw, phv *p)
{
    uint32_t session = p->clone_session & 0x7fff;
    const p4_group *group = p4_group_find(&sw->clones, session);
    phv *q = packet_new(sw, p->base.frame);
    q->base.frame = frame_copy(sw, p->base.frame);
    if (group && group->truncate) {
        q->base.frame->wire_len = min32(q->base.frame->wire_len, group->truncate);
        q->base.frame->data_len = min32(q->base.frame->data_len, group->truncate);
    }
    q->now = p->now;
    q->ingress_port = p->ingress_port;
    family_join(q, p);
    NEW_COPY(q);
    TRACE(P4_TRACE_CLONE, P4_NO_POINT, session, q->copy, NULL, 0);
    q->ingress_len = p->ingress_len;
    q->length = q->base.frame->wire_len;
    set_ingress_port(q, p->ingress_port);
    parse(sw, q);
    memset(&q->m, 0, sizeof q->m);
    copy_field_list(q, p, p->clone_list);
    set_instance_type(q, INGRESS_CLONE);
    emit_clone(sw, q, session);
}

/* The packet as it is at the end of egress, not deparsed, with the metadata of a field list. */
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

/* A packet whose frame is to be parsed; takes p. */
static void ingress(p4_switch *sw, phv *p)
{
    for (;;) {
        p->length = p->ingress_len = p->base.frame->wire_len;
        parse(sw, p);
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
            packet_delete(sw, p);
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
            packet_delete(sw, p);
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
        p->truncate = NO_TRUNCATION; /* what ingress said is of the packet, which ends here; as in simple_switch */
        replicate(sw, p, p4_group_find(&sw->multicast, group), &sw->counts.multicast);
        return;
    }
    uint32_t port = (uint32_t)get_egress_spec(p);
    if (P4_UNLIKELY(port == sw->drop_port)) {
        drop(sw, p, p->ingress_port, P4_DROP_PROGRAM_INGRESS);
        packet_delete(sw, p);
        return;
    }
    set_instance_type(p, NORMAL);
    enqueue(sw, p, port);
}

static void receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    phv *p = packet_new(sw, frame);
    sw->counts.received++;
    p->now = now;
    p->ingress_port = port;
    set_ingress_port(p, port);
    set_packet_length(p, frame->wire_len);
    set_instance_type(p, NORMAL);
    set_ingress_timestamp(p, now);
    NUMBER(p, (uint32_t)sw->counts.received - 1, 0);
    TRACE(P4_TRACE_RECEIVE, P4_NO_POINT, port, frame->wire_len, frame->data, frame->data_len);
    ingress(sw, p);
}

/* --- egress ------------------------------------------------------------------------------------------------------------- */

/* Headers, then what of the frame was not parsed. Takes the frame of p, which may become the result. */
static p4_frame *deparse(p4_switch *sw, phv *p)
{
    p4_frame *frame = p->base.frame;
    uint32_t headers = header_bytes(p), payload = payload_len(p), parsed = p->parsed;
    uint32_t present = frame->data_len > parsed ? frame->data_len - parsed : 0;
    if (P4_UNLIKELY(headers + present > frame->cap)) {
        p4_frame *larger = sw->env.frame_new(sw->env.ctx, headers + present);
        larger->tag = frame->tag;
        memcpy(larger->data + headers, frame->data + frame->data_len - present, present);
        sw->env.frame_free(sw->env.ctx, frame);
        frame = larger;
    } else if (present && headers != parsed) {
        memmove(frame->data + headers, frame->data + parsed, present);
    }
    write_headers(p, frame->data);
    frame->wire_len = headers + payload;
    frame->data_len = headers + present;
    p->base.frame = NULL;
    return frame;
}

static p4_frame *transmit(p4_switch *sw, p4_packet *packet, p4_tick now)
{
    phv *p = (phv *)(void *)packet;
    __builtin_prefetch(p->base.frame, 1); /* a packet that waited is not in the cache, nor is its frame */
    __builtin_prefetch((const uint8_t *)p->base.frame + P4_CACHE_LINE, 1);
    p->now = now;
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
        packet_delete(sw, p);
        return NULL;
    }
    if (P4_UNLIKELY(p->clone_session)) {
        clone_egress(sw, p);
        p->clone_session = 0;
    }
    if (P4_UNLIKELY((uint32_t)get_egress_spec(p) == sw->drop_port)) {
        drop(sw, p, packet->egress_port, P4_DROP_PROGRAM_EGRESS);
        packet_delete(sw, p);
        return NULL;
    }
    update_checksums(sw, p);
    run_deparser(sw, p);
    tell_emitted(sw, p);
    p4_frame *frame = deparse(sw, p);

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
        if (!may_hop(p)) {
            drop(sw, p, p->ingress_port, P4_DROP_HOPS);
            packet_delete(sw, p);
        } else {
            ingress(sw, p);
        }
        return NULL;
    }
    if (P4_UNLIKELY(frame->wire_len > p->truncate)) {
        frame->wire_len = p->truncate;
        frame->data_len = min32(frame->data_len, p->truncate);
    }
    sw->counts.transmitted++;
    TRACE(P4_TRACE_TRANSMIT, P4_NO_POINT, packet->egress_port, frame->wire_len, frame->data, frame->data_len);
    packet_release(p);
    return frame;
}

static void free_packet(p4_switch *sw, p4_packet *packet) { packet_delete(sw, (phv *)(void *)packet); }
