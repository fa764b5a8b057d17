#include "process.h"

#include "runtime.h"

#include <stdlib.h>
#include <string.h>

/* An E2E clone session with several replicas can breed packets faster than they leave. */
#define MAX_QUEUED 65536
#define MAX_SAID 4096
#define MAX_LEARNT 65536 /* digests that have not been taken yet */
#define MAX_TRACED_BYTES (256u << 20)

struct p4_fifo {
    p4_switch *sw;
    p4_env env;
    p4_packet *first, **last;
    p4_digest *digests, **last_digest;
    uint32_t learnt;
    uint64_t lost_digests;
    p4_said *said, **last_said;
    uint32_t said_count;
    uint64_t said_lost;
    uint32_t queued;
    int64_t depth; /* queue depth reported to every packet; negative: the actual depth */
    uint64_t lost;
    p4_traced *traced, **last_traced;
    size_t traced_bytes;
    uint64_t traced_lost;
};

static p4_frame *frame_new(void *ctx, uint32_t cap)
{
    (void)ctx;
    p4_frame *frame = must_alloc(sizeof *frame + cap);
    frame->next = NULL;
    frame->cap = cap;
    frame->tag = 0;
    return frame;
}

static void frame_free(void *ctx, p4_frame *frame)
{
    (void)ctx;
    free(frame);
}

static void enqueue(void *ctx, p4_packet *packet)
{
    p4_fifo *fifo = ctx;
    if (fifo->queued == MAX_QUEUED) {
        fifo->lost++;
        p4_packet_free(fifo->sw, packet);
        return;
    }
    packet->next = NULL;
    packet->enq_depth = fifo->depth < 0 ? fifo->queued : (uint32_t)fifo->depth;
    *fifo->last = packet;
    fifo->last = &packet->next;
    fifo->queued++;
}

static void drop(void *ctx, uint32_t port, uint32_t tag, uint32_t len, p4_drop_reason reason)
{
    (void)ctx, (void)port, (void)tag, (void)len, (void)reason;
}

static void digest(void *ctx, p4_switch *of, uint32_t list_id, const uint8_t *data, size_t len)
{
    (void)ctx;
    p4_switch_learn(of, list_id, data, len);
}

void p4_fifo_learn(p4_fifo *fifo, uint32_t list_id, const uint8_t *data, size_t len)
{
    p4_digest *d = fifo->learnt < MAX_LEARNT ? malloc(sizeof *d + len) : NULL;
    if (!d) {
        fifo->lost_digests++;
        return;
    }
    d->next = NULL;
    d->list_id = list_id;
    d->len = len;
    if (len)
        memcpy(d->data, data, len);
    *fifo->last_digest = d;
    fifo->last_digest = &d->next;
    fifo->learnt++;
}

static void log_text(void *ctx, int failed, const char *text)
{
    p4_fifo *fifo = ctx;
    size_t size = strlen(text) + 1;
    p4_said *s = fifo->said_count < MAX_SAID ? malloc(sizeof *s + size) : NULL;
    if (!s) {
        fifo->said_lost++;
        return;
    }
    s->next = NULL;
    s->failed = failed;
    memcpy(s->text, text, size);
    *fifo->last_said = s;
    fifo->last_said = &s->next;
    fifo->said_count++;
}

p4_fifo *p4_fifo_new(p4_switch *sw)
{
    p4_fifo *fifo = calloc(1, sizeof *fifo);
    if (!fifo)
        return NULL;
    fifo->sw = sw;
    fifo->depth = -1;
    fifo->env = (p4_env){
        .ctx = fifo, .frame_new = frame_new, .frame_free = frame_free, .enqueue = enqueue, .drop = drop,
        .digest = digest, .log = log_text,
    };
    fifo->last = &fifo->first;
    fifo->last_digest = &fifo->digests;
    fifo->last_said = &fifo->said;
    fifo->last_traced = &fifo->traced;
    return fifo;
}

void p4_fifo_set_depth(p4_fifo *fifo, int64_t depth) { fifo->depth = depth; }

uint64_t p4_fifo_lost(const p4_fifo *fifo) { return fifo->lost; }

const p4_env *p4_fifo_env(p4_fifo *fifo) { return &fifo->env; }

static void trace(void *ctx, const p4_trace_event *event)
{
    p4_fifo *fifo = ctx;
    size_t size = sizeof(p4_traced) + event->size;
    p4_traced *t = fifo->traced_bytes + size <= MAX_TRACED_BYTES ? malloc(size) : NULL;
    if (!t) {
        fifo->traced_lost++;
        return;
    }
    t->next = NULL;
    t->event = *event;
    t->event.data = t->data;
    if (event->size)
        memcpy(t->data, event->data, event->size);
    *fifo->last_traced = t;
    fifo->last_traced = &t->next;
    fifo->traced_bytes += size;
}

void p4_fifo_set_tracing(p4_fifo *fifo, int on)
{
    fifo->env.trace = on ? trace : NULL;
    if (fifo->sw->env.ctx == fifo)
        p4_switch_set_env(fifo->sw, &fifo->env);
}

static p4_packet *take(p4_fifo *fifo)
{
    p4_packet *packet = fifo->first;
    if (packet) {
        fifo->first = packet->next;
        if (!fifo->first)
            fifo->last = &fifo->first;
        fifo->queued--;
    }
    return packet;
}

void p4_fifo_clear(p4_fifo *fifo)
{
    for (p4_packet *packet; (packet = take(fifo));)
        p4_packet_free(fifo->sw, packet);
}

p4_digest *p4_fifo_digests(p4_fifo *fifo)
{
    p4_digest *first = fifo->digests;
    fifo->digests = NULL;
    fifo->last_digest = &fifo->digests;
    fifo->learnt = 0;
    return first;
}

uint64_t p4_fifo_lost_digests(const p4_fifo *fifo) { return fifo->lost_digests; }

p4_said *p4_fifo_said(p4_fifo *fifo, uint64_t *lost)
{
    p4_said *first = fifo->said;
    *lost = fifo->said_lost;
    fifo->said = NULL;
    fifo->last_said = &fifo->said;
    fifo->said_count = 0;
    fifo->said_lost = 0;
    return first;
}

p4_traced *p4_fifo_traced(p4_fifo *fifo, uint64_t *lost)
{
    p4_traced *first = fifo->traced;
    *lost = fifo->traced_lost;
    fifo->traced = NULL;
    fifo->last_traced = &fifo->traced;
    fifo->traced_bytes = 0;
    fifo->traced_lost = 0;
    return first;
}

void p4_fifo_delete(p4_fifo *fifo)
{
    p4_fifo_clear(fifo);
    for (p4_digest *d = p4_fifo_digests(fifo), *next; d; d = next) {
        next = d->next;
        free(d);
    }
    uint64_t lost;
    for (p4_said *s = p4_fifo_said(fifo, &lost), *next; s; s = next) {
        next = s->next;
        free(s);
    }
    for (p4_traced *t = p4_fifo_traced(fifo, &lost), *next; t; t = next) {
        next = t->next;
        free(t);
    }
    free(fifo);
}

int p4_fifo_inject(p4_fifo *fifo, uint32_t port, const uint8_t *data, uint32_t data_len, uint32_t wire_len, p4_tick now)
{
    p4_frame *frame = malloc(sizeof *frame + data_len);
    if (!frame)
        return -1;
    *frame = (p4_frame){NULL, wire_len, data_len, data_len, 0};
    if (data_len)
        memcpy(frame->data, data, data_len);
    p4_switch_receive(fifo->sw, frame, port, now);
    return 0;
}

p4_frame *p4_fifo_next(p4_fifo *fifo, uint32_t *port, p4_tick now)
{
    for (p4_packet *packet; (packet = take(fifo));) {
        packet->enq_time = packet->deq_time = now;
        packet->deq_depth = fifo->depth < 0 ? fifo->queued : (uint32_t)fifo->depth;
        *port = packet->egress_port;
        p4_frame *frame = p4_switch_transmit(fifo->sw, packet, now);
        if (frame)
            return frame;
    }
    return NULL;
}
