/* A transport over shared memory: every worker has a desk with its notice, and a piece of memory for each of the
 * others.
 *
 * All of it exists twice, for even and odd meetings. So one meeting is enough for each exchange: a worker overwrites
 * what it wrote two meetings ago, which all had read before the last meeting. Writers borrow the pieces, so that
 * nothing is copied. Data that do not fit into them take several meetings.
 */
#include "transport.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <linux/futex.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define LINE 64
#define PIECE_BYTES (UINT64_C(1) << 24)  /* bytes from worker to worker, ... */
#define PIECES_BYTES (UINT64_C(1) << 28) /* ... and at most this in all, where there are many */
#define LEAST_PIECE_BYTES (UINT64_C(1) << 12)
#define LEAST_SPINS_SHARE 32 /* of the most */

typedef struct hall {
    _Atomic uint32_t round __attribute__((aligned(LINE)));
    _Atomic uint32_t arrived __attribute__((aligned(LINE)));
    _Atomic uint32_t asleep __attribute__((aligned(LINE)));
} hall;

typedef struct desk {
    char notice[TRANSPORT_NOTICE_BYTES];
    uint64_t lengths[]; /* total size of the data for each worker */
} desk;

typedef struct shared_memory {
    transport t;
    hall *hall;
    char *desks, *pieces;
    uint64_t desk_bytes, piece_bytes;
    buffer *came; /* by rank: data that was too long to be read in place */
    uint32_t odd;
    uint32_t spins, most_spins; /* polls before it sleeps: fewer after a wait that polling did not end */
    int (*pause)(void *owner, const uint32_t *word, uint32_t value);
    void *owner;
} shared_memory;

static uint64_t desk_bytes(uint32_t count)
{
    return (sizeof(desk) + count * sizeof(uint64_t) + LINE - 1) / LINE * LINE;
}

static uint64_t heads_bytes(uint32_t count)
{
    return sizeof(hall) + 2 * count * desk_bytes(count);
}

uint64_t shared_memory_bytes(uint32_t count)
{
    uint64_t pieces = 2ull * count * count, piece = PIECES_BYTES / pieces / LINE * LINE;
    piece = piece > PIECE_BYTES ? PIECE_BYTES : piece < LEAST_PIECE_BYTES ? LEAST_PIECE_BYTES : piece;
    return heads_bytes(count) + pieces * piece;
}

static desk *desk_of(const shared_memory *s, uint32_t rank)
{
    return (desk *)(void *)(s->desks + (s->odd * s->t.count + rank) * s->desk_bytes);
}

static char *piece_of(const shared_memory *s, uint32_t from, uint32_t to)
{
    return s->pieces + ((s->odd * s->t.count + from) * s->t.count + to) * s->piece_bytes;
}

void shared_memory_sleep(const uint32_t *word, uint32_t value, uint32_t ms)
{
    struct timespec time = {.tv_nsec = ms * 1000000L};
#ifdef __linux__
    syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
#else
    (void)word, (void)value;
    time.tv_nsec = 50000;
    nanosleep(&time, NULL);
#endif
}

static void wake(const _Atomic uint32_t *word)
{
#ifdef __linux__
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
#else
    (void)word;
#endif
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static int meet(shared_memory *s)
{
    hall *h = s->hall;
    uint32_t round = atomic_load(&h->round);
    if (atomic_fetch_add(&h->arrived, 1) + 1 == s->t.count) {
        atomic_store(&h->arrived, 0);
        atomic_store(&h->round, round + 1);
        if (atomic_load(&h->asleep))
            wake(&h->round);
        return 0;
    }
    for (uint32_t i = 0; i < s->spins; i++) {
        if (atomic_load_explicit(&h->round, memory_order_acquire) != round) {
            s->spins = s->spins < s->most_spins / 2 ? 2 * s->spins : s->most_spins;
            return 0;
        }
        relax();
    }
    /* Another process may occupy the other worker's processor, and may need this one's, too. */
    s->spins = s->spins / 2 > s->most_spins / LEAST_SPINS_SHARE ? s->spins / 2 : s->most_spins / LEAST_SPINS_SHARE;
    int status = 0;
    atomic_fetch_add(&h->asleep, 1);
    while (!status && atomic_load(&h->round) == round)
        status = s->pause(s->owner, (const uint32_t *)(const void *)&h->round, round);
    atomic_fetch_sub(&h->asleep, 1);
    return status;
}

/* Lends the pieces of the next exchange for writing. They were read before the last meeting. */
static void lend_pieces(shared_memory *s, buffer *out)
{
    for (uint32_t to = 0; to < s->t.count; to++) {
        if (!out[to].lent)
            free(out[to].data);
        out[to] = (buffer){.data = piece_of(s, s->t.rank, to), .cap = s->piece_bytes, .lent = true};
    }
}

/* The length of the longest of all outgoing messages. */
static uint64_t longest_of(const shared_memory *s)
{
    uint64_t longest = 0;
    for (uint32_t from = 0; from < s->t.count; from++)
        for (uint32_t to = 0; to < s->t.count; to++)
            longest = longest > desk_of(s, from)->lengths[to] ? longest : desk_of(s, from)->lengths[to];
    return longest;
}

static uint64_t part_of(const shared_memory *s, uint64_t len, uint64_t at)
{
    return len <= at ? 0 : len - at < s->piece_bytes ? len - at : s->piece_bytes;
}

/* Data that fit into the pieces are read in place; if some do not fit, all are transferred part by part. */
static int exchange(transport *t, const void *notice, uint32_t size, void *notices, buffer *out, arrived *in)
{
    shared_memory *s = (shared_memory *)t;
    uint64_t longest = 0;
    for (uint64_t at = 0; !at || at < longest; at += s->piece_bytes) {
        desk *own = desk_of(s, t->rank);
        memcpy(own->notice, notice, size);
        for (uint32_t to = 0; to < t->count; to++) {
            uint64_t len = own->lengths[to] = out[to].len;
            if (!out[to].lent && len > at)
                memcpy(piece_of(s, t->rank, to), out[to].data + at, part_of(s, len, at));
        }
        if (meet(s) < 0)
            return -1;
        longest = longest_of(s);
        for (uint32_t from = 0; from < t->count; from++) {
            const desk *d = desk_of(s, from);
            uint64_t len = d->lengths[t->rank], part = part_of(s, len, at);
            memcpy((char *)notices + from * size, d->notice, size);
            in[from] = (arrived){piece_of(s, from, t->rank), len};
            if (longest <= s->piece_bytes)
                continue;
            buffer *came = &s->came[from];
            came->len = at ? came->len : 0;
            if (part)
                memcpy(buffer_add(came, part), in[from].data, part);
            in[from].data = came->data;
        }
        s->odd ^= 1;
    }
    lend_pieces(s, out);
    return 0;
}

static void close_memory(transport *t)
{
    shared_memory *s = (shared_memory *)t;
    for (uint32_t from = 0; from < t->count; from++)
        free(s->came[from].data);
    free(s->came);
    free(s);
}

transport *shared_memory_open(void *memory, uint64_t bytes, uint32_t rank, uint32_t count, uint32_t spins,
                              int (*pause)(void *owner, const uint32_t *word, uint32_t value), void *owner)
{
    shared_memory *s = calloc(1, sizeof *s);
    buffer *came = calloc(count, sizeof *came);
    if (!s || !came) {
        free(s);
        free(came);
        return NULL;
    }
    s->came = came;
    s->t = (transport){.rank = rank, .count = count, .exchange = exchange, .close = close_memory};
    s->hall = memory;
    s->desks = (char *)memory + sizeof(hall);
    s->desk_bytes = desk_bytes(count);
    s->pieces = (char *)memory + heads_bytes(count);
    s->piece_bytes = (bytes - heads_bytes(count)) / (2ull * count * count) / LINE * LINE;
    s->spins = s->most_spins = spins;
    s->pause = pause;
    s->owner = owner;
    return &s->t;
}
