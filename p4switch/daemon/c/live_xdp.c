/* Sending by AF_XDP in copy mode: the kernel builds packets from shared memory, one batch per system call, whereas
 * sendmmsg reads a message header, a vector and the headers of each frame. AF_XDP needs no XDP program and does not
 * change the interface. AF_PACKET still receives frames, and sends those that do not fit in here. Everything is sent
 * when the system call returns, so the two may follow one another in any order. */
#include "live.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHUNKS 256    /* frames between here and the receiving end's socket */
#define MAX_CHUNK_BYTES 4096
#define BATCH 32      /* no kernel sends fewer in one call */
#define FILL_SLOTS 2  /* the ring has to exist, but nothing is received */
#define BIND_TRIES 40 /* the kernel takes a moment to release the queue of a process that has ended */
#define BIND_WAIT_NS 5000000
#define BUSY_TRIES 100

typedef struct ring {
    uint32_t *producer, *consumer;
    void *slots;
    void *mapping;
    size_t bytes;
} ring;

struct live_xdp {
    int fd;
    uint8_t *chunks;
    uint32_t chunk_bytes, max_bytes;
    ring sent, done;
    uint32_t free_count;
    uint64_t free[CHUNKS]; /* offsets of chunks */
};

static int map_ring(const live_xdp *x, ring *r, const struct xdp_ring_offset *at, size_t slot_bytes, uint32_t slots,
                    off_t page)
{
    r->bytes = at->desc + slots * slot_bytes;
    uint8_t *map = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, x->fd, page);
    if (map == MAP_FAILED)
        return -1;
    *r = (ring){(uint32_t *)(map + at->producer), (uint32_t *)(map + at->consumer), map + at->desc, map, r->bytes};
    return 0;
}

static int set_up(live_xdp *x, const char *interface, uint32_t mtu)
{
    uint32_t chunks = CHUNKS, batch = BATCH, fill = FILL_SLOTS;
    struct xdp_mmap_offsets at;
    socklen_t len = sizeof at;
    x->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (x->fd < 0)
        return -1;
    x->max_bytes = mtu + ETH_HLEN;
    for (x->chunk_bytes = 2048; x->chunk_bytes < x->max_bytes && x->chunk_bytes < MAX_CHUNK_BYTES;)
        x->chunk_bytes *= 2;
    if (x->max_bytes > x->chunk_bytes)
        x->max_bytes = x->chunk_bytes;
    void *memory = mmap(NULL, (size_t)CHUNKS * x->chunk_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    x->chunks = memory;
    for (uint32_t i = 0; i < CHUNKS; i++)
        x->free[x->free_count++] = (uint64_t)i * x->chunk_bytes;
    struct xdp_umem_reg area = {.addr = (uintptr_t)memory, .len = (uint64_t)CHUNKS * x->chunk_bytes,
                                .chunk_size = x->chunk_bytes};
    if (setsockopt(x->fd, SOL_XDP, XDP_UMEM_REG, &area, sizeof area) < 0
        || setsockopt(x->fd, SOL_XDP, XDP_UMEM_FILL_RING, &fill, sizeof fill) < 0
        || setsockopt(x->fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &chunks, sizeof chunks) < 0
        || setsockopt(x->fd, SOL_XDP, XDP_TX_RING, &batch, sizeof batch) < 0
        || getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &len) < 0
        || map_ring(x, &x->done, &at.cr, sizeof(uint64_t), CHUNKS, (off_t)XDP_UMEM_PGOFF_COMPLETION_RING) < 0
        || map_ring(x, &x->sent, &at.tx, sizeof(struct xdp_desc), BATCH, XDP_PGOFF_TX_RING) < 0)
        return -1;
    struct sockaddr_xdp address = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY,
                                   .sxdp_ifindex = if_nametoindex(interface)};
    for (int tries = 1; bind(x->fd, (struct sockaddr *)&address, sizeof address) < 0; tries++) {
        if (errno != EBUSY || tries == BIND_TRIES)
            return -1;
        nanosleep(&(struct timespec){0, BIND_WAIT_NS}, NULL);
    }
    return 0;
}

live_xdp *live_xdp_open(const char *interface, uint32_t mtu)
{
    live_xdp *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->fd = -1;
    if (set_up(x, interface, mtu) < 0) {
        int error = errno;
        live_xdp_close(x);
        errno = error;
        return NULL;
    }
    return x;
}

void live_xdp_close(live_xdp *x)
{
    if (!x)
        return;
    if (x->sent.mapping)
        munmap(x->sent.mapping, x->sent.bytes);
    if (x->done.mapping)
        munmap(x->done.mapping, x->done.bytes);
    if (x->fd >= 0)
        close(x->fd);
    if (x->chunks)
        munmap(x->chunks, (size_t)CHUNKS * x->chunk_bytes);
    free(x);
}

bool live_xdp_takes(const live_xdp *x, const p4_frame *frame)
{
    return frame->data_len >= ETH_HLEN && frame->data_len <= x->max_bytes;
}

/* Takes back the chunks of packets that the receiving end has finished with. */
static void reclaim(live_xdp *x)
{
    uint32_t end = __atomic_load_n(x->done.producer, __ATOMIC_ACQUIRE), at = *x->done.consumer;
    for (; at != end; at++)
        x->free[x->free_count++] = ((const uint64_t *)x->done.slots)[at & (CHUNKS - 1)];
    __atomic_store_n(x->done.consumer, at, __ATOMIC_RELEASE);
}

/* Sends the frames in the ring. 0: all of them are sent or lost. Each EBUSY means one frame dropped by the
 * interface. */
static int kick(live_xdp *x, uint64_t *lost)
{
    for (int tries = 0; sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0;) {
        if (errno == EBUSY)
            ++*lost;
        else if (errno != EAGAIN || ++tries == BUSY_TRIES)
            return -1;
        else
            sched_yield();
    }
    return 0;
}

/* Handles an interface that is down or has failed; AF_PACKET sends its frames from now on. Returns true if no frame
 * in the ring has left. */
static bool give_up(live_port *port, bool begun)
{
    bool untouched = !begun && (errno == ENETDOWN || errno == ENXIO);
    live_xdp_close(port->xdp);
    port->xdp = NULL;
    return untouched;
}

uint32_t live_xdp_send(live_port *port, p4_frame *const *frames, uint32_t count)
{
    live_xdp *x = port->xdp;
    struct xdp_desc *slots = x->sent.slots;
    uint32_t handled = 0;
    for (reclaim(x); handled < count && x->free_count; reclaim(x)) {
        uint32_t at = *x->sent.producer, n = 0;
        uint64_t lost = 0;
        for (; n < BATCH && handled + n < count && x->free_count; n++) {
            const p4_frame *frame = frames[handled + n];
            uint64_t chunk = x->free[--x->free_count];
            memcpy(x->chunks + chunk, frame->data, frame->data_len);
            slots[(at + n) & (BATCH - 1)] = (struct xdp_desc){.addr = chunk, .len = frame->data_len};
        }
        __atomic_store_n(x->sent.producer, at + n, __ATOMIC_RELEASE);
        if (kick(x, &lost) < 0) {
            if (give_up(port, lost != 0))
                return handled;
            port->tx_failed += n; /* some may have left; the kernel does not report it */
            return handled + n;
        }
        port->tx_failed += lost;
        handled += n;
    }
    return handled;
}
