/* The Python type Fabric: nodes, links, queues and their limits. */
#include "fabric.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RATE_BPS 100000000000000u /* 100 Tb/s */
#define MAX_DELAY_NS 1000000000000000u

/* None: `none`; else an int from `low` to `high`. For "O&"-less use after parsing; -1: an exception is set. */
static int limit(PyObject *value, const char *name, uint64_t low, uint64_t high, uint64_t none, uint64_t *out)
{
    *out = none;
    if (!value || value == Py_None)
        return 0;
    unsigned long long v = PyLong_AsUnsignedLongLong(value);
    bool failed = v == (unsigned long long)-1 && PyErr_Occurred();
    if (failed && !PyErr_ExceptionMatches(PyExc_OverflowError) && !PyErr_ExceptionMatches(PyExc_ValueError))
        return -1;
    if (failed || v < low || v > high) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s = %S; expected %llu to %llu", name, value, (unsigned long long)low,
                     (unsigned long long)high);
        return -1;
    }
    *out = v;
    return 0;
}

static int limit_bytes(PyObject *value, const char *name, uint64_t *out)
{
    return limit(value, name, 0, NET_MAX_TIME, TM_NO_LIMIT, out);
}

static int limit_packets(PyObject *value, const char *name, uint32_t *out)
{
    uint64_t v;
    if (limit(value, name, 0, UINT32_MAX, UINT32_MAX, &v) < 0)
        return -1;
    *out = (uint32_t)v;
    return 0;
}

/* None: -1; else a positive, finite float. */
static int factor(PyObject *value, const char *name, double *out)
{
    *out = -1;
    if (!value || value == Py_None)
        return 0;
    double v = PyFloat_AsDouble(value);
    if (v == -1 && PyErr_Occurred())
        return -1;
    if (!(v > 0 && v <= 1e6)) {
        PyErr_Format(PyExc_ValueError, "%s = %S; expected None or a number over 0 and up to 1e6", name, value);
        return -1;
    }
    *out = v;
    return 0;
}

static int round_robin(const char *scheduler, bool *out)
{
    *out = !strcmp(scheduler, "round_robin");
    if (*out || !strcmp(scheduler, "fifo"))
        return 0;
    PyErr_Format(PyExc_ValueError, "scheduler = '%s'; expected fifo or round_robin", scheduler);
    return -1;
}

static PyObject *named(node *at, const char *name)
{
    char text[32];
    if (!*name)
        PyOS_snprintf(text, sizeof text, "%s %u", at->sw ? "switch" : "host", at->index);
    at->name = strdup(*name ? name : text);
    return at->name ? PyLong_FromUnsignedLong(at->index) : PyErr_NoMemory();
}

PyObject *fabric_add_host(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"endpoint", "name", NULL};
    PyObject *endpoint;
    const char *name = "";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$s:add_host", names, &endpoint, &name))
        return NULL;
    host *h = PyMem_Calloc(1, sizeof *h);
    if (!h)
        return PyErr_NoMemory();
    node *at = NULL;
    if ((h->receive = PyObject_GetAttrString(endpoint, "receive"))
        && (h->next_frame = PyObject_GetAttrString(endpoint, "next_frame"))
        && (h->next_wakeup = PyObject_GetAttrString(endpoint, "next_wakeup_ns"))) {
        at = net_add_node(self->net, NULL);
        if (!at)
            PyErr_NoMemory();
    }
    if (!at) {
        Py_XDECREF(h->receive);
        Py_XDECREF(h->next_frame);
        Py_XDECREF(h->next_wakeup);
        PyMem_Free(h);
        return NULL;
    }
    at->host = h;
    return named(at, name);
}

PyObject *fabric_add_switch(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"switch", "name", "latency_ns", "scheduler", "queue_bytes", "queue_packets", "port_bytes",
                            "port_packets", "buffer_bytes", "alpha", "cell_bytes", NULL};
    PyObject *object, *latency = NULL, *queue_bytes = NULL, *queue_packets = NULL, *port_bytes = NULL;
    PyObject *port_packets = NULL, *buffer_bytes = NULL, *alpha_arg = NULL, *cell = NULL;
    const char *name = "", *scheduler = "fifo";
    node set = {0};
    uint64_t latency_ns, cell_bytes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$sOsOOOOOOO:add_switch", names, &object, &name, &latency,
                                     &scheduler, &queue_bytes, &queue_packets, &port_bytes, &port_packets,
                                     &buffer_bytes, &alpha_arg, &cell)
        || limit(latency, "latency_ns", 0, UINT32_MAX, 0, &latency_ns) < 0 || round_robin(scheduler, &set.round_robin) < 0
        || limit_bytes(queue_bytes, "queue_bytes", &set.queue_bytes) < 0
        || limit_packets(queue_packets, "queue_packets", &set.queue_packets) < 0
        || limit_bytes(port_bytes, "port_bytes", &set.port_bytes) < 0
        || limit_packets(port_packets, "port_packets", &set.port_packets) < 0
        || limit_bytes(buffer_bytes, "buffer_bytes", &set.tm.buffer_bytes) < 0
        || factor(alpha_arg, "alpha", &set.tm.alpha) < 0 || limit(cell, "cell_bytes", 0, 65536, 80, &cell_bytes) < 0)
        return NULL;
    if (set.tm.alpha >= 0 && set.tm.buffer_bytes == TM_NO_LIMIT)
        return PyErr_Format(PyExc_ValueError, "alpha: expected buffer_bytes with it");
    p4_switch *sw = p4_switch_of(object);
    if (!sw)
        return NULL;
    for (uint32_t i = 0; i < self->net->all.count; i++)
        if (self->net->all.list[i]->sw == sw)
            return PyErr_Format(PyExc_ValueError, "this switch is node %u already", i);
    node *at = net_add_node(self->net, sw);
    if (!at)
        return PyErr_NoMemory();
    at->latency_ns = (uint32_t)latency_ns;
    at->round_robin = set.round_robin;
    at->queue_bytes = set.queue_bytes;
    at->queue_packets = set.queue_packets;
    at->port_bytes = set.port_bytes;
    at->port_packets = set.port_packets;
    at->tm.buffer_bytes = set.tm.buffer_bytes;
    at->tm.alpha = set.tm.alpha;
    at->tm.cell_bytes = (uint32_t)cell_bytes;
    at->tm.managed = set.tm.buffer_bytes != TM_NO_LIMIT;
    Py_INCREF(object);
    at->object = object;
    return named(at, name);
}

PyObject *fabric_set_queue(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node", "port", "priority", "limit_bytes", "limit_packets", NULL};
    long index, number, priority;
    PyObject *bytes_arg = NULL, *packets_arg = NULL;
    uint64_t nbytes;
    uint32_t packets;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "lll|$OO:set_queue", names, &index, &number, &priority, &bytes_arg,
                                     &packets_arg)
        || limit_bytes(bytes_arg, "limit_bytes", &nbytes) < 0
        || limit_packets(packets_arg, "limit_packets", &packets) < 0
        || fabric_sync(self, "set_queue") < 0)
        return NULL;
    node *at = fabric_switch(self, index);
    net_port *port = at ? fabric_port(self, index, number) : NULL;
    if (!port)
        return NULL;
    if (priority < 0 || priority >= TM_PRIORITIES)
        return PyErr_Format(PyExc_ValueError, "priority %ld; expected 0 to 7", priority);
    port->tm.queues[priority].limit_bytes = nbytes;
    port->tm.queues[priority].limit_packets = packets;
    Py_RETURN_NONE;
}

PyObject *fabric_set_port(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node", "port", "limit_bytes", "limit_packets", "scheduler", NULL};
    long index, number;
    PyObject *bytes_arg = NULL, *packets_arg = NULL;
    const char *scheduler = "fifo";
    uint64_t nbytes;
    uint32_t packets;
    bool rounds;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ll|$OOs:set_port", names, &index, &number, &bytes_arg, &packets_arg,
                                     &scheduler)
        || limit_bytes(bytes_arg, "limit_bytes", &nbytes) < 0
        || limit_packets(packets_arg, "limit_packets", &packets) < 0 || round_robin(scheduler, &rounds) < 0
        || fabric_sync(self, "set_port") < 0)
        return NULL;
    node *at = fabric_switch(self, index);
    net_port *port = at ? fabric_port(self, index, number) : NULL;
    if (!port)
        return NULL;
    if (port->tm.packets)
        return PyErr_Format(PyExc_ValueError, "%s port %ld holds packets; expected an empty one", at->name, number);
    if (tm_set_round_robin(&port->tm, rounds) < 0)
        return PyErr_NoMemory();
    port->tm.limit_bytes = nbytes;
    port->tm.limit_packets = packets;
    Py_RETURN_NONE;
}

/* Takes the headroom of all lossless (port, priority) pairs off the buffer; false: it does not fit, nothing changed. */
static bool reserve_headroom(node *at)
{
    uint64_t reserved = 0;
    for (uint32_t i = 0; i < at->tm.port_count; i++) {
        const tm_port *port = at->tm.ports[i];
        if (port && port->lossless && port->pfc->headroom_bytes != TM_NO_LIMIT)
            reserved += port->pfc->headroom_bytes * (uint64_t)__builtin_popcount(port->lossless);
    }
    if (reserved > at->tm.buffer_bytes)
        return false;
    if (at->tm.buffer_bytes != TM_NO_LIMIT)
        at->tm.reserved_bytes = reserved;
    return true;
}

static void pfc_apply_config(net_port *port, const tm_pfc *config, uint8_t lossless)
{
    tm_pfc *pfc = port->tm.pfc;
    pfc->xoff_bytes = config->xoff_bytes;
    pfc->xon_gap_bytes = config->xon_gap_bytes;
    pfc->headroom_bytes = config->headroom_bytes;
    pfc->reaction_ns = config->reaction_ns;
    pfc->alpha = config->alpha;
    pfc->quanta = config->quanta;
    port->tm.lossless = lossless;
}

static int priority_mask(PyObject *priorities, uint8_t *mask)
{
    *mask = 0;
    if (!priorities) {
        PyErr_SetString(PyExc_TypeError, "set_pfc: expected priorities");
        return -1;
    }
    PyObject *list = PySequence_Fast(priorities, "priorities: expected a sequence of ints");
    for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(list); i++) {
        long p = PyLong_AsLong(PySequence_Fast_GET_ITEM(list, i));
        if (p < 0 || p >= TM_PRIORITIES) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "priority %ld; expected 0 to 7", p);
            Py_CLEAR(list);
            break;
        }
        *mask |= 1u << p;
    }
    Py_XDECREF(list);
    return list ? 0 : -1;
}

PyObject *fabric_set_pfc(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node", "priorities", "port", "xoff_bytes", "alpha", "xon_gap_bytes", "headroom_bytes",
                            "reaction_ns", "quanta", NULL};
    long index, number = -1;
    PyObject *priorities = NULL, *port_arg = Py_None, *xoff = NULL, *alpha = NULL, *gap = NULL, *headroom = NULL;
    PyObject *reaction = NULL, *quanta_arg = NULL;
    tm_pfc config;
    uint64_t quanta;
    uint8_t mask;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "l|$OOOOOOOO:set_pfc", names, &index, &priorities, &port_arg, &xoff,
                                     &alpha, &gap, &headroom, &reaction, &quanta_arg)
        || priority_mask(priorities, &mask) < 0 || limit_bytes(xoff, "xoff_bytes", &config.xoff_bytes) < 0
        || factor(alpha, "alpha", &config.alpha) < 0
        || limit(gap, "xon_gap_bytes", 0, NET_MAX_TIME, 0, &config.xon_gap_bytes) < 0
        || limit_bytes(headroom, "headroom_bytes", &config.headroom_bytes) < 0
        || limit(reaction, "reaction_ns", 0, UINT32_MAX, 0, &config.reaction_ns) < 0
        || limit(quanta_arg, "quanta", 1, 65535, 65535, &quanta) < 0
        || fabric_sync(self, "set_pfc") < 0)
        return NULL;
    config.quanta = (uint32_t)quanta;
    node *at = fabric_switch(self, index);
    if (!at)
        return NULL;
    if ((config.alpha >= 0) == (config.xoff_bytes != TM_NO_LIMIT))
        return PyErr_Format(PyExc_ValueError, "%s: expected one of xoff_bytes and alpha", at->name);
    if (config.alpha >= 0 && at->tm.buffer_bytes == TM_NO_LIMIT)
        return PyErr_Format(PyExc_ValueError, "%s: alpha: expected a switch with buffer_bytes", at->name);
    if (at->tm.used_bytes)
        return PyErr_Format(PyExc_ValueError, "%s holds packets; expected an empty switch", at->name);
    net_port *only = NULL;
    if (port_arg != Py_None) {
        number = PyLong_AsLong(port_arg);
        if (number == -1 && PyErr_Occurred())
            return NULL;
        only = fabric_port(self, index, number);
        if (!only)
            return NULL;
    }
    tm_pfc *kept = only ? NULL : malloc(sizeof *kept);
    struct { tm_pfc pfc; uint8_t lossless; } *old = calloc(at->tm.port_count + 1, sizeof *old);
    if (!old || (!only && !kept))
        goto no_memory;
    for (uint32_t i = 0; i < at->tm.port_count; i++) {
        tm_port *tm = at->tm.ports[i];
        if (!tm || (only && &only->tm != tm))
            continue;
        if (tm_pfc_alloc(tm) < 0)
            goto no_memory;
        old[i].pfc = *tm->pfc;
        old[i].lossless = tm->lossless;
        pfc_apply_config(net_port_of(tm), &config, mask);
    }
    if (!reserve_headroom(at)) {
        for (uint32_t i = 0; i < at->tm.port_count; i++) {
            tm_port *tm = at->tm.ports[i];
            if (tm && (!only || &only->tm == tm))
                pfc_apply_config(net_port_of(tm), &old[i].pfc, old[i].lossless);
        }
        reserve_headroom(at);
        free(kept);
        free(old);
        return PyErr_Format(PyExc_ValueError, "%s: the headroom of all ports is more than buffer_bytes = %llu", at->name,
                            (unsigned long long)at->tm.buffer_bytes);
    }
    if (kept) {
        *kept = config;
        free(at->pfc);
        at->pfc = kept;
        at->lossless = mask;
    }
    at->tm.managed = self->net->pfc_used = true;
    at->tm.dynamic_pfc |= config.alpha >= 0;
    free(old);
    Py_RETURN_NONE;
no_memory:
    free(kept);
    free(old);
    return PyErr_NoMemory();
}

static int free_port(fabric *self, long index, long number)
{
    node *at = fabric_node(self, index);
    if (!at)
        return -1;
    if (!at->sw && number)
        PyErr_Format(PyExc_ValueError, "%s: port %ld; expected 0, a host has one port", at->name, number);
    else if (number < 0 || number > TM_MAX_PORT)
        PyErr_Format(PyExc_ValueError, "%s: port %ld; expected 0 to %u", at->name, number, TM_MAX_PORT);
    else if (net_find_port(at, (uint32_t)number))
        PyErr_Format(PyExc_ValueError, "%s: port %ld is connected already", at->name, number);
    else
        return 0;
    return -1;
}

PyObject *fabric_connect(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"a", "a_port", "b", "b_port", "rate_bps", "delay_ns", "rate_back_bps", NULL};
    long a, a_port, b, b_port;
    PyObject *rate_arg = NULL, *delay_arg = NULL, *back_arg = NULL;
    uint64_t rate[2], delay_ns;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "llll|$OOO:connect", names, &a, &a_port, &b, &b_port, &rate_arg,
                                     &delay_arg, &back_arg)
        || limit(rate_arg, "rate_bps", 1, MAX_RATE_BPS, 0, &rate[0]) < 0
        || limit(back_arg, "rate_back_bps", 1, MAX_RATE_BPS, rate[0], &rate[1]) < 0
        || limit(delay_arg, "delay_ns", 0, MAX_DELAY_NS, 0, &delay_ns) < 0 || free_port(self, a, a_port) < 0
        || free_port(self, b, b_port) < 0
        || fabric_sync(self, "connect") < 0)
        return NULL;
    if (a == b && a_port == b_port)
        return PyErr_Format(PyExc_ValueError, "node %ld port %ld: expected two different ends", a, a_port);
    if (!rate[0])
        return PyErr_Format(PyExc_TypeError, "connect: expected rate_bps");
    if (!delay_arg || delay_arg == Py_None)
        return PyErr_Format(PyExc_TypeError, "connect: expected delay_ns");
    node *end[2] = {self->net->all.list[a], self->net->all.list[b]};
    net_port *port = net_connect(self->net, end[0], (uint32_t)a_port, end[1], (uint32_t)b_port, rate, delay_ns);
    if (!port)
        return PyErr_NoMemory();
    for (int i = 0; i < 2; i++) {
        net_port *p = i ? port->peer : port;
        if (end[i]->pfc)
            pfc_apply_config(p, end[i]->pfc, end[i]->lossless);
        if (!reserve_headroom(end[i]))
            return PyErr_Format(PyExc_ValueError, "%s: the headroom of all ports is more than buffer_bytes = %llu",
                                end[i]->name, (unsigned long long)end[i]->tm.buffer_bytes);
    }
    return PyLong_FromUnsignedLong(port->link);
}

static int check_link(fabric *self, long link)
{
    if (link >= 0 && (unsigned long)link < self->net->link_count)
        return 0;
    PyErr_Format(PyExc_ValueError, "link %ld: there are %u, from 0", link, self->net->link_count);
    return -1;
}

PyObject *fabric_set_link_up(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"link", "up", NULL};
    long link;
    int up;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "lp:set_link_up", names, &link, &up) || check_link(self, link) < 0
        || fabric_sync(self, "set_link_up") < 0)
        return NULL;
    net_link_up(self->net, (uint32_t)link, up);
    Py_RETURN_NONE;
}

PyObject *fabric_set_link_rate(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"link", "rate_bps", "direction", NULL};
    long link, direction = -1;
    PyObject *rate_arg, *direction_arg = Py_None;
    uint64_t rate;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "lO|$O:set_link_rate", names, &link, &rate_arg, &direction_arg)
        || limit(rate_arg, "rate_bps", 1, MAX_RATE_BPS, 0, &rate) < 0 || check_link(self, link) < 0
        || fabric_sync(self, "set_link_rate") < 0)
        return NULL;
    if (direction_arg != Py_None) {
        direction = PyLong_AsLong(direction_arg);
        if (direction == -1 && PyErr_Occurred())
            return NULL;
        if (direction != 0 && direction != 1)
            return PyErr_Format(PyExc_ValueError, "direction = %ld; expected 0 or 1", direction);
    }
    if (!rate)
        return PyErr_Format(PyExc_ValueError, "rate_bps = None; expected a number of bits a second");
    if (net_link_rate(self->net, (uint32_t)link, (int)direction, rate) < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyObject *fabric_watch_pfc(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"interval_ns", "storm_ns", "stop_on_deadlock", NULL};
    PyObject *interval_arg = NULL, *storm_arg = NULL;
    uint64_t interval, storm;
    int stop = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOp:watch_pfc", names, &interval_arg, &storm_arg, &stop)
        || limit(interval_arg, "interval_ns", 1, MAX_DELAY_NS, 100000, &interval) < 0
        || limit(storm_arg, "storm_ns", 1, MAX_DELAY_NS, 1000000, &storm) < 0)
        return NULL;
    self->net->watch_interval_ns = interval;
    self->net->storm_ns = storm;
    self->net->stop_on_deadlock = stop;
    Py_RETURN_NONE;
}
