/* Cost of the fabric itself: a permutation on a k-ary fat-tree with pipelines and hosts that do almost nothing.
 *
 * usage: fat_tree K MICROSECONDS WINDOW_PACKETS INDEPENDENT. Prints one line of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "net.h"

enum { CORE, AGGREGATION, EDGE };
enum { HEADER = 62, DATA = 1058, ACK = 66 };

struct p4_switch {
    p4_env env;
    p4_switch_counts counts;
    uint32_t level, pod, number;
};

typedef struct bench_host {
    uint32_t number, peer, acks_due, in_flight;
} bench_host;

static uint32_t half; /* k / 2 */
static uint32_t window;
static p4_packet *spare;
static bench_host *hosts;

/* -- a pipeline: routes by destination, spreads by flow ----------------------------------------------------------- */

static uint32_t host_of(const uint8_t *address)
{
    return (uint32_t)address[2] << 8 | address[3];
}

static uint32_t route(const p4_switch *sw, const p4_frame *frame)
{
    uint32_t to = host_of(frame->data + 30), hash = (frame->tag * 0x9e3779b1u) >> 16;
    uint32_t pod = to / (half * half), edge = to / half % half;
    if (sw->level == CORE)
        return pod;
    if (sw->level == AGGREGATION)
        return pod == sw->pod ? edge : half + hash % half;
    return pod == sw->pod && edge == sw->number ? to % half : half + hash / half % half;
}

void p4_switch_receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    (void)now;
    p4_packet *p = spare;
    if (p)
        spare = p->next;
    else if (!(p = malloc(sizeof *p)))
        abort();
    sw->counts.received++;
    p->frame = frame;
    p->len = frame->wire_len;
    p->tag = frame->tag;
    p->ingress_port = port;
    p->egress_port = route(sw, frame);
    p->priority = 0;
    sw->env.enqueue(sw->env.ctx, p);
}

p4_frame *p4_switch_transmit(p4_switch *sw, p4_packet *packet, p4_tick now)
{
    (void)now;
    p4_frame *frame = packet->frame;
    sw->counts.transmitted++;
    packet->next = spare;
    spare = packet;
    return frame;
}

void p4_packet_free(p4_switch *sw, p4_packet *packet)
{
    sw->env.frame_free(sw->env.ctx, p4_switch_transmit(sw, packet, 0));
}

void p4_switch_set_env(p4_switch *sw, const p4_env *env) { sw->env = *env; }
uint32_t p4_switch_packet_bytes(const p4_switch *sw) { (void)sw; return sizeof(p4_packet); }
int p4_switch_deflect(p4_switch *sw, p4_packet **packet)
{
    (void)sw, (void)packet;
    return 0;
}

int p4_switch_watches_queues(const p4_switch *sw)
{
    (void)sw;
    return 0;
}

void p4_switch_queue_changed(p4_switch *sw, const p4_packet *packet, uint32_t queue, uint32_t cells, p4_tick now)
{
    (void)sw, (void)packet, (void)queue, (void)cells, (void)now;
}

void p4_switch_timer(p4_switch *sw, p4_tick now) { (void)sw, (void)now; }

void p4_switch_port_added(p4_switch *sw, uint32_t port) { (void)sw, (void)port; }

void p4_switch_learn(p4_switch *pipe, uint32_t list_id, const uint8_t *data, size_t len)
{
    (void)pipe, (void)list_id, (void)data, (void)len;
}

void p4_switch_prefetch(const p4_switch *sw) { (void)sw; }
void p4_switch_prefetch_tables(const p4_switch *sw) { (void)sw; }
const p4_env *p4_switch_get_env(const p4_switch *sw) { return &sw->env; }
p4_switch_counts p4_switch_get_counts(const p4_switch *sw) { return sw->counts; }

/* -- hosts: a window of data frames, an ACK for each --------------------------------------------------------------- */

static p4_frame *make(net *n, uint32_t from, uint32_t to, uint32_t len)
{
    p4_frame *f = pool_get(&n->pool, HEADER);
    memset(f->data, 0, HEADER);
    f->wire_len = f->data_len = HEADER;
    f->data[12] = 8;
    f->data[14] = 0x45;
    f->data[16] = (len - 14) >> 8 & 255;
    f->data[17] = (len - 14) & 255;
    f->data[23] = 17;
    f->data[26] = f->data[30] = 10;
    f->data[28] = from >> 8 & 255;
    f->data[29] = from & 255;
    f->data[32] = to >> 8 & 255;
    f->data[33] = to & 255;
    f->data[36] = 4791 >> 8;
    f->data[37] = 4791 & 255;
    f->data[42] = len == ACK;
    return f;
}

static int receive(net *n, node *at, const p4_frame *frame)
{
    (void)n;
    bench_host *h = at->host;
    if (frame->data[42])
        h->in_flight--;
    else
        h->acks_due++;
    return 0;
}

static int next_frame(net *n, node *at, p4_frame **frame)
{
    bench_host *h = at->host;
    if (h->acks_due) {
        h->acks_due--;
        *frame = make(n, h->number, hosts[h->number].peer, ACK); /* a permutation of pairs: the peer is the sender too */
    } else if (h->in_flight < window) {
        h->in_flight++;
        *frame = make(n, h->number, h->peer, DATA);
    }
    return 0;
}

static int next_wakeup(net *n, node *at, uint64_t *time_ns)
{
    (void)n, (void)at;
    *time_ns = TIME_NEVER;
    return 0;
}

static void release(node *at)
{
    free(at->sw);
}

static const net_ops ops = {
    .receive = receive, .next_frame = next_frame, .next_wakeup = next_wakeup, .release = release,
};

/* -- the tree ------------------------------------------------------------------------------------------------------ */

static node *add_switch(net *n, uint32_t level, uint32_t pod, uint32_t number)
{
    p4_switch *sw = calloc(1, sizeof *sw);
    if (!sw)
        abort();
    *sw = (p4_switch){.level = level, .pod = pod, .number = number};
    node *at = net_add_node(n, sw);
    if (!at)
        abort();
    return at;
}

static void link(net *n, node *a, uint32_t a_port, node *b, uint32_t b_port)
{
    static const uint64_t rate_bps[2] = {100000000000u, 100000000000u};
    if (!net_connect(n, a, a_port, b, b_port, rate_bps, 1000, 0.0, 0, n->framing_bytes))
        abort();
}

static uint32_t build(net *n, uint32_t k)
{
    half = k / 2;
    uint32_t count = k * half * half;
    hosts = calloc(count, sizeof *hosts);
    node **core = calloc(half * half, sizeof *core);
    if (!hosts || !core)
        abort();
    for (uint32_t i = 0; i < half * half; i++)
        core[i] = add_switch(n, CORE, 0, i);
    for (uint32_t pod = 0; pod < k; pod++) {
        node *edges[64], *aggregations[64];
        for (uint32_t i = 0; i < half; i++) {
            edges[i] = add_switch(n, EDGE, pod, i);
            aggregations[i] = add_switch(n, AGGREGATION, pod, i);
        }
        for (uint32_t i = 0; i < half; i++)
            for (uint32_t j = 0; j < half; j++) {
                node *host = net_add_node(n, NULL);
                bench_host *h = &hosts[(pod * half + i) * half + j];
                h->number = (uint32_t)(h - hosts);
                h->peer = (h->number + count / 2) % count; /* always in another pod */
                host->host = h;
                link(n, host, 0, edges[i], j);
                link(n, edges[i], half + j, aggregations[j], i);
                link(n, aggregations[i], half + j, core[i * half + j], pod);
            }
    }
    free(core);
    return count;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    uint32_t k = (uint32_t)atoi(argv[1]);
    uint64_t until_ns = strtoull(argv[2], NULL, 10) * 1000;
    window = (uint32_t)atoi(argv[3]);
    if (k < 2 || k > 64 || k % 2 || !window)
        return 2;
    net *n = net_new(&ops, NULL);
    if (!n)
        return 1;
    n->independent = atoi(argv[4]);
    uint32_t count = build(n, k);
    double start = cpu_s();
    net_run(n, until_ns, UINT64_MAX);
    double spent = cpu_s() - start;
    uint64_t hops = 0;
    for (uint32_t i = 0; i < n->switches.count; i++)
        hops += n->switches.list[i]->sw->counts.transmitted;
    const net_counts c = net_count(n);
    const uint64_t in_flight = c.queued + c.on_wire;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"hosts\": %u, \"links\": %u, \"events\": %llu, \"hops\": %llu, \"delivered\": %llu, \"in_flight\": %llu, "
           "\"lost\": %lld, \"cpu_s\": %.6f, \"ns_per_hop\": %.2f, \"ns_per_event\": %.2f, \"max_rss_bytes\": %ld}\n",
           count, n->link_count, (unsigned long long)n->events, (unsigned long long)hops,
           (unsigned long long)n->ledger.delivered, (unsigned long long)in_flight,
           (long long)(n->ledger.entered - n->ledger.delivered - in_flight), spent, spent * 1e9 / (double)hops,
           spent * 1e9 / (double)n->events, usage.ru_maxrss * 1024L);
    net_free(n);
    for (p4_packet *p; (p = spare);) {
        spare = p->next;
        free(p);
    }
    free(hosts);
    return 0;
}
