/* The virtual network: nodes, links, the order of events, and counts. This file contains no Python.
 *
 * Time advances in windows that are so short that no node can affect another one within the same window. So the nodes
 * run through a window one after the other, each with its own state in the cache. The results are the same as if all
 * events had been processed in order of time; events of one node at one instant have a fixed order (event_kind, then
 * port), so that results do not depend on the windows.
 *
 * If the nodes form two sides such that every link joins one to the other (as in fat-trees and leaf-spines: hosts and
 * every second layer on one side), the sides take turns. Each runs as far as the other's time and the shortest link
 * allow, so that windows have the length of two link delays. Otherwise all nodes run through windows of one link delay.
 *
 * In a window the hosts run first, then each switch. Unless they are declared independent, hosts run in order of time
 * among each other, because their calls may affect each other; then there is only one side. Callbacks at a given time,
 * samples and the like end a window, and both sides advance to them.
 *
 * Independent hosts may be held at individual times. In a window each runs up to the time at which it is held; then the
 * owner lets them continue one by one, in order of time, up to the end of the window. This keeps the order of events
 * that concern several hosts.
 *
 * Several workers can simulate one network together, each with some of its nodes: see exchange.h.
 */
#ifndef P4CC_NET_H
#define P4CC_NET_H

#include "arrivals.h"
#include "flows.h"
#include "heap.h"
#include "pfc.h"
#include "pool.h"
#include "ready.h"
#include "record.h"
#include "tm.h"
#include "wheel.h"
#include "wire.h"

#define NET_NEVER (UINT64_C(1) << 61) /* this or a later time is returned by a host with nothing due (seam 4) */
#define NET_MAX_TIME (NET_NEVER - 1)
#define NET_MAX_WINDOW_NS 4096
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Events of a switch, in their order at one instant. After these come arrivals, which stay on the wires, and ports
 * whose links become free. A rank consists of kind, port and a running number. */
typedef enum event_kind {
    EV_PFC_ARRIVE,  /* the last bit of a PFC frame has arrived */
    EV_PFC_APPLY,   /* the reaction time to a PFC frame is over */
    EV_PFC_EXPIRE,  /* a pause may have timed out */
    EV_PFC_REFRESH, /* pauses have to be renewed */
    EV_RELEASE,     /* a token bucket has tokens again */
    EV_TIMER,       /* the pipeline wants to be called; belongs to no port */
} event_kind;

struct net;
struct node;

/* One end of a link. */
typedef struct net_port {
    struct node *node;
    struct net_port *peer;
    uint64_t hop_ns; /* the link's delay and the peer's latency */
    wire out;
    bool up, touched : 1, captured : 1;
    bool unusual;        /* the link may lose or delay a frame: see `reaches` */
    bool away;           /* the peer belongs to another worker */
    uint32_t to;         /* the peer's index among the hosts or switches ... */
    uint64_t to_port;    /* ... and its port's bit in the agenda; 0: a host */
    tm_port tm;          /* its first fields are on the next cache line */
    uint32_t snap_bytes; /* bytes kept of captured frames */
    uint32_t link, direction;
    uint64_t lost_packets, lost_bytes; /* sent frames that are not received here (modulo 2^64, also with workers) */
    uint64_t delay_ns;
    link_chance chance;
    /* earliest arrival at the other end: a frame does not overtake one sent before a delay became shorter */
    uint64_t least_ns;
    uint64_t expire_ns; /* time of the pending EV_PFC_EXPIRE, or TIME_NEVER */
    uint64_t marked; /* packets that left with ECN CE and arrived without */
    uint64_t pfc_sent, pfc_received; /* frames of a switch's port */
    uint64_t drops[P4_DROP_REASONS], drop_bytes;
    uint8_t deadlocks, storms; /* priorities for which this pause was already reported */
} __attribute__((aligned(64))) net_port;

typedef struct node {
    struct net *net;
    p4_switch *sw;      /* NULL: a host */
    void *host, *object; /* for the owner: used by net_ops, and keeps the switch alive */
    net_port *port;     /* the only port of a host */
    uint32_t index;     /* index among the nodes, ... */
    uint32_t place;     /* ... and among the hosts or the switches */
    heap events;        /* PFC events and timers of a switch; calls of a host */
    ready ready;        /* ports of a switch that wait for their links */
    recent_flows recent; /* of a host */
    uint64_t wake_ns, hint_ns; /* for a host: when it wants to be asked; when the wheel will check it */
    uint64_t hold_ns;          /* for a host: time at which it is held, until the owner moves that time */
    uint64_t timer_ns;         /* for a switch: time of the pending EV_TIMER that counts, or TIME_NEVER */
    uint32_t latency_ns;
    tm_switch tm;
    uint8_t arriving;   /* the PFC class of the packet that its pipeline is processing */
    uint8_t arriving_marked; /* whether that packet arrived with ECN CE */
    bool away;          /* it belongs to another worker: nothing happens at it here */
    tm_limits limits;   /* settings of new ports ... */
    tm_pfc *pfc;        /* ... and NULL: none */
    uint8_t lossless;
    uint64_t lost_drops[P4_DROP_REASONS], lost_bytes; /* drops at ports that do not exist */
    p4_switch_counts before; /* counts of the pipeline when it was added, ... */
    p4_env env_before;       /* ... and its environment then */
    uint32_t traced;         /* packets that started here */
    char *name;
} node;

/* The next events of a node: none is before `time`; frames may be on the wires to the ports whose number is i mod
 * 64. */
typedef struct agenda {
    uint64_t time, ports;
    uint32_t side;
} agenda;

typedef struct nodes {
    node **list;
    agenda *next;
    uint32_t count, cap;
} nodes;

typedef struct net_ledger {
    uint64_t entered, delivered;
    uint64_t drops[P4_DROP_REASONS];
    uint64_t pfc_sent, pfc_received, pfc_lost;
} net_ledger;

/* Functions of the owner of the hosts. They return 0, or -1 to stop, where the owner has an error of its own. */
typedef struct net_ops {
    int (*receive)(struct net *net, node *host, const p4_frame *frame);
    int (*next_frame)(struct net *net, node *host, p4_frame **frame); /* *frame = NULL: none now */
    int (*next_wakeup)(struct net *net, node *host, uint64_t *time_ns);
    int (*may_report)(struct net *net, node *host, const p4_frame *frame); /* 1: it may, when the frame arrives */
    void (*idle_but_due)(struct net *net, node *host, uint64_t time_ns); /* reports it as an error of the owner */
    int (*call)(struct net *net, void *arg);
    int (*deliver)(struct net *net); /* delivers messages of workers: see exchange.h */
    /* Hosts are held before `end`: lets them go on. 1: after a meeting of the workers again. */
    int (*settle)(struct net *net, uint64_t end, bool again);
    void (*release)(node *at); /* called when its host or switch is no longer used */
} net_ops;

/* Queries of the run loop, answered by a single process (loop.c), or by one of several workers, all of which ask the
 * same (exchange.c). */
typedef struct net_company {
    uint64_t (*next_time)(const struct net *net, uint32_t side); /* time of the next event on a side at any worker, */
    uint64_t (*next_call)(const struct net *net);                /* and time of the next callback */
    bool (*call_is_here)(const struct net *net);                 /* whether that callback is to be called here */
    void (*count_call)(struct net *net);
    bool (*late)(const struct net *net); /* the time limit of an owner is reached */
    int (*meet)(struct net *net);        /* -1: the wait was given up, or an error of the owner */
    void (*catch_up)(struct net *net);   /* lets the switches catch up with the host that is being run */
} net_company;

typedef enum net_status { NET_IDLE, NET_UNTIL, NET_BUDGET, NET_STOPPED, NET_DEADLOCK, NET_WALL, NET_ERROR } net_status;

/* The node that is running through the window. */
typedef enum net_phase { PHASE_NONE, PHASE_HOSTS, PHASE_SWITCHES } net_phase;

typedef struct net {
    uint64_t now;        /* time of the current event; between windows, all events up to and including it are done */
    uint64_t window_end; /* exclusive */
    uint64_t last;       /* time of the latest event so far */
    uint64_t lookahead_ns;
    uint32_t sides;      /* 1 or 2; 0: to be determined, which is set only when no side is ahead */
    uint64_t done[2];    /* by side: all events before it are done; equal unless a side is ahead */
    net_phase phase;
    bool independent;    /* hosts affect each other only through frames, ... */
    bool settles;        /* ... and where they are held: the owner determines the order in which they continue */
    /* a host has reached the time at which it is held, or the owner has something else to settle; ... */
    bool held;
    bool unsettled;      /* ... likewise in the next window */
    bool waiting;        /* the owner at any worker has to settle again after the workers have met */
    bool settled;        /* the owner here has settled in this window; ... */
    bool behind;         /* ... it has not, but that of another worker has */
    bool on_brink;       /* a host is held at the end of the window, for what it did in the last instant */
    uint64_t brink_ns;   /* that instant of the last window, if no worker settled; otherwise never */
    bool finished;       /* the owner here is done; the run stops when the owners at all workers are */
    uint64_t waits_ns;   /* time before which the owner here starts nothing new, as far as it depends on the owner */
    uint64_t known_ns;   /* time before which all workers know everything that starts */
    uint64_t careful_ns; /* from then on windows are one instant long */
    pool pool;
    arena arena; /* ports and wires */
    const net_ops *ops;
    void *owner;
    int32_t framing_bytes;
    uint32_t tick_ns;
    net_port **touched;  /* ports that may have something to send now */
    uint32_t touched_count, touched_cap;
    uint64_t events, order;
    net_ledger ledger;
    flows flows;
    recorder recorder;
    bool stop, deadlock, failed, pfc_used, stop_on_deadlock;
    bool late;   /* the owner's time limit is reached */
    bool midway; /* an error of a host has ended a run, so that independent hosts are at different times */
    uint32_t paused; /* (port, priority) pairs that are paused now */
    uint64_t watch_interval_ns, storm_ns;
    arrivals arrivals;   /* frames arriving at the running switch */
    bool third_line;     /* hosts have received frames with more than FRAME_FETCHED bytes present */
    wheel *wheel;        /* indices of hosts, if they are not independent */
    heap calls;          /* callbacks that end a window */
    const node *current; /* the running node */
    link_rate *rates;
    const net_company *company;
    struct workers *workers; /* NULL: there is only one worker */
    nodes all, hosts, switches;
    net_port **ends;     /* two for each link: of its ends a and b; equal if it leads back to its port */
    uint32_t link_count, link_cap;
} net;

/* topology.c */
net *net_new(const net_ops *ops, void *owner);
void net_free(net *n);
node *net_add_node(net *n, p4_switch *sw); /* sw: taken over until net_free; NULL: a host */
/* NULL: no memory. Ports must be new, arguments valid. If both ends are the same, the port of a switch leads back to
 * it. */
net_port *net_connect(net *n, node *a, uint32_t a_port, node *b, uint32_t b_port, const uint64_t rate_bps[2],
                      uint64_t delay_ns, double loss, uint64_t seed, int32_t framing_bytes);
void net_link_up(net *n, uint32_t link, bool up);
int net_link_rate(net *n, uint32_t link, int direction, uint64_t rate_bps); /* -1: no memory */
void net_link_delay(net *n, uint32_t link, uint64_t delay_ns);
void net_link_loss(net *n, uint32_t link, double loss);
/* Counts of arrivals at a port, without PFC frames. */
void net_received(const net_port *port, uint64_t *packets, uint64_t *bytes);
typedef struct net_counts {
    uint64_t queued, on_wire, pfc_on_wire; /* counted by walking through queues and wires */
    uint64_t cloned, multicast;            /* as counted by the pipelines */
} net_counts;

net_counts net_count(net *n);

/* sides.c: sets n->sides and every node's side. Aborts without memory. */
void net_find_sides(net *n);

/* loop.c */
extern const net_company net_alone;
net_status net_run(net *n, uint64_t until, uint64_t budget); /* budget: events; checked between windows */
void net_sync(net *n); /* lets the switches catch up, when a host or callback is about to look at or change things */
void net_end_window(net *n, uint64_t time); /* at `time`, or after the present instant */
/* host: the call affects only that one, so that it does not end a window; NULL: it may affect anything. own: other
 * workers do not have this call. */
void net_at(net *n, uint64_t time, void *arg, node *host, bool own);
#define NET_OWN_CALL UINT64_C(1) /* marks the rank of such a call */
uint64_t net_next_time(const net *n, uint32_t side); /* time of the next event on a side at this worker */

/* hosts.c, switches.c */
int net_kick(net *n, node *host); /* -1: error of the host */
void net_inject(net *n, node *at, uint32_t port, p4_frame *frame);
/* Holds a host at `time`. Only `settle` moves it beyond the time at which it is held already. */
void net_hold(net *n, node *host, uint64_t time);
/* Used in `settle`: makes it the host's turn at `time`; lets it run up to the time at which it is held or the window
 * ends. */
void net_turn(net *n, node *host, uint64_t time);
int net_go_on(net *n, node *host);
/* Before *time, no host reports anything that is held before the end of the window. -1: error of a host. */
int net_reports_after(net *n, uint64_t *time);
net_port *net_find_port(const node *at, uint32_t number); /* NULL: there is none */

static inline net_port *net_port_of(tm_port *port)
{
    return (net_port *)((char *)port - offsetof(net_port, tm));
}

/* Runs the statement that follows for each port of a link. */
#define EACH_END(n, port)                                      \
    for (uint32_t e_ = 0; e_ < 2 * (n)->link_count; e_++)      \
        for (net_port *port = (n)->ends[e_]; port && (!(e_ & 1) || port != (n)->ends[e_ - 1]); port = NULL)

/* The next node of this side, from index `i` on, that has an event before `end`; of->count: none. */
static inline uint32_t net_next_place(const nodes *of, uint32_t i, uint32_t side, uint64_t end)
{
    while (i < of->count && (of->next[i].time >= end || of->next[i].side != side))
        i++;
    return i;
}

#endif
