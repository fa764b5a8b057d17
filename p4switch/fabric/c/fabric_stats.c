/* The Python type Fabric: counters as columns. */
#include "fabric.h"

#include "pfc.h"
#include "py_counts.h"

#include <string.h>

#define MAX_COLUMNS 32

/* Rows of int64 that become a dict of columns. */
typedef struct table {
    const char *names[MAX_COLUMNS];
    uint32_t columns, at;
    uint64_t rows;
    int64_t row[MAX_COLUMNS];
    buffer data;
} table;

/* Starts a row; cells follow in the same order for every row. */
static void row_begin(table *t)
{
    t->at = 0;
}

static void cell(table *t, const char *name, uint64_t value)
{
    t->names[t->at] = name;
    t->row[t->at++] = (int64_t)value;
}

static void row_end(table *t)
{
    t->columns = t->at;
    t->rows++;
    memcpy(buffer_add(&t->data, t->columns * sizeof(int64_t)), t->row, t->columns * sizeof(int64_t));
}

/* Makes a first row that only supplies the names. */
static void forget_row(table *t)
{
    t->rows = 0;
    t->data.len = 0;
}

static PyObject *table_dict(table *t)
{
    PyObject *dict = PyDict_New();
    const int64_t *cells = (const int64_t *)(void *)t->data.data;
    for (uint32_t c = 0; dict && c < t->columns; c++) {
        PyObject *column = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(t->rows * sizeof(int64_t)));
        if (column) {
            char *out = PyBytes_AS_STRING(column);
            for (uint64_t r = 0; r < t->rows; r++)
                memcpy(out + r * sizeof(int64_t), &cells[r * t->columns + c], sizeof(int64_t));
        }
        if (!column || PyDict_SetItemString(dict, t->names[c], column) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(column);
    }
    free(t->data.data);
    return dict;
}

#define NO_ARGUMENTS(name) \
    static char *names[] = {NULL}; \
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":" name, names)) \
        return NULL;

static void drop_cells(table *t, const uint64_t drops[P4_DROP_REASONS])
{
    static char names[P4_DROP_REASONS][32];
    for (int i = 0; i < P4_DROP_REASONS; i++) {
        PyOS_snprintf(names[i], sizeof names[i], "drop_%s", fabric_drop_names[i]);
        cell(t, names[i], drops[i]);
    }
}

static void port_row(table *t, const node *at, const net_port *port)
{
    static const net_port none;
    const net_port *p = port ? port : &none;
    uint64_t rx_packets = 0, rx_bytes = 0;
    if (port)
        net_received(port, &rx_packets, &rx_bytes);
    row_begin(t);
    cell(t, "node", at->index);
    cell(t, "port", port ? p->tm.number : UINT64_MAX);
    cell(t, "link", port ? p->link : UINT64_MAX);
    cell(t, "direction", port ? p->direction : UINT64_MAX);
    cell(t, "rate_bps", port ? p->tm.link.rate->rate_bps : 0);
    cell(t, "rx_packets", rx_packets);
    cell(t, "rx_bytes", rx_bytes);
    cell(t, "tx_packets", p->tm.sent_packets);
    cell(t, "tx_bytes", p->tm.sent_bytes);
    cell(t, "busy_ns", p->tm.link.busy_ns);
    drop_cells(t, port ? p->drops : at->lost_drops);
    cell(t, "drop_bytes", port ? p->drop_bytes : at->lost_bytes);
    cell(t, "depth_bytes", p->tm.bytes);
    cell(t, "max_bytes", p->tm.max_bytes);
    cell(t, "max_packets", p->tm.max_packets);
    row_end(t);
}

/* Visits the ports of all nodes, in order of node and port. */
#define EACH_NODE(n, at) \
    for (uint32_t i_ = 0; i_ < (n)->all.count; i_++) \
        for (node *at = (n)->all.list[i_]; at; at = NULL)
#define EACH_PORT(at, port) \
    for (uint32_t j_ = 0; j_ < ((at)->sw ? (at)->tm.port_count : 1); j_++) \
        for (net_port *port = net_find_port(at, j_); port; port = NULL)

PyObject *fabric_port_stats(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("port_stats")
    table t = {.rows = 0};
    net_sync(self->net);
    static const node nobody;
    port_row(&t, &nobody, NULL);
    forget_row(&t);
    EACH_NODE(self->net, at) {
        EACH_PORT(at, port)
            port_row(&t, at, port);
        if (at->lost_bytes)
            port_row(&t, at, NULL);
    }
    return table_dict(&t);
}

static void queue_row(table *t, const net_port *port, uint32_t priority, uint64_t now)
{
    static const tm_queue none;
    const tm_queue *q = port ? &port->tm.queues[priority] : &none;
    row_begin(t);
    cell(t, "node", port ? port->node->index : 0);
    cell(t, "port", port ? port->tm.number : 0);
    cell(t, "priority", priority);
    cell(t, "enqueued_packets", q->enqueued_packets);
    cell(t, "enqueued_bytes", q->enqueued_bytes);
    cell(t, "dropped_packets", q->dropped_packets);
    cell(t, "dropped_bytes", q->dropped_bytes);
    cell(t, "depth_bytes", q->bytes);
    cell(t, "depth_packets", q->packets);
    cell(t, "max_bytes", q->max_bytes);
    cell(t, "max_packets", q->max_packets);
    cell(t, "byte_ns", q->byte_ns + q->bytes * (now - q->since_ns));
    row_end(t);
}

PyObject *fabric_queue_stats(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("queue_stats")
    table t = {.rows = 0};
    net_sync(self->net);
    queue_row(&t, NULL, 0, 0);
    forget_row(&t);
    EACH_NODE(self->net, at)
        EACH_PORT(at, port)
            for (uint32_t i = 0; i < TM_PRIORITIES; i++)
                if (port->tm.queues[i].enqueued_packets || port->tm.queues[i].dropped_packets)
                    queue_row(&t, port, i, self->net->now);
    return table_dict(&t);
}

static void pfc_row(table *t, const net_port *port, uint32_t priority, uint64_t now)
{
    static const tm_class none;
    const tm_class *c = port ? &port->tm.pfc->classes[priority] : &none;
    uint64_t lasting = port && port->tm.paused >> priority & 1 ? now - c->paused_since_ns : 0;
    row_begin(t);
    cell(t, "node", port ? port->node->index : 0);
    cell(t, "port", port ? port->tm.number : 0);
    cell(t, "priority", priority);
    cell(t, "pauses_sent", c->pauses_sent);
    cell(t, "resumes_sent", c->resumes_sent);
    cell(t, "refreshes_sent", c->refreshes_sent);
    cell(t, "pauses_received", c->pauses_received);
    cell(t, "paused_ns", c->paused_ns + lasting);
    cell(t, "longest_ns", lasting > c->longest_ns ? lasting : c->longest_ns);
    cell(t, "ingress_max_bytes", c->ingress_max_bytes);
    cell(t, "headroom_max_bytes", c->headroom_max_bytes);
    row_end(t);
}

PyObject *fabric_pfc_stats(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("pfc_stats")
    table t = {.rows = 0};
    net_sync(self->net);
    pfc_row(&t, NULL, 0, 0);
    forget_row(&t);
    EACH_NODE(self->net, at)
        EACH_PORT(at, port)
            for (uint32_t i = 0; port->tm.pfc && i < TM_PRIORITIES; i++) {
                const tm_class *c = &port->tm.pfc->classes[i];
                if (c->pauses_sent || c->pauses_received || c->ingress_max_bytes)
                    pfc_row(&t, port, i, self->net->now);
            }
    return table_dict(&t);
}

/* How long a transmitter was paused, all priorities together. */
static uint64_t paused_ns(const tm_port *port, uint64_t now)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; port->pfc && i < TM_PRIORITIES; i++) {
        const tm_class *c = &port->pfc->classes[i];
        sum += c->paused_ns + (port->paused >> i & 1 ? now - c->paused_since_ns : 0);
    }
    return sum;
}

static void link_row(table *t, const node *at, const net_port *port, uint64_t now)
{
    uint64_t dropped = 0;
    for (int i = 0; i < P4_DROP_REASONS; i++)
        dropped += port->drops[i];
    row_begin(t);
    cell(t, "node", at->index);
    cell(t, "port", port->tm.number);
    cell(t, "tx_packets", port->tm.sent_packets);
    cell(t, "tx_bytes", port->tm.sent_bytes);
    cell(t, "busy_ns", port->tm.link.busy_ns);
    cell(t, "paused_ns", paused_ns(&port->tm, now));
    cell(t, "marked", port->marked);
    cell(t, "dropped", dropped);
    cell(t, "depth_bytes", port->tm.bytes);
    row_end(t);
}

/* Unlike port_stats it does not visit the frames on wires, so that a large network can be queried often. */
PyObject *fabric_link_counters(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("link_counters")
    table t = {.rows = 0};
    net_sync(self->net);
    static const node nobody;
    static const net_port nothing;
    link_row(&t, &nobody, &nothing, 0);
    forget_row(&t);
    EACH_NODE(self->net, at)
        EACH_PORT(at, port)
            link_row(&t, at, port, self->net->now);
    return table_dict(&t);
}

static void buffer_row(table *t, const node *at)
{
    row_begin(t);
    cell(t, "node", at->index);
    cell(t, "depth_bytes", at->tm.used_bytes);
    cell(t, "max_bytes", at->tm.max_bytes);
    row_end(t);
}

PyObject *fabric_buffer_stats(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("buffer_stats")
    table t = {.rows = 0};
    net_sync(self->net);
    static const node nobody;
    buffer_row(&t, &nobody);
    forget_row(&t);
    EACH_NODE(self->net, at)
        if (at->sw)
            buffer_row(&t, at);
    return table_dict(&t);
}

PyObject *fabric_port_counts(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node", NULL};
    long index;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "l:port_counts", names, &index))
        return NULL;
    node *at = fabric_switch(self, index);
    PyObject *dict = at ? PyDict_New() : NULL;
    if (!dict)
        return NULL;
    net_sync(self->net);
    EACH_PORT(at, port) {
        frame_counts frames = {.pfc_received = port->pfc_received, .pfc_sent = port->pfc_sent};
        net_received(port, &frames.received, &frames.received_bytes);
        frames.received += port->pfc_received;
        frames.received_bytes += PFC_BYTES * port->pfc_received;
        frames.sent = port->tm.sent_packets + port->pfc_sent;
        frames.sent_bytes = port->tm.sent_bytes + PFC_BYTES * port->pfc_sent;
        if (dict && counts_put(dict, &port->tm, &frames) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

PyObject *fabric_flow(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"src_ip", "dst_ip", "qp", NULL};
    unsigned long src, dst, qp;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "kkk:flow", names, &src, &dst, &qp))
        return NULL;
    if (src > UINT32_MAX || dst > UINT32_MAX || qp > 0xffffff)
        return PyErr_Format(PyExc_ValueError, "flow %lu, %lu, %lu; expected two IPv4 addresses and a 24-bit queue pair",
                            src, dst, qp);
    uint32_t tag = flows_tag(&self->net->flows, (flow_key){(uint32_t)src, (uint32_t)dst, (uint32_t)qp, 0});
    return tag ? PyLong_FromUnsignedLong(tag) : PyErr_NoMemory();
}

static void flow_row(table *t, const flow *f, uint32_t tag)
{
    row_begin(t);
    cell(t, "tag", tag);
    cell(t, "src_ip", f->src_ip);
    cell(t, "dst_ip", f->dst_ip);
    cell(t, "qp", f->qp);
    cell(t, "host", (uint64_t)(int64_t)f->host);
    cell(t, "sent_packets", f->sent_packets);
    cell(t, "sent_bytes", f->sent_bytes);
    cell(t, "delivered_packets", f->delivered_packets);
    cell(t, "delivered_bytes", f->delivered_bytes);
    cell(t, "dropped_packets", f->dropped_packets);
    cell(t, "dropped_bytes", f->dropped_bytes);
    cell(t, "first_sent_ns", (uint64_t)f->first_sent_ns);
    cell(t, "last_sent_ns", (uint64_t)f->last_sent_ns);
    cell(t, "first_delivered_ns", (uint64_t)f->first_delivered_ns);
    cell(t, "last_delivered_ns", (uint64_t)f->last_delivered_ns);
    row_end(t);
}

PyObject *fabric_flow_stats(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("flow_stats")
    table t = {.rows = 0};
    net_sync(self->net);
    const flows *f = &self->net->flows;
    flow_row(&t, &f->rows[0], 0);
    forget_row(&t);
    for (uint32_t tag = f->rows[0].sent_packets || f->rows[0].delivered_packets ? 0 : 1; tag < f->count; tag++)
        if (!f->rows[tag].of)
            flow_row(&t, &f->rows[tag], tag);
    return table_dict(&t);
}

static int put(PyObject *dict, const char *name, int64_t value)
{
    PyObject *number = PyLong_FromLongLong(value);
    int status = number ? PyDict_SetItemString(dict, name, number) : -1;
    Py_XDECREF(number);
    return status;
}

PyObject *fabric_conservation(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("conservation")
    net *n = self->net;
    net_sync(n);
    const net_ledger *l = &n->ledger;
    const net_counts c = net_count(n);
    const uint64_t copied = c.cloned + c.multicast;
    PyObject *dict = PyDict_New();
    if (!dict)
        return NULL;
    uint64_t dropped = 0;
    int bad = put(dict, "entered", (int64_t)l->entered) | put(dict, "copied", (int64_t)copied)
        | put(dict, "cloned", (int64_t)c.cloned) | put(dict, "multicast", (int64_t)c.multicast)
        | put(dict, "delivered", (int64_t)l->delivered) | put(dict, "queued", (int64_t)c.queued)
        | put(dict, "on_wire", (int64_t)c.on_wire) | put(dict, "pfc_sent", (int64_t)l->pfc_sent)
        | put(dict, "pfc_received", (int64_t)l->pfc_received) | put(dict, "pfc_lost", (int64_t)l->pfc_lost)
        | put(dict, "pfc_on_wire", (int64_t)c.pfc_on_wire);
    for (int i = 0; i < P4_DROP_REASONS; i++) {
        char name[32];
        PyOS_snprintf(name, sizeof name, "drop_%s", fabric_drop_names[i]);
        bad |= put(dict, name, (int64_t)l->drops[i]);
        dropped += l->drops[i];
    }
    bad |= put(dict, "balance", (int64_t)(l->entered + copied - l->delivered - dropped - c.queued - c.on_wire))
        | put(dict, "pfc_balance", (int64_t)(l->pfc_sent - l->pfc_received - l->pfc_lost - c.pfc_on_wire));
    if (bad)
        Py_CLEAR(dict);
    return dict;
}
