/* The virtual network: nodes, links, the event loop, and what it counts. No Python in here. */
#ifndef P4CC_NET_H
#define P4CC_NET_H

#include "flows.h"
#include "pool.h"
#include "record.h"
#include "tm.h"
#include "wheel.h"

#define NET_MAX_TIME (UINT64_MAX >> 2) /* and later: never */

typedef enum event_kind {
    EV_NONE,
    EV_ARRIVE,      /* port, frame: its last bit is in */
    EV_ARRIVE_PFC,  /* the same, of a PFC frame */
    EV_READY,       /* port: its link is free */
    EV_WAKE,        /* port: its host asked for it */
    EV_PFC_APPLY,   /* port, frame: the reaction time is over */
    EV_PFC_EXPIRE,  /* port: a pause may have timed out */
    EV_PFC_REFRESH, /* port: its pauses are to be renewed */
    EV_PFC_WATCH,
    EV_CALL,        /* -, the owner's argument */
} event_kind;

struct net;
struct node;

/* One end of a link. */
typedef struct net_port {
    struct node *node;
    struct net_port *peer;
    uint64_t hop_ns; /* the link's delay and the peer's latency */
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
    struct net_port *next_touched;
    tm_port tm;
    bool touched, up, refreshing;
    uint32_t link, direction, snap_bytes; /* snap_bytes: 0: no capture */
    uint64_t delay_ns;
    uint64_t timer_ns;  /* when the pending EV_WAKE (of a host) or EV_PFC_EXPIRE (of a switch) is due, or TIME_NEVER */
    uint64_t drops[P4_DROP_REASONS], drop_bytes;
    uint8_t deadlocks, storms; /* priorities of which this pause was reported as one */
} __attribute__((aligned(64))) net_port;

typedef struct node {
    struct net *net;
    p4_switch *sw;      /* NULL: a host */
    void *host, *object; /* the owner's, for net_ops and to keep the switch */
    net_port *port;     /* a host's only one */
    uint32_t index;
    uint32_t latency_ns;
    tm_switch tm;
    bool round_robin;   /* and the limits: what new ports get */
    uint64_t queue_bytes, port_bytes;
    uint32_t queue_packets, port_packets;
    tm_pfc *pfc;        /* what new ports get; NULL: none */
    uint8_t lossless;
    uint64_t lost_drops[P4_DROP_REASONS], lost_bytes; /* at ports that do not exist */
    p4_switch_counts before; /* what the pipeline had counted when it came here, ... */
    p4_env env_before;       /* ... and its surroundings, which still get the digests */
    char *name;
} node;

typedef struct net_ledger {
    uint64_t entered, delivered;
    uint64_t drops[P4_DROP_REASONS];
    uint64_t pfc_sent, pfc_received, pfc_lost;
} net_ledger;

/* What the owner of the hosts provides. 0, or -1: stop, there is an error of the owner's own. */
typedef struct net_ops {
    int (*receive)(struct net *net, node *host, const p4_frame *frame);
    int (*next_frame)(struct net *net, node *host, p4_frame **frame); /* *frame = NULL: none now */
    int (*next_wakeup)(struct net *net, node *host, uint64_t *time_ns);
    void (*idle_but_due)(struct net *net, node *host, uint64_t time_ns); /* says so as the owner's error */
    int (*call)(struct net *net, void *arg); /* takes arg */
    void (*release)(node *at); /* its host or switch is no longer used */
} net_ops;

typedef enum net_status { NET_IDLE, NET_UNTIL, NET_BUDGET, NET_STOPPED, NET_DEADLOCK, NET_WALL, NET_ERROR } net_status;

typedef struct net {
    wheel *wheel;
    pool pool;
    const net_ops *ops;
    void *owner;
    uint32_t framing_bytes, tick_ns;
    net_port *touched, *touched_last;
    uint64_t events;
    net_ledger ledger;
    flows flows;
    recorder recorder;
    bool stop, deadlock, watching;
    uint32_t paused; /* (port, priority) pairs that stand still now */
    uint64_t watch_interval_ns, storm_ns;
    bool stop_on_deadlock;
    tm_rate *rates;
    node **nodes;
    uint32_t node_count, node_cap;
    net_port **ends; /* two a link: of a, of b */
    uint32_t link_count, link_cap;
} net;

net *net_new(const net_ops *ops, void *owner);
void net_free(net *n);
node *net_add_node(net *n);
/* NULL: no memory. Ports must be new, arguments valid. */
net_port *net_connect(net *n, node *a, uint32_t a_port, node *b, uint32_t b_port, const uint64_t rate_bps[2],
                      uint64_t delay_ns);
net_port *net_find_port(const node *at, uint32_t number);
net_status net_run(net *n, uint64_t until, uint64_t budget);
int net_kick(net *n, node *host);                 /* -1: error of the host */
void net_inject(net *n, node *at, uint32_t port, p4_frame *frame);
void net_link_up(net *n, uint32_t link, bool up);
int net_link_rate(net *n, uint32_t link, int direction, uint64_t rate_bps); /* -1: no memory */
/* Counted by walking what is there; `copied` as the pipelines say. */
void net_count(net *n, uint64_t *queued, uint64_t *on_wire, uint64_t *pfc_on_wire, uint64_t *copied);
void net_adopt(node *at, p4_switch *sw); /* until net_free */

/* Shared between the parts of the loop. */
void net_send(net *n, net_port *port, p4_frame *frame, bool contiguous, bool pfc);
void net_serve_touched(net *n);
void net_wake(tm_port *port);

/* pfc.c */
p4_frame *pfc_frame(net *n, net_port *port);
void pfc_sent(net *n, net_port *port);
void pfc_arrive(net *n, net_port *port, p4_frame *frame);
void pfc_apply(net *n, net_port *port, p4_frame *frame);
void pfc_expire(net *n, net_port *port);
void pfc_refresh(net *n, net_port *port);
void pfc_link_down(net *n, net_port *port);

/* watch.c */
void pfc_watch(net *n);

static inline net_port *net_port_of(tm_port *port)
{
    return (net_port *)((char *)port - offsetof(net_port, tm));
}

static inline bool net_pfc_due(const net_port *port)
{
    return port->up && tm_pfc_due(&port->tm);
}

static inline event net_event(event_kind kind, net_port *port, void *arg)
{
    return (event){(uintptr_t)port | kind, arg};
}

static inline event_kind net_kind(event e)
{
    return (event_kind)(e.subject & 15);
}

static inline net_port *net_subject(event e)
{
    return (net_port *)(e.subject & ~(uintptr_t)15);
}

#endif
