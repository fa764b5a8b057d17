/* The Python type Fabric: nodes, links, queues and their limits. */
#include "fabric.h"
#include "py_settings.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RATE_BPS 100000000000000u /* 100 Tb/s */
#define MAX_DELAY_NS 1000000000000000u

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
        && (h->next_wakeup = PyObject_GetAttrString(endpoint, "next_wakeup_ns"))
        && (!PyObject_HasAttrString(endpoint, "may_report")
            || (h->may_report = PyObject_GetAttrString(endpoint, "may_report")))) {
        at = net_add_node(self->net, NULL);
        if (!at)
            PyErr_NoMemory();
    }
    if (!at) {
        Py_XDECREF(h->receive);
        Py_XDECREF(h->next_frame);
        Py_XDECREF(h->next_wakeup);
        Py_XDECREF(h->may_report);
        PyMem_Free(h);
        return NULL;
    }
    at->host = h;
    return named(at, name);
}

/* Takes a key out of a dict; *out is a new reference, or NULL. -1: an exception is set. */
static int take(PyObject *dict, const char *key, PyObject **out)
{
    *out = Py_XNewRef(PyDict_GetItemString(dict, key));
    return *out ? PyDict_DelItemString(dict, key) : 0;
}

PyObject *fabric_add_switch(fabric *self, PyObject *args, PyObject *kwargs)
{
    PyObject *object, *name_arg = NULL, *latency = NULL, *added = NULL;
    PyObject *traffic = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    tm_switch checked = {0};
    tm_limits limits;
    uint64_t latency_ns;
    const char *name = "";
    if (!traffic || take(traffic, "name", &name_arg) < 0 || take(traffic, "latency_ns", &latency) < 0
        || (name_arg && !(name = PyUnicode_AsUTF8(name_arg))) || !PyArg_ParseTuple(args, "O:add_switch", &object)
        || setting_number(latency, "latency_ns", 0, UINT32_MAX, 0, &latency_ns) < 0
        || settings_apply(traffic, &checked, &limits) < 0)
        goto out;
    p4_switch *sw = p4_switch_of(object);
    if (!sw)
        goto out;
    for (uint32_t i = 0; i < self->net->all.count; i++)
        if (self->net->all.list[i]->sw == sw) {
            PyErr_Format(PyExc_ValueError, "this switch is node %u already", i);
            goto out;
        }
    node *at = net_add_node(self->net, sw);
    if (!at) {
        PyErr_NoMemory();
        goto out;
    }
    settings_apply(traffic, &at->tm, &at->limits);
    at->latency_ns = (uint32_t)latency_ns;
    at->object = Py_NewRef(object);
    added = named(at, name);
out:
    Py_XDECREF(traffic);
    Py_XDECREF(name_arg);
    Py_XDECREF(latency);
    return added;
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
        || setting_bytes(bytes_arg, "limit_bytes", &nbytes) < 0
        || setting_packets(packets_arg, "limit_packets", &packets) < 0
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
        || setting_bytes(bytes_arg, "limit_bytes", &nbytes) < 0
        || setting_packets(packets_arg, "limit_packets", &packets) < 0 || setting_scheduler(scheduler, &rounds) < 0
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

PyObject *fabric_set_trimming(fabric *self, PyObject *args, PyObject *kwargs)
{
    PyObject *values = kwargs ? Py_NewRef(kwargs) : PyDict_New();
    long index, number;
    tm_trimming trimming;
    uint64_t limit_bytes, into_limit_bytes;
    bool good = values && PyArg_ParseTuple(args, "ll:set_trimming", &index, &number)
        && settings_trimming(values, &trimming, &limit_bytes, &into_limit_bytes) == 0
        && fabric_sync(self, "set_trimming") == 0;
    Py_XDECREF(values);
    node *at = good ? fabric_switch(self, index) : NULL;
    net_port *port = at ? fabric_port(self, index, number) : NULL;
    if (!port || settings_use_trimming(&port->tm, &trimming, limit_bytes, into_limit_bytes) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *fabric_set_pfc(fabric *self, PyObject *args, PyObject *kwargs)
{
    PyObject *port_arg = NULL, *done = NULL, *values = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    long index;
    tm_pfc config, *kept = NULL;
    uint8_t mask;
    struct { tm_pfc pfc; uint8_t lossless; } *old = NULL;
    if (!values || take(values, "port", &port_arg) < 0 || !PyArg_ParseTuple(args, "l:set_pfc", &index) || fabric_sync(self, "set_pfc") < 0)
        goto out;
    node *at = fabric_switch(self, index);
    if (!at || settings_pfc(values, &at->tm, &config, &mask) < 0)
        goto out;
    if (at->tm.used_bytes) {
        PyErr_Format(PyExc_ValueError, "%s holds packets; expected an empty switch", at->name);
        goto out;
    }
    net_port *only = NULL;
    if (port_arg && port_arg != Py_None) {
        long number = PyLong_AsLong(port_arg);
        if (number == -1 && PyErr_Occurred())
            goto out;
        only = fabric_port(self, index, number);
        if (!only)
            goto out;
    }
    kept = only ? NULL : malloc(sizeof *kept);
    old = calloc(at->tm.port_count + 1, sizeof *old);
    if (!old || (!only && !kept)) {
        PyErr_NoMemory();
        goto out;
    }
    for (uint32_t i = 0; i < at->tm.port_count; i++) {
        tm_port *tm = at->tm.ports[i];
        if (!tm || (only && &only->tm != tm))
            continue;
        if (tm_pfc_alloc(tm) < 0) {
            PyErr_NoMemory();
            goto out;
        }
        old[i].pfc = *tm->pfc;
        old[i].lossless = tm->lossless;
        settings_use_pfc(tm, &config, mask);
    }
    if (!settings_reserve_headroom(&at->tm)) {
        for (uint32_t i = 0; i < at->tm.port_count; i++) {
            tm_port *tm = at->tm.ports[i];
            if (tm && (!only || &only->tm == tm))
                settings_use_pfc(tm, &old[i].pfc, old[i].lossless);
        }
        settings_reserve_headroom(&at->tm);
        PyErr_Format(PyExc_ValueError, "%s: the headroom of all ports is more than buffer_bytes = %llu", at->name,
                     (unsigned long long)at->tm.buffer_bytes);
        goto out;
    }
    if (kept) {
        *kept = config;
        free(at->pfc);
        at->pfc = kept;
        at->lossless = mask;
        kept = NULL;
    }
    at->tm.managed = self->net->pfc_used = true;
    at->tm.dynamic_pfc |= config.alpha >= 0;
    done = Py_NewRef(Py_None);
out:
    free(kept);
    free(old);
    Py_XDECREF(values);
    Py_XDECREF(port_arg);
    return done;
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

static int check_loss(double loss)
{
    if (loss >= 0 && loss < 1)
        return 0;
    PyErr_SetString(PyExc_ValueError, "loss: expected a share of the frames from 0 to less than 1");
    return -1;
}

int check_framing(long framing_bytes)
{
    if (framing_bytes >= -1024 && framing_bytes <= 1024)
        return 0;
    PyErr_Format(PyExc_ValueError, "framing_bytes = %ld; expected -1024 to 1024", framing_bytes);
    return -1;
}

PyObject *fabric_connect(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"a", "a_port", "b", "b_port", "rate_bps", "delay_ns", "rate_back_bps", "loss",
                            "seed",  "framing_bytes", NULL};
    double loss = 0;
    unsigned long long seed = 0;
    long a, a_port, b, b_port, framing_bytes = self->net->framing_bytes;
    PyObject *rate_arg = NULL, *delay_arg = NULL, *back_arg = NULL;
    uint64_t rate[2], delay_ns;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "llll|$OOOdKl:connect", names, &a, &a_port, &b, &b_port, &rate_arg,
                                     &delay_arg, &back_arg, &loss, &seed, &framing_bytes)
        || check_framing(framing_bytes) < 0 || check_loss(loss) < 0
        || setting_number(rate_arg, "rate_bps", 1, MAX_RATE_BPS, 0, &rate[0]) < 0
        || setting_number(back_arg, "rate_back_bps", 1, MAX_RATE_BPS, rate[0], &rate[1]) < 0
        || setting_number(delay_arg, "delay_ns", 0, MAX_DELAY_NS, 0, &delay_ns) < 0 || free_port(self, a, a_port) < 0
        || free_port(self, b, b_port) < 0
        || fabric_sync(self, "connect") < 0)
        return NULL;
    if (a == b && !self->net->all.list[a]->sw)
        return PyErr_Format(PyExc_ValueError, "node %ld port %ld: expected two different ends", a, a_port);
    if (!rate[0])
        return PyErr_Format(PyExc_TypeError, "connect: expected rate_bps");
    if (!delay_arg || delay_arg == Py_None)
        return PyErr_Format(PyExc_TypeError, "connect: expected delay_ns");
    node *end[2] = {self->net->all.list[a], self->net->all.list[b]};
    net_port *port = net_connect(self->net, end[0], (uint32_t)a_port, end[1], (uint32_t)b_port, rate, delay_ns,
                                 loss, seed, (int32_t)framing_bytes);
    if (!port)
        return PyErr_NoMemory();
    for (int i = 0; i < 2; i++) {
        net_port *p = i ? port->peer : port;
        if (end[i]->pfc)
            settings_use_pfc(&p->tm, end[i]->pfc, end[i]->lossless);
        if (!settings_reserve_headroom(&end[i]->tm))
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
        || setting_number(rate_arg, "rate_bps", 1, MAX_RATE_BPS, 0, &rate) < 0 || check_link(self, link) < 0
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

PyObject *fabric_set_link_delay(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"link", "delay_ns", NULL};
    long link;
    PyObject *delay_arg;
    uint64_t delay_ns;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "lO:set_link_delay", names, &link, &delay_arg)
        || setting_number(delay_arg, "delay_ns", 0, MAX_DELAY_NS, 0, &delay_ns) < 0 || check_link(self, link) < 0
        || fabric_sync(self, "set_link_delay") < 0)
        return NULL;
    net_link_delay(self->net, (uint32_t)link, delay_ns);
    Py_RETURN_NONE;
}

PyObject *fabric_set_link_loss(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"link", "loss", NULL};
    long link;
    double loss;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ld:set_link_loss", names, &link, &loss) || check_loss(loss) < 0
        || check_link(self, link) < 0 || fabric_sync(self, "set_link_loss") < 0)
        return NULL;
    net_link_loss(self->net, (uint32_t)link, loss);
    Py_RETURN_NONE;
}

PyObject *fabric_watch_pfc(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"interval_ns", "storm_ns", "stop_on_deadlock", NULL};
    PyObject *interval_arg = NULL, *storm_arg = NULL;
    uint64_t interval, storm;
    int stop = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOp:watch_pfc", names, &interval_arg, &storm_arg, &stop)
        || setting_number(interval_arg, "interval_ns", 1, MAX_DELAY_NS, 100000, &interval) < 0
        || setting_number(storm_arg, "storm_ns", 1, MAX_DELAY_NS, 1000000, &storm) < 0)
        return NULL;
    self->net->watch_interval_ns = interval;
    self->net->storm_ns = storm;
    self->net->stop_on_deadlock = stop;
    Py_RETURN_NONE;
}
