/* A switch in real time: frames from and to network interfaces, one pipeline, the fabric's traffic manager. No Python in here.
 *
 * One thread (live_loop) reads sockets, runs ingress, serves the queues when their links are free, and writes sockets.
 * It holds the lock while it works and not while it waits; other threads take the lock before they access anything.
 * Times are in ns since the origin of its clock. Events are processed in order of time and with their own nominal time
 * (for a frame, the time at which the kernel received it), however late the thread gets to them. Only frames can leave
 * after they were due; their lateness is recorded. A link's delay serves as slack, because lateness below it has no
 * effect.
 */
#ifndef P4CC_LIVE_H
#define P4CC_LIVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include "pfc.h"
#include "pool.h"
#include "tm.h"
#include "wire.h"

#define LIVE_MAX_PORTS 512
#define LIVE_BATCH 64
#define LIVE_CPU_FRAMES 1024 /* waiting packet-ins; further ones are dropped */
#define LIVE_NEVER UINT64_MAX
#define LIVE_LAG_BUCKETS 40  /* bucket i: lag in [2^i, 2^(i+1)) ns; bucket 0 includes 0 */

struct live;

/* A raw socket on an interface, its receive ring shared with the kernel. */
typedef struct live_socket {
    int fd;
    uint8_t *ring;
    size_t ring_bytes;
    uint32_t slots, slot_bytes, next;
    uint32_t mtu;        /* speed of the interface when it was opened */
    uint64_t ring_drops; /* frames for which the kernel found the ring full */
} live_socket;

/* Sender of a port's frames instead of its socket (live_xdp.c). */
typedef struct live_xdp live_xdp;

/* The choice of the sender. */
typedef enum live_sender {
    LIVE_SEND_AUTO,   /* AF_XDP where the kernel and the interface have it */
    LIVE_SEND_PACKET,
    LIVE_SEND_XDP,    /* opening the port fails without it */
} live_sender;

/* Changes of the depths of a port's queues, for statistics. */
typedef struct live_log {
    struct live_depth { uint64_t time, bytes; } *entries; /* time from which the depth holds */
    size_t count, room;
} live_log;

typedef struct live_port {
    tm_port tm;
    struct live *owner;
    live_socket socket; /* fd -1: the CPU port, or a port that loops */
    live_xdp *xdp;      /* NULL: frames are sent by the socket */
    uint64_t arrival;   /* arrival of the next frame in the ring; NEVER if the last look found none */
    live_log log;
    char name[16];      /* name of the interface */
    uint64_t delay_ns;
    int32_t framing_bytes; /* framing of its link */
    wire wire; /* frames that left the queue and are still being transmitted or on the wire */
    p4_frame *batch[LIVE_BATCH];
    uint32_t batched;
    bool loops;         /* its link leads back to it: `arrival` is that of the first frame on the wire */
    bool down;          /* the link has failed: frames sent or on the wire are lost */
    link_chance chance;
    /* earliest arrival at the other end: a frame does not overtake one sent before a delay became shorter */
    uint64_t least_ns;
    bool touched;
    struct live_port *next_touched;
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, rx_truncated, tx_failed;
    uint64_t drops[P4_DROP_REASONS];
    uint64_t pfc_received, pfc_sent;
} live_port;

/* A change of a port's link, and its time. */
typedef struct live_change {
    uint64_t time;
    live_port *port;
    bool down;
    uint64_t rate_bps, delay_ns, seed;
    double loss;
} live_change;

typedef struct live {
    pthread_mutex_t lock;
    pthread_cond_t turn;     /* no thread wants the lock any more */
    pthread_cond_t news;     /* there are CPU frames, or messages of the switch */
    int wanted;              /* threads that want the lock; they take precedence over the loop */
    bool stop;
    bool holds;              /* what is on a link stays there: nothing leaves any more */
    bool loops;              /* some port loops */
    int wakeup;              /* eventfd: there is something to do */
    p4_switch *sw;           /* NULL: frames are dropped */
    const p4_env *own_env;   /* environment of the switch, which still receives its messages */
    p4_env env_before;
    tm_switch tm;
    live_port *ports[LIVE_MAX_PORTS];
    uint32_t numbers[LIVE_MAX_PORTS], count; /* among the existing ports */
    live_port *touched, *touched_last;
    link_rate *rates;
    live_change *changes;    /* sorted by time; those before next_change are done */
    uint32_t change_count, next_change;
    int32_t framing_bytes;
    uint64_t now, origin;    /* now: time of the current event; origin: CLOCK_MONOTONIC at time 0 */
    uint64_t kernel_origin;  /* CLOCK_REALTIME at time 0, because the kernel's time stamps use this clock */
    uint64_t clocks_read;    /* time at which it was determined */
    uint64_t rest_ns;        /* how long frames may wait in their rings, so that many are handled at once */
    uint64_t waited_at, waited_events; /* when the loop last began to wait, and the events before */
    uint64_t log_interval;   /* minimum interval between logged depths; 0: no log */
    pool pool;
    tm_limits limits;        /* of every port */
    uint64_t timer;          /* time at which the pipeline wants to be called; LIVE_NEVER: none */
    uint64_t release;        /* time at which a token bucket of a port has tokens again; LIVE_NEVER: none waits */
    uint8_t arriving;        /* the PFC class of the packet that the pipeline is processing */
    p4_frame *cpu_first, **cpu_last;
    uint32_t cpu_count;
    bool reported;           /* digests, or messages of the program */
    uint64_t lost_drops[P4_DROP_REASONS]; /* drops at ports that do not exist */
    uint64_t cpu_dropped, no_pipeline;
    uint64_t events;         /* frames that arrived, links that became free */
    uint64_t lag[LIVE_LAG_BUCKETS], lag_sum_ns, lag_max_ns;
} live;

uint64_t live_clock(const live *l);

/* NULL: no memory, errno is set. */
live *live_new(uint32_t tick_ns, uint32_t cell_bytes, int32_t framing_bytes, uint64_t origin); /* origin 0: now */
void live_free(live *l); /* the loop has ended */
void live_lock(live *l); /* may be nested */
void live_unlock(live *l);

/* These functions are called with the lock held. -1: errno is set. */
/* interface NULL: the CPU port, or one that `loops`. With LIVE_SEND_AUTO, errno tells afterwards why AF_XDP is not
 * used, if that is so. */
live_port *live_add_port(live *l, uint32_t number, const char *interface, uint32_t ring_slots, live_sender sender,
                         bool loops);
int live_set_link(live *l, live_port *port, uint64_t rate_bps, uint64_t delay_ns); /* rate 0: no limit */
/* Changes the link at `time` or, if that is past, at once. Changes at the same time are applied in the order of the
 * calls. */
int live_change_link(live *l, const live_change *change);
void live_set_switch(live *l, p4_switch *sw);
int live_inject(live *l, uint32_t port, const uint8_t *data, size_t len);
void live_wake(live *l); /* wakes the loop to process the changes */

/* Runs until l->stop is set; called without the lock. */
void live_loop(live *l);

/* live_io.c */
int live_open(live_socket *s, const char *interface, uint32_t ring_slots);
void live_close(live_socket *s);
void live_peek(live *l, live_port *port); /* sets arrival */
void live_receive(live *l, live_port *port); /* takes the frame of `arrival`, and sets that to the next frame's */
void live_flush(live *l, live_port *port);
void live_ring_drops(live_socket *s);

/* live_xdp.c */
live_xdp *live_xdp_open(const char *interface, uint32_t mtu);
void live_xdp_close(live_xdp *x); /* may be NULL */
bool live_xdp_takes(const live_xdp *x, const p4_frame *frame); /* other frames have to be sent by the socket */
/* Returns how many frames, from the first on, it sent or lost; the socket has to send the rest. If the interface has
 * failed, the port has no live_xdp afterwards. */
uint32_t live_xdp_send(live_port *port, p4_frame *const *frames, uint32_t count);

/* live_pfc.c */
void live_pfc_arrive(live *l, live_port *port, const uint8_t *data);
p4_frame *live_pfc_frame(live *l, live_port *port);
void live_pfc_due(live *l, live_port *port, uint64_t now); /* pauses that end or have to be renewed */
uint64_t live_pfc_next(const live_port *port);

/* live_loop.c: processes all events up to `until`, each with its own time, in order; at equal times first arrivals
 * by port, then links by port. Returns false if there are more events than one round may have. */
bool live_catch_up(live *l, uint64_t until);

/* live.c, shared */
uint64_t live_read_clock(clockid_t clock);
void live_apply_change(live *l, const live_change *c);
void live_leave(live *l, live_port *port, p4_frame *frame); /* it has reached the other end of the link */
/* Serves a free link: PFC frames first, then the next packet; all waiting packets if the link has no rate. */
void live_serve(live *l, live_port *port, bool contiguous);
p4_frame *live_frame_new(live *l, uint32_t cap);
void live_frame_free(live *l, p4_frame *frame);
void live_arrive(live *l, live_port *port, p4_frame *frame);
void live_return(live *l, live_port *port);
void live_touch(tm_port *port);
void live_serve_touched(live *l);
void live_timer(live *l);
void live_release(live *l);

static inline live_port *live_port_of(tm_port *tm)
{
    return (live_port *)((char *)tm - offsetof(live_port, tm));
}

/* The time when a port's link is free; links without a rate always are. */
static inline uint64_t live_link_free(const live_port *port)
{
    return port->tm.link.rate ? link_free_ns(&port->tm.link) : 0;
}

#endif
