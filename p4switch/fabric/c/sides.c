/* Whether the network has two sides such that every link joins one to the other. */
#include "net.h"

#define NO_SIDE 2

static agenda *agenda_of(net *n, const node *at)
{
    return at->sw ? &n->switches.next[at->place] : &n->hosts.next[at->place];
}

/* The far end of `at`'s i-th port; NULL: there is none. */
static node *neighbour(const node *at, uint32_t i)
{
    net_port *port = at->port;
    if (at->sw)
        port = at->tm.ports[i] ? net_port_of(at->tm.ports[i]) : NULL;
    return port ? port->peer->node : NULL;
}

/* Assigns the nodes connected with `first` to the two sides; false: there is a cycle of odd length. */
static bool spread(net *n, node *first, node **queue)
{
    uint32_t head = 0, tail = 0;
    agenda_of(n, first)->side = 0;
    queue[tail++] = first;
    while (head < tail) {
        const node *at = queue[head++];
        uint32_t side = agenda_of(n, at)->side, ports = at->sw ? at->tm.port_count : 1;
        for (uint32_t i = 0; i < ports; i++) {
            node *there = neighbour(at, i);
            if (!there)
                continue;
            agenda *next = agenda_of(n, there);
            if (next->side == side)
                return false;
            if (next->side == NO_SIDE) {
                next->side = !side;
                queue[tail++] = there;
            }
        }
    }
    return true;
}

static void set_all(net *n, uint32_t side)
{
    for (uint32_t i = 0; i < n->all.count; i++)
        agenda_of(n, n->all.list[i])->side = side;
}

static bool two_sided(net *n)
{
    bool holds = true;
    node **queue = must_alloc(n->all.count * sizeof *queue);
    set_all(n, NO_SIDE);
    for (uint32_t i = 0; i < n->all.count && holds; i++)
        if (agenda_of(n, n->all.list[i])->side == NO_SIDE)
            holds = spread(n, n->all.list[i], queue);
    free(queue);
    return holds;
}

void net_find_sides(net *n)
{
    n->sides = n->independent && !n->settles && n->lookahead_ns && n->all.count && two_sided(n) ? 2 : 1;
    if (n->sides == 1)
        set_all(n, 0);
}
