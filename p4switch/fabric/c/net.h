/* The virtual network: nodes, links, the order of events, and what is counted. No Python in here.
 *
 * Time advances in windows: what a node does within one cannot reach another one in it. So the nodes go through a window
 * one after the other, each with its own state in the cache. What happens is the same as if all events had been taken in
 * order of time; events of one node at one instant have an order of their own (event_kind, then port), so the windows
 * leave no trace in the results.
 *
 * Where every link joins two sides (fat-trees and leaf-spines are like that: hosts and every second layer against the
 * rest), the sides take turns, each going as far as the other's last time and the shortest link allow: windows of two
 * links' delay. Else all nodes go through windows of one.
 *
 * In a window first the hosts go, and unless they are declared independent, in order of time among each other, because
 * what they call may connect them; then there is one side only. Then each switch. Callbacks at a given time, samples and
 * the like end a window, and both sides come up to them.
 *
 * Independent hosts may be held at times of their own. In a window each goes as far as it is held; then the owner lets them
 * go on one by one, in order of time, up to its end. That keeps the order of what concerns several hosts.
 *
 * Several workers can go through one network together, each with some of its nodes: see exchange.h.
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

#define NET_NEVER (UINT64_C(1) << 61) /* this and later: what a host says when nothing is due (seam 4) */
#define NET_MAX_TIME (NET_NEVER - 1)
#define NET_MAX_WINDOW_NS 4096
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Of a switch, in the order of one instant; after these come arrivals, which stay on the wires, and ports whose links are
 * free. A rank is kind, port and a running number. */
typedef enum event_kind {
    EV_PFC_ARRIVE,  /* frame: its last bit is in */
    EV_PFC_APPLY,   /* frame: the reaction time is over */
    EV_PFC_EXPIRE,  /* a pause may have timed out */
    EV_PFC_REFRESH, /* pauses are to be renewed */
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
    bool unusual;        /* the link may lose a frame, or keep one for longer: see `reaches` */
    bool away;           /* the peer is another worker's */
    uint32_t to;         /* the peer's place among the hosts or switches ... */
    uint64_t to_port;    /* ... and its port's bit in the agenda; 0: a host */
    tm_port tm;          /* its first fields are on the next cache line */
    uint32_t snap_bytes; /* of captured frames */
    uint32_t link, direction;
    uint64_t lost_packets, lost_bytes; /* of those sent: not received here, nor to be (modulo 2^64: with workers, too) */
    uint64_t delay_ns;
    link_chance chance;
    uint64_t least_ns;  /* no frame is at the other end earlier: the one before it, sent over a longer way, is not */
    uint64_t expire_ns; /* of the pending EV_PFC_EXPIRE, or TIME_NEVER */
    uint64_t marked; /* packets that left with ECN CE and came without */
    uint64_t drops[P4_DROP_REASONS], drop_bytes;
    uint8_t deadlocks, storms; /* priorities of which this pause was reported as one */
} __attribute__((aligned(64))) net_port;

typedef struct node {
    struct net *net;
    p4_switch *sw;      /* NULL: a host */
    void *host, *object; /* the owner's, for net_ops and to keep the switch */
    net_port *port;     /* a host's only one */
    uint32_t index;     /* of the node, ... */
    uint32_t place;     /* ... and among the hosts or the switches */
    heap events;        /* a switch's, of PFC; a host's calls */
    ready ready;        /* a switch's ports that wait for their links */
    recent_flows recent; /* of a host */
    uint64_t wake_ns, hint_ns; /* a host's: when it wants to be asked; when the wheel will look at it */
    uint64_t hold_ns;          /* a host's: from then on nothing happens there until it is moved */
    uint32_t latency_ns;
    tm_switch tm;
    uint8_t arriving;   /* the PFC class of the packet that its pipeline has in hand */
    uint8_t arriving_marked; /* whether that packet came with ECN CE */
    bool away;          /* another worker's: nothing happens at it here */
    tm_limits limits;   /* what new ports get ... */
    tm_pfc *pfc;        /* ... and NULL: none */
    uint8_t lossless;
    uint64_t lost_drops[P4_DROP_REASONS], lost_bytes; /* at ports that do not exist */
    p4_switch_counts before; /* what the pipeline had counted when it came here, ... */
    p4_env env_before;       /* ... and its surroundings, which still get the digests */
    uint32_t traced;         /* packets that started here */
    char *name;
} node;

/* What is next at a node: no event before `time`; frames may be on the wires to the ports whose number is i mod 64. */
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

/* What the owner of the hosts provides. 0, or -1: stop, there is an error of the owner's own. */
typedef struct net_ops {
    int (*receive)(struct net *net, node *host, const p4_frame *frame);
    int (*next_frame)(struct net *net, node *host, p4_frame **frame); /* *frame = NULL: none now */
    int (*next_wakeup)(struct net *net, node *host, uint64_t *time_ns);
    int (*may_report)(struct net *net, node *host, const p4_frame *frame); /* 1: it may, when the frame arrives */
    void (*idle_but_due)(struct net *net, node *host, uint64_t time_ns); /* says so as the owner's error */
    int (*call)(struct net *net, void *arg);
    int (*told)(struct net *net); /* workers have told each other something: see exchange.h */
    int (*settle)(struct net *net, uint64_t end); /* hosts are held before `end`: lets them go on */
    void (*release)(node *at); /* its host or switch is no longer used */
} net_ops;

/* Who goes through the network, as the run loop asks: one process alone (loop.c), or one of several workers, of which
 * all ask the same (exchange.c). */
typedef struct net_company {
    uint64_t (*next_time)(const struct net *net, uint32_t side); /* when something happens next on a side, anywhere, */
    uint64_t (*next_call)(const struct net *net);                /* and when the next callback is due */
    bool (*call_is_here)(const struct net *net);                 /* whether that is to be called here */
    void (*count_call)(struct net *net);
    bool (*late)(const struct net *net); /* an owner's time is up */
    int (*meet)(struct net *net);        /* -1: not to be waited for, or the owner's error */
    void (*catch_up)(struct net *net);   /* lets the switches catch up with the host that is being run */
} net_company;

typedef enum net_status { NET_IDLE, NET_UNTIL, NET_BUDGET, NET_STOPPED, NET_DEADLOCK, NET_WALL, NET_ERROR } net_status;

/* Who is going through the window. */
typedef enum net_phase { PHASE_NONE, PHASE_HOSTS, PHASE_SWITCHES } net_phase;

typedef struct net {
    uint64_t now;        /* of the event in hand; between windows all up to and including it is done */
    uint64_t window_end; /* exclusive */
    uint64_t last;       /* time of the latest event there was */
    uint64_t lookahead_ns;
    uint32_t sides;      /* 1 or 2; 0: to be found out, which is said only when nothing is ahead */
    uint64_t done[2];    /* by side: everything before it is done; equal unless a side is ahead */
    net_phase phase;
    bool independent;    /* hosts meet only in frames, ... */
    bool settles;        /* ... and where they are held: it is the owner who says in which order they go on */
    bool held;           /* a host has come to where it is held, or the owner wants to settle something else; ... */
    bool unsettled;      /* ... likewise in the next window */
    uint64_t careful_ns; /* from then on windows are of one instant */
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
    bool late;   /* the owner's time is up */
    bool midway; /* a host's error has ended a run and left independent hosts at different times */
    uint32_t paused; /* (port, priority) pairs that stand still now */
    uint64_t watch_interval_ns, storm_ns;
    arrivals arrivals;   /* of the switch that is being run */
    bool third_line;     /* hosts have got frames of which more than FRAME_FETCHED bytes are present */
    wheel *wheel;        /* places of hosts, if they are not independent */
    heap calls;          /* that end a window */
    const node *current; /* the host that is being run */
    link_rate *rates;
    const net_company *company;
    struct workers *workers; /* NULL: it is alone */
    nodes all, hosts, switches;
    net_port **ends;     /* two a link: of a, of b */
    uint32_t link_count, link_cap;
} net;

/* topology.c */
net *net_new(const net_ops *ops, void *owner);
void net_free(net *n);
node *net_add_node(net *n, p4_switch *sw); /* sw: taken over until net_free; NULL: a host */
/* NULL: no memory. Ports must be new, arguments valid. */
net_port *net_connect(net *n, node *a, uint32_t a_port, node *b, uint32_t b_port, const uint64_t rate_bps[2],
                      uint64_t delay_ns, double loss, uint64_t seed, int32_t framing_bytes);
void net_link_up(net *n, uint32_t link, bool up);
int net_link_rate(net *n, uint32_t link, int direction, uint64_t rate_bps); /* -1: no memory */
void net_link_delay(net *n, uint32_t link, uint64_t delay_ns);
void net_link_loss(net *n, uint32_t link, double loss);
/* What has come in at a port, PFC frames apart. */
void net_received(const net_port *port, uint64_t *packets, uint64_t *bytes);
typedef struct net_counts {
    uint64_t queued, on_wire, pfc_on_wire; /* counted by walking what is there */
    uint64_t cloned, multicast;            /* as the pipelines say */
} net_counts;

net_counts net_count(net *n);

/* sides.c: sets n->sides and every node's side. Aborts without memory. */
void net_find_sides(net *n);

/* loop.c */
extern const net_company net_alone;
net_status net_run(net *n, uint64_t until, uint64_t budget); /* budget: events; looked at between windows */
void net_sync(net *n); /* lets the switches catch up, when a host or callback is about to look at or change things */
void net_end_window(net *n, uint64_t time); /* at `time`, or after the present instant */
/* host: the call is about that one alone, which spares the end of a window; NULL: it may touch anything. own: other
 * workers do not have this call. */
void net_at(net *n, uint64_t time, void *arg, node *host, bool own);
#define NET_OWN_CALL UINT64_C(1) /* in the rank of a call */
uint64_t net_next_time(const net *n, uint32_t side); /* when something happens next on a side, here */

/* hosts.c, switches.c */
int net_kick(net *n, node *host); /* -1: error of the host */
void net_inject(net *n, node *at, uint32_t port, p4_frame *frame);
/* A host is held at `time`. Only `settle` moves it to where it is held already. */
void net_hold(net *n, node *host, uint64_t time);
/* In `settle`: it is the host's turn, at `time`; and it goes on up to where it is held or the window ends. */
void net_turn(net *n, node *host, uint64_t time);
int net_go_on(net *n, node *host);
/* Before *time no host reports anything that is held before the end of the window. -1: error of a host. */
int net_reports_after(net *n, uint64_t *time);
net_port *net_find_port(const node *at, uint32_t number); /* NULL: there is none */

static inline net_port *net_port_of(tm_port *port)
{
    return (net_port *)((char *)port - offsetof(net_port, tm));
}

/* The next node from place `i` on that has something to do before `end` and is on this side; of->count: none. */
static inline uint32_t net_next_place(const nodes *of, uint32_t i, uint32_t side, uint64_t end)
{
    while (i < of->count && (of->next[i].time >= end || of->next[i].side != side))
        i++;
    return i;
}

#endif
