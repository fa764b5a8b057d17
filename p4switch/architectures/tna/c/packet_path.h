/* The path of a packet through the blocks of a pipeline of TNA or T2NA.
 *
 * Parsers find intrinsic metadata as bytes in front of the packet. Ingress hands nothing but bytes to egress.
 */

#define PORT_METADATA_BYTES (ingress_parser_front_bytes - 8)
#define FCS_BYTES 4 /* a chip includes them in a packet's length */
#define MAX_PRIORITY 7u

/* Ports of each pipe that lead to its ingress. */
#if TOFINO == 1
#define IS_RECIRCULATION(port) (((port) & 0x7fu) - 68u < 4u)
#else
#define IS_RECIRCULATION(port) (((port) & 0x7fu) - 6u < 2u)
#endif

/* values of drop_ctl */
enum { DROP_PACKET = 1, DROP_CPU_COPY = 2, DROP_MIRROR = 4 };
/* bits of parser_err, and the errors of core.p4 that they report, in their order there */
enum { NO_MATCH = 0x1, PARTIAL_HEADER = 0x2, COUNTER_RANGE = 0x4, TIMEOUT = 0x10 };

static void egress(p4_switch *sw, phv *p, p4_tick now, p4_frame **sent);

static uint32_t parser_err(const phv *p)
{
    static const uint16_t bits[] = {0, PARTIAL_HEADER, NO_MATCH, COUNTER_RANGE, PARTIAL_HEADER, TIMEOUT, NO_MATCH};
    return p->error < sizeof bits / sizeof *bits ? bits[p->error] : TIMEOUT;
}

/* --- bytes in front of packets -------------------------------------------------------------------------------------- */

/* Returns the frame with room for n more bytes in front, which the caller has to write. Takes the frame. */
static p4_frame *frame_widened(p4_switch *sw, p4_frame *frame, uint32_t n)
{
    if (P4_UNLIKELY(frame->data_len + n > frame->cap)) {
        p4_frame *larger = sw->env.frame_new(sw->env.ctx, frame->data_len + 2 * n);
        larger->tag = frame->tag;
        larger->wire_len = frame->wire_len;
        larger->data_len = frame->data_len;
        memcpy(larger->data + n, frame->data, frame->data_len);
        sw->env.frame_free(sw->env.ctx, frame);
        frame = larger;
    } else {
        memmove(frame->data + n, frame->data, frame->data_len);
    }
    frame->wire_len += n;
    frame->data_len += n;
    return frame;
}

/* Cuts a packet to mtu_trunc_len, which includes the FCS; 0 leaves it as it is. */
static void frame_cut(p4_frame *frame, uint32_t mtu_trunc_len)
{
    if (P4_UNLIKELY(mtu_trunc_len))
        frame_truncate(frame, mtu_trunc_len - min32(mtu_trunc_len, FCS_BYTES));
}

static uint64_t nanoseconds(const p4_switch *sw, p4_tick now) { return now * sw->tick_ns; }

/* Writes the bytes in front of a packet in ingress, as far as the program reads them; `data` is the data of a
 * resubmission. */
static void write_ingress_front(p4_switch *sw, const phv *p, uint8_t *to, const uint8_t *data)
{
    uint64_t head = (uint64_t)p->resubmitted << 15 | (p->ingress_port & 0x1ff);
    p4_st64(to, head << 48 | (nanoseconds(sw, p->now) & p4_mask64(48)));
    if (ingress_parser_front_read <= 8)
        return;
    if (P4_UNLIKELY(p->resubmitted)) {
        memcpy(to + 8, data, PORT_METADATA_BYTES);
        return;
    }
    const object_state_port *port = &port_cells(sw)[p->ingress_port & 0x1ff];
#if TOFINO == 1
    p4_st64(to + 8, port->metadata);
#else
    for (int i = 0; i < 3; i++)
        p4_st64(to + 8 + 8 * i, port->metadata[2 - i]);
#endif
}

#define QUEUE_TIME_BYTES 4
#if TOFINO == 1
#define QUEUE_TIME_BITS 18
#else
#define QUEUE_TIME_BITS 32
#endif
#define DEPTH_MAX 0x7ffff

/* Writes the bytes in front of a packet in egress. Fields are written one by one because they are read soon
 * afterwards. */
static void write_egress_front(p4_switch *sw, const phv *p, uint32_t length, uint8_t *to)
{
    const p4_packet *base = &p->base;
    uint64_t waited = nanoseconds(sw, base->deq_time - base->enq_time);
    p4_st16(to, base->egress_port & 0x1ff);
    p4_st32(to + 2, min32(base->enq_depth, DEPTH_MAX) << 8 | base->enq_state);
    p4_st32(to + 6, (uint32_t)(nanoseconds(sw, base->enq_time) & p4_mask64(QUEUE_TIME_BITS)));
    p4_st32(to + 10, min32(base->deq_depth, DEPTH_MAX) << 8 | base->deq_state);
    to[14] = 0;
    p4_st32(to + 15, (uint32_t)(waited < p4_mask64(QUEUE_TIME_BITS) ? waited : p4_mask64(QUEUE_TIME_BITS)));
    p4_st16(to + 19, p->rid);
    to[21] = p->rid_first;
    to[22] = p->qid;
    to[23] = p->cos;
    to[24] = p->deflected;
    p4_st16(to + 25, length);
#if TOFINO == 2
    to[27] = 0;
#endif
}

/* --- to the queues -------------------------------------------------------------------------------------------------- */

/* Drops and frees p. */
static void drop(p4_switch *sw, phv *p, uint32_t port, p4_drop_reason reason)
{
    packet_drop(sw, p, port, p->base.frame->wire_len, reason);
    packet_delete(sw, p);
}

/* Makes a packet of `frame` that enters ingress, derived from p. */
static phv *successor(p4_switch *sw, phv *p, p4_frame *frame)
{
    phv *q = packet_new(sw, frame);
    q->now = p->now;
    q->ingress_port = p->ingress_port;
    family_join(q, p);
    return q;
}

/* Chooses the queue of the port in which p will wait. */
static void choose_queue(P4_UNUSED p4_switch *sw, phv *p, uint32_t port)
{
    p->base.egress_port = port;
    p->base.priority = min32(p->qid, MAX_PRIORITY);
    p->base.queue = p->qid;
    p->base.color = p->color & 3;
    TRACE(P4_TRACE_ENQUEUE, P4_NO_POINT, port, p->base.len, NULL, 0);
}

/* Enqueues p at its port, and takes it. */
static void enqueue(p4_switch *sw, phv *p, uint32_t port)
{
    p->base.ingress_port = p->ingress_port;
    p->base.len = p->base.frame->wire_len;
    choose_queue(sw, p, port);
    packet_enqueue(sw, p);
}

static int deflect(p4_switch *sw, p4_packet *packet)
{
    phv *p = (phv *)(void *)packet;
    const object_state_device *device = device_cells(sw);
    if (!p->deflect || p->deflected || !device->deflect_enabled)
        return 0;
    p->deflected = 1;
    p->qid = device->deflect_qid;
    choose_queue(sw, p, device->deflect_port);
    return 1;
}

/* Advanced flow control. Its value has a bit that marks it as valid, the pipe (2 bits), the MAC (4), 3 unused bits,
 * the queue of the MAC (7), and the credit (15). Queues are in the mode in which a credit of 1 stops them and a
 * credit of 0 lets them continue. Each of the 8 ports of a MAC has 16 queues, and also has the queues of the ports
 * behind it that do not exist. */
static void control_flow(P4_UNUSED p4_switch *sw, P4_UNUSED const phv *p, uint32_t message)
{
    enum { QUEUES = 16 };
    if (P4_LIKELY(!(message >> 31)))
        return;
    uint32_t first = (message >> 29 & 3) << 7 | (message >> 25 & 15) << 3, queue = message >> 15 & 0x7f;
    int stopped = message & 1;
    for (uint32_t lane = queue / QUEUES + 1; lane-- > 0;) {
        uint32_t port = first + lane, own = queue - lane * QUEUES;
        if (!sw->env.stop_queue || sw->env.stop_queue(sw->env.ctx, port, own, stopped)) {
            TRACE(P4_TRACE_STOP_QUEUE, P4_NO_POINT, port, 2 * own + (uint32_t)stopped, NULL, 0);
            return;
        }
    }
}

/* Destinations of one packet, each independent of the others. */
typedef struct destinations {
    uint8_t unicast, cpu;
    uint16_t port, group_a, group_b; /* groups: 0 means none */
    uint16_t rid, level1_xid, level2_xid, hash1, hash2;
} destinations;

/* Whether the replication engine makes no copy for a replica, because of the hashes or the exclusion ids. */
static int is_pruned(p4_switch *sw, const p4_replica *r, const destinations *to)
{
    if (r->of && to->hash1 % r->of != r->at)
        return 1;
    if (r->lag_of && to->hash2 % r->lag_of != r->lag_at)
        return 1;
    if (r->xid && r->xid - 1 == to->level1_xid)
        return 1;
    uint16_t global_rid = device_cells(sw)->global_rid;
    if (r->instance != to->rid && !(global_rid && to->rid == global_rid))
        return 0;
    const uint64_t *ports = prune_cells(sw)[to->level2_xid & 0x1ff].ports;
    return r->port < 512 && ports[r->port / 64] >> r->port % 64 & 1;
}

/* Sends a copy of p to a port. */
static void send_copy(p4_switch *sw, phv *p, uint32_t port, uint32_t rid, int first)
{
    phv *q = packet_copy(sw, p);
    q->rid = (uint16_t)rid;
    q->rid_first = (uint8_t)first;
    enqueue(sw, q, port);
}

/* Sets *port to the port that takes a group's copies for it; 0: there is none. */
static int find_port_of_group(p4_switch *sw, uint32_t *port)
{
    if (*port >= 512)
        return 1;
    const object_state_port *at = &port_cells(sw)[*port];
    const object_state_device *device = device_cells(sw);
    if (P4_LIKELY(!at->stopped && !at->failed))
        return 1;
    if (at->backup && ((at->stopped && device->protects) || (at->failed && device->fails_over))) {
        *port = at->backup - 1u;
        return 1;
    }
    return !at->stopped;
}

static uint32_t send_group(p4_switch *sw, phv *p, uint32_t id, const destinations *to)
{
    const p4_group *group = p4_group_find(&sw->multicast, id);
    uint32_t made = 0, last = UINT32_MAX;
    TRACE(P4_TRACE_MULTICAST, P4_NO_POINT, id, 0, NULL, 0);
    for (uint32_t i = 0; group && i < group->count; i++) {
        const p4_replica *r = &group->replicas[i];
        uint32_t port = r->port;
        if (is_pruned(sw, r, to) || !find_port_of_group(sw, &port))
            continue;
        send_copy(sw, p, port, r->instance, r->instance != last);
        last = r->instance;
        made++;
    }
    return made;
}

/* Sends p to all its destinations. Takes p, which is counted as dropped if it has none. */
static void send(p4_switch *sw, phv *p, const destinations *to)
{
    if (P4_LIKELY(to->unicast && !to->cpu && !to->group_a && !to->group_b)) {
        enqueue(sw, p, to->port);
        return;
    }
    uint32_t made = 0;
    if (to->group_a)
        made += send_group(sw, p, to->group_a, to);
    if (to->group_b)
        made += send_group(sw, p, to->group_b, to);
    const object_state_device *device = device_cells(sw);
    if (to->cpu && device->cpu_enabled) {
        send_copy(sw, p, device->cpu_port, 0, 1);
        made++;
    }
    if (to->unicast) {
        sw->counts.multicast += made;
        enqueue(sw, p, to->port);
        return;
    }
    if (made) {
        sw->counts.multicast += made - 1;
        packet_delete(sw, p);
        return;
    }
    drop(sw, p, p->ingress_port, to->group_a || to->group_b || to->cpu ? P4_DROP_NO_PORT : P4_DROP_PROGRAM_INGRESS);
}

/* --- mirrors -------------------------------------------------------------------------------------------------------- */

#define CHUNKS(side)                                                                                                  \
    {                                                                                                                 \
        get_##side##_data0(p), get_##side##_data1(p), get_##side##_data2(p), get_##side##_data3(p),                  \
        get_##side##_data4(p), get_##side##_data5(p), get_##side##_data6(p), get_##side##_data7(p)                   \
    }

/* Writes n bytes from fields of 64 bits. */
static void write_chunks(uint8_t *to, const uint64_t *chunks, uint32_t n)
{
    uint8_t bytes[64];
    for (uint32_t i = 0; i < 8; i++)
        p4_st64(bytes + 8 * i, chunks[i]);
    memcpy(to, bytes, min32(n, sizeof bytes));
}

/* Sends the packet `frame`, a copy of p with n bytes in front, to a session. It is lost if the session does not
 * exist. `deflect`: a queue that has no room for it may send it to another queue. */
static void mirror(p4_switch *sw, phv *p, p4_frame *frame, uint32_t id, const uint64_t *chunks, uint32_t n, int deflect)
{
    frame = frame_widened(sw, frame, n);
    write_chunks(frame->data, chunks, n);
    phv *q = successor(sw, p, frame);
    q->deflect = (uint8_t)deflect;
    NEW_COPY(q);
    TRACE(P4_TRACE_CLONE, P4_NO_POINT, id, q->copy, NULL, 0);
    sw->counts.cloned++;
    if (!may_hop(q)) {
        drop(sw, q, q->ingress_port, P4_DROP_HOPS);
        return;
    }
    const object_state_mirror *session = id < MIRROR_SESSIONS ? &mirror_cells(sw)[id] : NULL;
    if (session && session->enabled) {
        if (session->max_bytes)
            frame_truncate(frame, session->max_bytes);
        q->qid = session->qid;
        q->color = session->color;
        q->cos = session->cos;
        destinations to = {
            session->unicast, session->copy_to_cpu, session->port, session->group_a, session->group_b, session->rid,
            session->level1_xid, session->level2_xid, session->hash1, session->hash2,
        };
        send(sw, q, &to);
        return;
    }
    const p4_group *group = p4_group_find(&sw->clones, id); /* a clone session of P4Runtime */
    if (!group || !group->count) {
        drop(sw, q, q->ingress_port, P4_DROP_NO_PORT);
        return;
    }
    if (group->truncate)
        frame_truncate(frame, group->truncate);
    for (uint32_t i = 0; i + 1 < group->count; i++)
        send_copy(sw, q, group->replicas[i].port, group->replicas[i].instance, 1);
    sw->counts.cloned += group->count - 1;
    q->rid = (uint16_t)group->replicas[group->count - 1].instance;
    enqueue(sw, q, group->replicas[group->count - 1].port);
}

/* --- packet generator ------------------------------------------------------------------------------------------------ */

enum { BY_RECIRCULATION = 1, BY_DEPARSER, BY_ONE_SHOT, BY_PERIOD, BY_PORT_DOWN };
enum { WENT_DOWN = 1, SEEN_DOWN }; /* values of a port's went_down */
#define IS_TIMED(trigger) ((trigger) == BY_ONE_SHOT || (trigger) == BY_PERIOD)
#define PKTGEN_HEADER_BYTES 6
#define CONTEXT_BYTES 16
#if TOFINO == 1
#define APPLICATIONS 8u
#define PATTERN_BYTES 4u
#else
#define APPLICATIONS 16u
#define PATTERN_BYTES 16u
#endif

/* Sets bytes of the buffer from one position on; behind the end of the buffer there are zeros. */
static void read_buffer(p4_switch *sw, uint8_t *to, uint32_t from, uint32_t n)
{
    const object_state_pktgen_buffer *cells = pktgen_buffer_cells(sw);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = from + i, within = at % 16;
        to[i] = at / 16 < BUFFER_CELLS ? (uint8_t)(cells[at / 16].bytes[1 - within / 8] >> (56 - 8 * (within % 8))) : 0;
    }
}

static int matches_pattern(const object_state_pktgen *app, const uint8_t *context)
{
    uint64_t found[2] = {0, 0};
    for (uint32_t i = 0; i < PATTERN_BYTES; i++) {
        found[1] = found[1] << 8 | found[0] >> 56;
        found[0] = found[0] << 8 | context[i];
    }
    return !((found[0] ^ app->value[0]) & app->mask[0]) && !((found[1] ^ app->value[1]) & app->mask[1]);
}

/* `context`: the bytes of the trigger, which are those of a packet, or the number of a port in bytes 2 and 3. */
static p4_frame *generated_frame(p4_switch *sw, uint32_t number, uint32_t pipe, uint32_t batch, uint32_t packet,
                                 const uint8_t *context)
{
    const object_state_pktgen *app = &pktgen_cells(sw)[number];
    const int has_context = TOFINO == 2 && (app->trigger == BY_RECIRCULATION || app->trigger == BY_DEPARSER);
    uint32_t head = PKTGEN_HEADER_BYTES + (has_context ? CONTEXT_BYTES : 0), size = head + app->length;
    p4_frame *frame = sw->env.frame_new(sw->env.ctx, size);
    frame->tag = 0;
    frame->wire_len = frame->data_len = size;
    uint8_t *to = frame->data;
    memset(to, 0, head);
    to[0] = (uint8_t)(pipe << (TOFINO == 1 ? 3 : 4) | number);
    if (TOFINO == 1 && app->trigger == BY_RECIRCULATION) {
        to[1] = context[1];
        p4_st16(to + 2, ((uint32_t)context[2] << 8 | context[3]) + batch);
    } else if (app->trigger == BY_PORT_DOWN) {
        memcpy(to + 2, context + 2, 2);
    } else {
        p4_st16(to + 2, batch);
    }
    if (has_context)
        memcpy(to + PKTGEN_HEADER_BYTES, context, CONTEXT_BYTES);
    p4_st16(to + 4, packet);
    read_buffer(sw, to + head, app->offset, app->length);
    return frame;
}

static void trace_generated(P4_UNUSED p4_switch *sw, P4_UNUSED const phv *p, P4_UNUSED uint32_t number)
{
    TRACE(P4_TRACE_GENERATE, P4_NO_POINT, number, p->copy, NULL, 0);
}

/* Adds the packets of one trigger of an application to the list that ends at `last`; they will enter ingress. `cause`
 * is the packet that is the trigger, or NULL. Returns the new end. */
static p4_packet **generate_from(p4_switch *sw, uint32_t number, phv *cause, p4_tick now, uint32_t pipe,
                                 const uint8_t *context, p4_packet **last)
{
    object_state_pktgen *app = &pktgen_cells(sw)[number];
    app->triggers++;
    app->batches_made += app->packets ? app->batches : 0;
    for (uint64_t i = 0; i < (uint64_t)app->batches * app->packets; i++) {
        uint32_t batch = (uint32_t)(i / app->packets), packet = (uint32_t)(i % app->packets);
        p4_frame *frame = generated_frame(sw, number, pipe, batch, packet, context);
        phv *q = cause ? successor(sw, cause, frame) : packet_new(sw, frame);
        q->now = now;
        q->ingress_port = pipe << 7 | (app->port & 0x7f);
        if (!cause) {
            sw->timed++;
            family_of(q);
            NUMBER(q, frame_number(sw), 0);
        }
        NEW_COPY(q);
        trace_generated(sw, q, number);
        sw->counts.cloned++;
        app->packets_made++;
        if (i == MOST_GENERATED || !may_hop(q)) {
            drop(sw, q, q->ingress_port, P4_DROP_HOPS);
            return last;
        }
        q->base.next = NULL;
        *last = &q->base;
        last = &q->base.next;
    }
    return last;
}

/* The packets that p triggers, linked by `next`; they enter ingress. */
static phv *generate(p4_switch *sw, phv *p, uint32_t trigger, uint32_t pipe, const uint8_t *context)
{
    p4_packet *first = NULL, **last = &first;
    for (uint32_t number = 0; number < APPLICATIONS; number++) {
        const object_state_pktgen *app = &pktgen_cells(sw)[number];
        if (!app->enabled || app->trigger != trigger)
            continue;
        if (trigger == BY_RECIRCULATION && !matches_pattern(app, context))
            continue;
        last = generate_from(sw, number, p, p->now, pipe, context, last);
    }
    return (phv *)(void *)first;
}

static void ingress(p4_switch *sw, phv *p);

static void ingress_all(p4_switch *sw, phv *made)
{
    for (phv *next; P4_UNLIKELY(made != NULL); made = next) {
        next = (phv *)(void *)made->base.next;
        made->base.next = NULL;
        ingress(sw, made);
    }
}

/* --- ingress -------------------------------------------------------------------------------------------------------- */

/* Takes p, with `data` in front of it if it is resubmitted. Returns p if it is to be resubmitted, else NULL. *made
 * is set to the packets that p has generated. */
static phv *ingress_once(p4_switch *sw, phv *p, const uint8_t *data, phv **made)
{
    uint8_t spare[ingress_parser_front_bytes], *front = ingress_parser_front(p, spare);
    p->ingress_len = p->base.frame->wire_len + FCS_BYTES;
    write_ingress_front(sw, p, front, data);
    run_ingress_parser(sw, p, front);
    if (P4_UNLIKELY(p->error) && !has_ingress_parser_err) {
        drop(sw, p, p->ingress_port, P4_DROP_PROGRAM_INGRESS);
        return NULL;
    }
    set_ingress_parser_err(p, parser_err(p));
    set_ingress_global_tstamp(p, nanoseconds(sw, p->now));
    NOTE(p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 0, 0, NULL, 0);
    run_ingress(sw, p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 0, 1, NULL, 0);
    p->exit = 0;
    if (CAN_LOOP && P4_UNLIKELY(p->endless)) {
        drop(sw, p, p->ingress_port, P4_DROP_ENDLESS);
        return NULL;
    }
    run_ingress_deparser(sw, p);
    if (P4_UNLIKELY(p->digest)) {
        if (get_digest_written(p))
            send_digest(sw, p, p->digest);
        p->digest = 0;
    }
    control_flow(sw, p, (uint32_t)get_ingress_adv_flow_ctl(p));
    uint32_t dropped = (uint32_t)get_ingress_drop_ctl(p);
    if (P4_UNLIKELY(get_resubmit_emitted(p)) && get_resubmit_written(p)) {
        if (!p->resubmitted)
            return p;
        drop(sw, p, p->ingress_port, P4_DROP_HOPS);
        return NULL;
    }
    if (P4_UNLIKELY(get_ig_mirror_emitted(p)) && get_ingress_mirror_type(p) && !(dropped & DROP_MIRROR)) {
        const uint64_t chunks[] = CHUNKS(ig_mirror);
        mirror(sw, p, frame_copy(sw, p->base.frame), (uint32_t)get_ig_mirror_session(p), chunks,
               (uint32_t)get_ig_mirror_bytes(p), (int)get_ingress_mirror_deflect(p));
    }
    if (P4_UNLIKELY(get_ig_pktgen_emitted(p))) {
        uint8_t context[CONTEXT_BYTES] = {0};
        const uint64_t chunks[8] = {get_ig_pktgen_data0(p), get_ig_pktgen_data1(p)};
        write_chunks(context, chunks, min32((uint32_t)get_ig_pktgen_bytes(p), CONTEXT_BYTES));
        *made = generate(sw, p, BY_DEPARSER, p->ingress_port >> 7 & 3, context);
    }
    const int kept = !(dropped & DROP_PACKET);
    const destinations to = {
        .unicast = kept && get_ucast_written(p),
        .cpu = !(dropped & DROP_CPU_COPY) && get_copy_to_cpu(p),
        .port = (uint16_t)get_ucast_egress_port(p),
        .group_a = kept && get_mcast_a_written(p) ? (uint16_t)get_mcast_grp_a(p) : 0,
        .group_b = kept && get_mcast_b_written(p) ? (uint16_t)get_mcast_grp_b(p) : 0,
        .rid = (uint16_t)get_rid(p),
        .level1_xid = (uint16_t)get_level1_exclusion_id(p),
        .level2_xid = (uint16_t)get_level2_exclusion_id(p),
        .hash1 = (uint16_t)get_level1_mcast_hash(p),
        .hash2 = (uint16_t)get_level2_mcast_hash(p),
    };
    if (P4_UNLIKELY(!to.unicast && !to.cpu && !to.group_a && !to.group_b)) {
        drop(sw, p, p->ingress_port, P4_DROP_PROGRAM_INGRESS);
        return NULL;
    }
    ingress_deparser_tell(sw, p);
    /* The same packet continues: nothing has touched the parts that only egress uses. */
    p->base.frame = deparse(sw, p, ingress_deparser_bytes(p), ingress_deparser_write);
    frame_cut(p->base.frame, (uint32_t)get_ingress_mtu_trunc_len(p));
    p->parsed = p->length = p->error = 0;
    p->bypass = (uint8_t)get_bypass_egress(p);
    p->deflect = (uint8_t)get_deflect_on_drop(p);
    p->qid = (uint8_t)get_qid(p);
    p->cos = (uint8_t)get_ingress_cos(p);
    p->color = (uint8_t)get_packet_color(p);
    p->rid = (uint16_t)get_rid(p);
    send(sw, p, &to);
    return NULL;
}

/* Handles a packet whose frame is yet to be parsed. Takes p. */
static void ingress(p4_switch *sw, phv *p)
{
    uint8_t data[PORT_METADATA_BYTES] = {0};
    phv *made = NULL;
    while ((p = ingress_once(sw, p, data, &made))) {
        TRACE(P4_TRACE_RESUBMIT, P4_NO_POINT, 0, 0, NULL, 0);
        const uint64_t chunks[8] = {get_resubmit_data0(p), get_resubmit_data1(p)};
        write_chunks(data, chunks, min32((uint32_t)get_resubmit_bytes(p), PORT_METADATA_BYTES));
        phv *q = successor(sw, p, p->base.frame);
        q->resubmitted = 1;
        packet_release(p);
        p = q;
    }
    ingress_all(sw, made);
}

/* Handles a packet that has come from its ingress port, together with those that it triggers. Takes p. */
static void enter(p4_switch *sw, phv *p)
{
    phv *made = NULL;
    if (IS_RECIRCULATION(p->ingress_port)) {
        const p4_frame *frame = p->base.frame;
        uint8_t context[CONTEXT_BYTES] = {0};
        memcpy(context, frame->data, min32(frame->data_len, PATTERN_BYTES));
        made = generate(sw, p, BY_RECIRCULATION, p->ingress_port >> 7 & 3, context);
    }
    ingress(sw, p);
    ingress_all(sw, made);
}

static void receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    enter(sw, packet_receive(sw, frame, port, now));
}

/* --- egress --------------------------------------------------------------------------------------------------------- */

/* Whether packets sent to the port enter ingress again. */
static int is_loopback(p4_switch *sw, uint32_t port)
{
    return IS_RECIRCULATION(port) || (port < 512 && port_cells(sw)[port].loopback);
}

/* Sends a frame to the wire or to ingress again. Takes p, which no longer owns the frame. */
static void leave(p4_switch *sw, phv *p, p4_frame *frame, p4_frame **sent)
{
    uint32_t port = p->base.egress_port;
    if (P4_UNLIKELY(!sw->env.loops && is_loopback(sw, port))) {
        p->base.frame = frame;
        if (!may_hop(p)) {
            drop(sw, p, port, P4_DROP_HOPS);
            return;
        }
        TRACE(P4_TRACE_RECIRCULATE, P4_NO_POINT, 0, 0, NULL, 0);
        phv *q = successor(sw, p, frame);
        packet_release(p);
        q->ingress_port = port;
        enter(sw, q);
        return;
    }
    sw->counts.transmitted++;
    TRACE(P4_TRACE_TRANSMIT, P4_NO_POINT, port, frame->wire_len, frame->data, frame->data_len);
    packet_release(p);
    *sent = frame;
}

/* Runs egress. Takes p; *sent is set to the frame that leaves, if there is one. */
static void egress(p4_switch *sw, phv *p, p4_tick now, p4_frame **sent)
{
    uint32_t port = p->base.egress_port;
    p->now = now;
    if (p->bypass) {
        leave(sw, p, p->base.frame, sent);
        return;
    }
    uint8_t spare[egress_parser_front_bytes], *front = egress_parser_front(p, spare);
    p->ingress_len = p->base.frame->wire_len + FCS_BYTES;
    if (egress_parser_front_read == egress_parser_front_bytes) {
        write_egress_front(sw, p, p->ingress_len, front);
    } else {
        write_egress_front(sw, p, p->ingress_len, spare);
        memcpy(front, spare, egress_parser_front_read);
    }
    run_egress_parser(sw, p, front);
    set_egress_parser_err(p, parser_err(p));
    set_egress_global_tstamp(p, nanoseconds(sw, now));
    NOTE(p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 1, 0, NULL, 0);
    run_egress(sw, p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 1, 1, NULL, 0);
    p->exit = 0;
    if (CAN_LOOP && P4_UNLIKELY(p->endless)) {
        drop(sw, p, port, P4_DROP_ENDLESS);
        return;
    }
    run_egress_deparser(sw, p);
    control_flow(sw, p, (uint32_t)get_egress_adv_flow_ctl(p));
    egress_deparser_tell(sw, p);
    uint32_t dropped = (uint32_t)get_egress_drop_ctl(p);
    const int mirrored = get_eg_mirror_emitted(p) && get_egress_mirror_written(p) && !(dropped & DROP_MIRROR);
    p4_frame *incoming = NULL;
    if (P4_UNLIKELY(mirrored) && TOFINO == 2 && !get_egress_mirror_io_select(p)) {
        incoming = frame_copy(sw, p->base.frame);
    }
    p4_frame *frame = deparse(sw, p, egress_deparser_bytes(p), egress_deparser_write);
    p->base.frame = frame;
    if (P4_UNLIKELY(mirrored)) {
        const uint64_t chunks[] = CHUNKS(eg_mirror);
        mirror(sw, p, incoming ? incoming : frame_copy(sw, frame), (uint32_t)get_eg_mirror_session(p), chunks,
               (uint32_t)get_eg_mirror_bytes(p), (int)get_egress_mirror_deflect(p));
    }
    if (P4_UNLIKELY(dropped & DROP_PACKET)) {
        drop(sw, p, port, P4_DROP_PROGRAM_EGRESS);
        return;
    }
    frame_cut(frame, (uint32_t)get_egress_mtu_trunc_len(p));
    leave(sw, p, frame, sent);
}

/* --- timers --------------------------------------------------------------------------------------------------------- */

#define NOT_DUE UINT64_MAX

/* The time of an application's timer, at least one tick. */
static p4_tick timer_ticks(const p4_switch *sw, const object_state_pktgen *app)
{
    p4_tick ticks = app->timer_ns / sw->tick_ns;
    return ticks ? ticks : 1;
}

/* Asks for a call at the time of the earliest application, after setting the times of those that have just been
 * enabled. */
static void set_timers(p4_switch *sw)
{
    p4_tick next = NOT_DUE, now = sw->env.now(sw->env.ctx);
    for (uint32_t number = 0; number < APPLICATIONS; number++) {
        object_state_pktgen *app = &pktgen_cells(sw)[number];
        if (!app->enabled || !IS_TIMED(app->trigger))
            app->due = 0;
        else if (!app->due)
            app->due = now + timer_ticks(sw, app);
        if (app->due && app->due < next)
            next = app->due;
    }
    if (next != NOT_DUE)
        sw->env.set_timer(sw->env.ctx, next);
}

/* Whether a port that goes down triggers an application. */
static int watches(p4_switch *sw, uint32_t number, uint32_t port)
{
    const object_state_pktgen *app = &pktgen_cells(sw)[number];
    if (!app->enabled || app->trigger != BY_PORT_DOWN)
        return 0;
#if TOFINO == 1
    (void)port;
    return 1;
#else
    return port_mask_cells(sw)[app->value[0] & 1].mask[(port & 0x7f) / 64] >> (port & 63) & 1;
#endif
}

/* Adds the packets that a port has generated by going down, as generate_from does. */
static p4_packet **generate_for_port(p4_switch *sw, uint32_t port, p4_tick now, p4_packet **last)
{
    uint8_t context[CONTEXT_BYTES] = {0};
    p4_st16(context + 2, port);
    for (uint32_t number = 0; number < APPLICATIONS; number++)
        if (watches(sw, number, port))
            last = generate_from(sw, number, NULL, now, port >> 7 & 3, context, last);
    return last;
}

static p4_shaper shaper_of(int is_on, uint32_t rate, uint32_t burst, uint32_t packets)
{
    uint64_t unit = packets ? 1 : 1000;
    return (p4_shaper){.rate = is_on ? rate * unit : 0, .burst = burst, .packets = packets};
}

/* Adds the token buckets of a port and its queues. Returns whether there is one. */
static int add_shapers(p4_switch *sw, uint32_t port, p4_schedule *schedule)
{
    const object_state_port_shaper *all = &port_shaper_cells(sw)[port];
    p4_shaper *limit = &schedule->limit[P4_SCHEDULED];
    *limit = shaper_of(all->limited, all->max_rate, all->max_burst, all->packets);
    int is_shaped = limit->rate != 0;
    for (uint32_t queue = 0; queue < P4_SCHEDULED; queue++) {
        const object_state_queue_shaper *cell = &queue_shaper_cells(sw)[P4_SCHEDULED * (port & 0x7f) + queue];
        limit = &schedule->limit[queue];
        p4_shaper *guaranteed = &schedule->guaranteed[queue];
        *limit = shaper_of(cell->limited, cell->max_rate, cell->max_burst, cell->packets);
        *guaranteed = shaper_of(cell->guaranteed, cell->min_rate, cell->min_burst, cell->packets);
        schedule->guaranteed_priority[queue] = (uint8_t)min32(cell->min_priority, MAX_PRIORITY);
        is_shaped |= limit->rate || guaranteed->rate;
    }
    return is_shaped;
}

/* Passes on the schedules of the ports that the pipe runs. If it runs those of several pipes of a chip, ports with the
 * same number in their pipes have the same schedule. */
static void set_schedules(p4_switch *sw)
{
    if (!sw->env.schedule)
        return;
    for (uint32_t port = 0; port < 512; port++) {
        if (p4_pipe_of(sw, port) != sw)
            continue;
        const object_state_schedule *cell = &schedule_cells(sw)[port & 0x7f];
        p4_schedule schedule = {.disabled = cell->disabled};
        int is_set = add_shapers(sw, port, &schedule) || cell->disabled;
        for (uint32_t queue = 0; queue < P4_SCHEDULED; queue++) {
            uint8_t priority = (uint8_t)(cell->priorities[queue / 8] >> 8 * (queue % 8));
            schedule.priority[queue] = (uint8_t)min32(priority ? priority - 1u : queue, MAX_PRIORITY);
            schedule.weight[queue] = (uint16_t)(cell->weights[queue / 4] >> 16 * (queue % 4));
            is_set |= priority || schedule.weight[queue];
        }
        if (sw->env.schedule(sw->env.ctx, port, is_set ? &schedule : NULL))
            sw->env.set_timer(sw->env.ctx, sw->env.now(sw->env.ctx));
    }
}

/* Sets schedules and timers anew after a cell was written. Ports that have gone down are due at once if they trigger an
 * application, and are ignored otherwise. */
static void state_changed(p4_switch *sw)
{
    for (uint32_t port = 0; port < 512; port++) {
        object_state_port *at = &port_cells(sw)[port];
        if (P4_LIKELY(at->went_down != WENT_DOWN))
            continue;
        int watched = 0;
        for (uint32_t number = 0; number < APPLICATIONS && p4_pipe_of(sw, port) == sw; number++)
            watched |= watches(sw, number, port);
        if (watched)
            sw->env.set_timer(sw->env.ctx, sw->env.now(sw->env.ctx));
        else
            at->went_down = SEEN_DOWN;
    }
    set_schedules(sw);
    set_timers(sw);
}

/* Generates the packets of the applications whose time has come, and of those that ports trigger by going down. */
static void timer(p4_switch *sw, p4_tick now)
{
    static const uint8_t context[CONTEXT_BYTES];
    p4_packet *first = NULL, **last = &first;
    int watched = 0;
    for (uint32_t number = 0; number < APPLICATIONS; number++) {
        object_state_pktgen *app = &pktgen_cells(sw)[number];
        watched |= app->enabled && app->trigger == BY_PORT_DOWN;
        if (!app->due || app->due > now)
            continue;
        app->due = app->trigger == BY_PERIOD ? app->due + timer_ticks(sw, app) : NOT_DUE;
        last = generate_from(sw, number, NULL, now, sw->pipe, context, last);
    }
    for (uint32_t port = 0; watched && port < 512; port++) {
        object_state_port *at = &port_cells(sw)[port];
        if (P4_LIKELY(at->went_down != WENT_DOWN))
            continue;
        at->went_down = SEEN_DOWN;
        last = generate_for_port(sw, port, now, last);
    }
    ingress_all(sw, (phv *)(void *)first);
    set_timers(sw);
}

/* --- ghost thread --------------------------------------------------------------------------------------------------- */

#if HAS_WATCHER
#define QLENGTH_MAX 0x3ffff

/* The number of a port's queue among all queues of its pipe: as for advanced flow control, a MAC has 8 ports with 16
 * queues each. */
static uint32_t queue_of_pipe(uint32_t port, uint32_t queue)
{
    enum { QUEUES = 16, QUEUES_OF_MAC = 128 };
    return (port >> 3 & 15) * QUEUES_OF_MAC + min32((port & 7) * QUEUES + queue, QUEUES_OF_MAC - 1);
}

/* Runs the ghost thread for both values of ping_pong, since a program keeps a copy of its registers for each. */
static void queue_changed(p4_switch *sw, const p4_packet *packet, uint32_t queue, uint32_t cells, p4_tick now)
{
    uint32_t port = packet->egress_port, number = queue_of_pipe(port, queue);
    for (uint32_t ping_pong = 0; ping_pong < 2; ping_pong++) {
        phv *p = packet_new(sw, packet->frame);
        uint8_t bytes[4];
        p4_st32(bytes, ping_pong << 31 | min32(cells, QLENGTH_MAX) << 13 | number << 2 | (port >> 7 & 3));
        p->now = now;
        NUMBER(p, ((const phv *)(const void *)packet)->number, ((const phv *)(const void *)packet)->copy);
        set_watched(p, bytes);
        NOTE(p);
        TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 2, 0, NULL, 0);
        run_ghost(sw, p);
        TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 2, 1, NULL, 0);
        packet_release(p);
    }
}
#endif

static p4_frame *transmit(p4_switch *sw, p4_packet *packet, p4_tick now)
{
    phv *p = (phv *)(void *)packet;
    p4_frame *sent = NULL;
    __builtin_prefetch(p->base.frame, 1); /* a packet that has waited is not in the cache, and neither is its frame */
    TRACE(P4_TRACE_DEQUEUE, P4_NO_POINT, packet->egress_port, packet->deq_depth, NULL, 0);
    egress(sw, p, now, &sent);
    return sent;
}
