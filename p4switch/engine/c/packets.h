/* Packets of a generated pipeline, independent of its architecture: their memory, copies and frames.
 *
 * Every generated pipeline includes it once, after its packet struct and its functions, and before the packet path of
 * the architecture.
 */

#define NO_TRUNCATION UINT32_MAX

/* --- packets ------------------------------------------------------------------------------------------------------- */

/* State shared by all packets that derive from one frame, whose total number of hops is limited. */
struct family {
    family *next;
    uint32_t members;
    uint32_t hops; /* resubmissions, recirculations and clonings so far */
#ifdef P4_TRACE
    uint32_t copies;
#endif
};

/* Unused packets of this program, from any switch. */
static phv *pool;
static family *families;

#ifdef __SANITIZE_ADDRESS__
#define PACKETS_TOGETHER 1 /* so that no access out of bounds goes unnoticed */
#else
#define PACKETS_TOGETHER 64
#endif

/* Allocates more of them side by side, with the part that a queue reads on a cache line of its own at the start. */
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

/* The family of p, created now if it has none. */
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

/* Adds q, made from p, to the family of p. */
static void family_join(phv *q, phv *p)
{
    q->family = family_of(p);
    q->family->members++;
    NUMBER(q, p->number, p->copy);
}

/* Counts one more hop for the family of p; returns whether it is allowed. */
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

/* Counts and traces a packet that is discarded; it would have `len` bytes. */
static void packet_drop(p4_switch *sw, P4_UNUSED const phv *p, uint32_t port, uint32_t len, p4_drop_reason reason)
{
    sw->counts.dropped++;
    TRACE(P4_TRACE_DROP, P4_NO_POINT, reason, 0, NULL, 0);
    sw->env.drop(sw->env.ctx, port, p->base.tag, len, reason);
}

static void frame_truncate(p4_frame *frame, uint32_t most)
{
    frame->wire_len = min32(frame->wire_len, most);
    frame->data_len = min32(frame->data_len, most);
}

/* Makes a packet of a frame that arrives at a port. */
static phv *packet_receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    phv *p = packet_new(sw, frame);
    sw->counts.received++;
    p->now = now;
    p->ingress_port = port;
    NUMBER(p, frame_number(sw), 0);
    TRACE(P4_TRACE_RECEIVE, P4_NO_POINT, port, frame->wire_len, frame->data, frame->data_len);
    return p;
}

/* Functions of the packet path: `drop` counts and frees p; `enqueue` hands p to the queues. */
static void drop(p4_switch *sw, phv *p, uint32_t port, p4_drop_reason reason);
static void enqueue(p4_switch *sw, phv *p, uint32_t port);

/* Makes one packet for each replica, which `set_instance` tells its number. Takes p. Replicas beyond p are counted in
 * made. */
P4_INLINE P4_UNUSED void replicate(p4_switch *sw, phv *p, const p4_group *group, uint64_t *made,
                                   void (*set_instance)(phv *, uint64_t))
{
    if (!group || !group->count) {
        drop(sw, p, p->ingress_port, P4_DROP_NO_PORT);
        return;
    }
    *made += group->count - 1;
    for (uint32_t i = 0; i < group->count; i++) {
        phv *q = i + 1 < group->count ? packet_copy(sw, p) : p;
        set_instance(q, group->replicas[i].instance);
        enqueue(sw, q, group->replicas[i].port);
    }
}

/* Makes a frame from `headers` bytes, which `write` writes, and the part of the old frame that was not parsed. Takes
 * the frame of p, which may become the result. */
P4_INLINE P4_UNUSED p4_frame *deparse(p4_switch *sw, phv *p, uint32_t headers, void (*write)(const phv *, uint8_t *))
{
    p4_frame *frame = p->base.frame;
    uint32_t payload = payload_len(p), parsed = p->parsed;
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
    write(p, frame->data);
    frame->wire_len = headers + payload;
    frame->data_len = headers + present;
    p->base.frame = NULL;
    return frame;
}

/* Hands p to the traffic manager. */
P4_INLINE P4_UNUSED void packet_enqueue(p4_switch *sw, phv *p)
{
    sw->env.enqueue(sw->env.ctx, P4_LIKELY(!sw->pipes) ? &p->base : p4_cross(sw, &p->base));
}

/* See p4_program. The frame and the place in the family move to the packet that takes over. */
static p4_packet *take_over(p4_switch *sw, const p4_packet *packet)
{
    phv *q = packet_new(sw, packet->frame);
    memcpy((void *)q, packet, offsetof(phv, m));
    q->entry = NULL;
    return &q->base;
}

static void release(p4_packet *packet)
{
    phv *p = (phv *)(void *)packet;
    p->family = NULL;
    packet_release(p);
}

static void free_packet(p4_switch *sw, p4_packet *packet) { packet_delete(sw, (phv *)(void *)packet); }
