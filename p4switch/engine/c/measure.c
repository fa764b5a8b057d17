#include "measure.h"

#include "allocate.h"

#include <time.h>

#define ROOM 256 /* for headers that a pipeline adds */

typedef struct {
    p4_packet *queue, **last;
    p4_frame *free;
} bench;

static p4_frame *frame_new(void *ctx, uint32_t cap)
{
    bench *b = ctx;
    p4_frame *frame = b->free;
    if (frame && frame->cap >= cap) {
        b->free = frame->next;
        return frame;
    }
    frame = must_alloc(sizeof *frame + cap + ROOM);
    frame->cap = cap + ROOM;
    return frame;
}

static void frame_free(void *ctx, p4_frame *frame)
{
    bench *b = ctx;
    frame->next = b->free;
    b->free = frame;
}

static void enqueue(void *ctx, p4_packet *packet)
{
    bench *b = ctx;
    packet->next = NULL;
    *b->last = packet;
    b->last = &packet->next;
}

static void drop(void *ctx, uint32_t port, uint32_t tag, uint32_t len, p4_drop_reason reason)
{
    (void)ctx, (void)port, (void)tag, (void)len, (void)reason;
}

static void digest(void *ctx, p4_switch *of, uint32_t list_id, const uint8_t *data, size_t len)
{
    (void)ctx, (void)of, (void)list_id, (void)data, (void)len;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double p4_measure(p4_switch **switches, size_t n_switches, uint32_t port, const p4_bytes *frames, size_t n,
                  uint32_t rounds, uint64_t *sent)
{
    bench b = {NULL, NULL, NULL};
    b.last = &b.queue;
    p4_env env = {
        .ctx = &b, .frame_new = frame_new, .frame_free = frame_free, .enqueue = enqueue, .drop = drop, .digest = digest,
    };
    for (size_t i = 0; i < n_switches; i++)
        p4_switch_set_env(switches[i], &env);
    *sent = 0;
    uint32_t longest = 0;
    size_t turn = 0;
    for (size_t i = 0; i < n; i++)
        longest = frames[i].len > longest ? (uint32_t)frames[i].len : longest;
    double begin = cpu_seconds();
    p4_tick now = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < n; i++) {
            p4_frame *frame = frame_new(&b, longest);
            frame->next = NULL;
            frame->tag = 0;
            frame->wire_len = frame->data_len = (uint32_t)frames[i].len;
            memcpy(frame->data, frames[i].data, frames[i].len);
            now += 100;
            p4_switch *sw = switches[turn];
            turn = turn + 1 < n_switches ? turn + 1 : 0;
            p4_switch_receive(sw, frame, port, now);
            for (p4_packet *packet; (packet = b.queue);) {
                b.queue = packet->next;
                if (!b.queue)
                    b.last = &b.queue;
                packet->enq_time = now;
                packet->deq_time = now;
                packet->enq_depth = packet->deq_depth = 0;
                p4_frame *out = p4_switch_transmit(sw, packet, now);
                if (out) {
                    frame_free(&b, out);
                    ++*sent;
                }
            }
        }
    }
    double seconds = cpu_seconds() - begin;
    while (b.free) {
        p4_frame *next = b.free->next;
        free(b.free);
        b.free = next;
    }
    return seconds;
}
