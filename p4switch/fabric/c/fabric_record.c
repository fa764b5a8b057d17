/* The Python type Fabric: probes, samples, traces, captures, incidents. */
#include "fabric.h"

#include <string.h>

static const char *const probe_names[PROBE_KINDS] = {
    [PROBE_DEPTH_BYTES] = "depth_bytes", [PROBE_DEPTH_PACKETS] = "depth_packets",
    [PROBE_DEPTH_MAX_BYTES] = "depth_max_bytes", [PROBE_TX_BYTES] = "tx_bytes", [PROBE_PAUSED] = "paused",
    [PROBE_BUFFER_BYTES] = "buffer_bytes",
};

PyObject *fabric_probe(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"kind", "node", "port", "priority", NULL};
    recorder *r = &self->net->recorder;
    const char *name;
    long index, number = 0, priority = -1;
    PyObject *priority_arg = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sl|lO:probe", names, &name, &index, &number, &priority_arg))
        return NULL;
    probe p = {.kind = PROBE_KINDS};
    for (int i = 0; i < PROBE_KINDS; i++)
        if (!strcmp(name, probe_names[i]))
            p.kind = (probe_kind)i;
    if (p.kind == PROBE_KINDS)
        return PyErr_Format(PyExc_ValueError, "probe '%s'; expected depth_bytes, depth_packets, depth_max_bytes, tx_bytes, "
                            "paused or buffer_bytes", name);
    if (priority_arg != Py_None) {
        priority = PyLong_AsLong(priority_arg);
        if (priority == -1 && PyErr_Occurred())
            return NULL;
        if (priority < 0 || priority >= TM_PRIORITIES)
            return PyErr_Format(PyExc_ValueError, "priority %ld; expected None or 0 to 7", priority);
    }
    if (r->sampled)
        return PyErr_Format(PyExc_ValueError, "probe: expected before the first sample");
    p.node = p.kind == PROBE_TX_BYTES ? fabric_node(self, index) : fabric_switch(self, index);
    if (!p.node)
        return NULL;
    if (p.kind != PROBE_BUFFER_BYTES && !(p.port = fabric_port(self, index, number)))
        return NULL;
    if (p.kind == PROBE_TX_BYTES && priority >= 0)
        return PyErr_Format(PyExc_ValueError, "probe tx_bytes: priority %ld; expected None", priority);
    p.priority = (int)priority;
    probe *probes = realloc(r->probes, (r->probe_count + 1) * sizeof *probes);
    if (!probes)
        return PyErr_NoMemory();
    r->probes = probes;
    r->probes[r->probe_count] = p;
    return PyLong_FromUnsignedLong(r->probe_count++);
}

PyObject *fabric_sample(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"interval_ns", "start_ns", NULL};
    long long interval, start = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L|L:sample", names, &interval, &start))
        return NULL;
    if (interval < 1 || (uint64_t)interval > NET_MAX_TIME)
        return PyErr_Format(PyExc_ValueError, "interval_ns = %lld; expected at least 1", interval);
    if (start < 0 || (uint64_t)start < self->net->now || (uint64_t)start > NET_MAX_TIME)
        return PyErr_Format(PyExc_ValueError, "start_ns = %lld; expected at least %llu (now)", start,
                            (unsigned long long)self->net->now);
    if (fabric_sync(self, "sample") < 0)
        return NULL;
    net_end_window(self->net, (uint64_t)start);
    self->net->recorder.interval_ns = (uint64_t)interval;
    self->net->recorder.next_sample_ns = (uint64_t)start;
    Py_RETURN_NONE;
}

static PyObject *take_bytes(buffer *b)
{
    PyObject *bytes = PyBytes_FromStringAndSize(b->data, (Py_ssize_t)b->len);
    if (bytes)
        b->len = 0;
    return bytes;
}

#define NO_ARGUMENTS(name) \
    static char *names[] = {NULL}; \
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":" name, names)) \
        return NULL;

PyObject *fabric_samples(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("samples")
    PyObject *times = take_bytes(&self->net->recorder.times);
    PyObject *values = times ? take_bytes(&self->net->recorder.values) : NULL;
    PyObject *both = values ? PyTuple_Pack(2, times, values) : NULL;
    Py_XDECREF(times);
    Py_XDECREF(values);
    return both;
}

PyObject *fabric_trace(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tag", "packets", "from_ns", "until_ns", "pipelines", NULL};
    unsigned long tag, packets = UINT32_MAX;
    unsigned long long from = 0, until = TIME_NEVER;
    int pipelines = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "k|kKKp:trace", names, &tag, &packets, &from, &until, &pipelines))
        return NULL;
    flows *f = &self->net->flows;
    if (tag >= f->count)
        return PyErr_Format(PyExc_ValueError, "trace: tag %lu: there are %u; see flow()", tag, f->count - 1);
    if (tag)
        f->rows[tag].traced = true;
    else
        self->net->recorder.trace_all = true;
    recorder *r = &self->net->recorder;
    r->tracing = true;
    r->trace_most = packets < UINT32_MAX ? (uint32_t)packets : UINT32_MAX;
    r->trace_from_ns = from;
    r->trace_until_ns = until;
    r->trace_pipelines = pipelines;
    Py_RETURN_NONE;
}

static PyObject *event_of(const recorder *r, const hop *h)
{
    static const char *const words[] = {"send", "receive", "enqueue", "transmit"};
    if (h->event == HOP_PIPELINE) {
        p4_trace_event event;
        memcpy(&event, r->events.data + h->depth_bytes, sizeof event);
        return p4_trace_tuple(&event, r->events.data + h->depth_bytes + sizeof event);
    }
    return h->event < HOP_DROP ? PyUnicode_InternFromString(words[h->event])
                               : PyUnicode_FromFormat("drop:%s", fabric_drop_names[h->event - HOP_DROP]);
}

static int by_time_and_node(const void *a, const void *b)
{
    const hop *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

PyObject *fabric_trace_records(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("trace_records")
    net_sync(self->net);
    buffer *b = &self->net->recorder.hops;
    PyObject *list = PyList_New(0);
    if (b->len)
        qsort(b->data, b->len / sizeof(hop), sizeof(hop), by_time_and_node);
    for (uint64_t i = 0; list && i < b->len / sizeof(hop); i++) {
        const hop *h = (const hop *)(void *)b->data + i;
        uint64_t depth = h->event == HOP_PIPELINE ? 0 : h->depth_bytes;
        PyObject *record =
            Py_BuildValue("KINiiKIKi", (unsigned long long)h->time_ns, h->node, event_of(&self->net->recorder, h),
                          h->port, h->priority, (unsigned long long)depth, h->wire_len, (unsigned long long)h->packet, h->psn);
        if (!record || PyList_Append(list, record) < 0)
            Py_CLEAR(list);
        Py_XDECREF(record);
    }
    if (list)
        b->len = self->net->recorder.events.len = 0;
    return list;
}

PyObject *fabric_capture(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"link", "snap_bytes", NULL};
    long link, snap = 65535;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "l|l:capture", names, &link, &snap))
        return NULL;
    if (link < 0 || (unsigned long)link >= self->net->link_count)
        return PyErr_Format(PyExc_ValueError, "link %ld: there are %u, from 0", link, self->net->link_count);
    if (snap < 1 || snap > 1 << 20)
        return PyErr_Format(PyExc_ValueError, "snap_bytes = %ld; expected 1 to %d", snap, 1 << 20);
    for (int i = 0; i < 2; i++) {
        net_port *end = self->net->ends[2 * link + i];
        end->snap_bytes = (uint32_t)snap;
        end->captured = true;
    }
    Py_RETURN_NONE;
}

static int by_time_and_link(const void *a, const void *b)
{
    const capture_head *x = *(const capture_head *const *)a, *y = *(const capture_head *const *)b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->link != y->link)
        return x->link < y->link ? -1 : 1;
    if (x->direction != y->direction)
        return x->direction < y->direction ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The captured frames in order; NULL: no memory. */
static const capture_head **sort_captured(const buffer *b, uint64_t *count)
{
    buffer heads = {NULL, 0, 0};
    buffer_add(&heads, sizeof(void *)); /* so that it is never NULL */
    heads.len = 0;
    for (uint64_t at = 0; at < b->len;) {
        const capture_head *h = (const capture_head *)(void *)(b->data + at);
        *(const capture_head **)buffer_add(&heads, sizeof h) = h;
        at += sizeof *h + (h->data_len + 7u) / 8 * 8;
    }
    *count = heads.len / sizeof(capture_head *);
    qsort(heads.data, *count, sizeof(capture_head *), by_time_and_link);
    return (const capture_head **)(void *)heads.data;
}

PyObject *fabric_captured(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("captured")
    net_sync(self->net);
    buffer *b = &self->net->recorder.frames;
    uint64_t count;
    const capture_head **heads = sort_captured(b, &count);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list && i < count; i++) {
        const capture_head *h = heads[i];
        PyObject *record = Py_BuildValue("KIIy#I", (unsigned long long)h->time_ns, h->link, h->direction,
                                         (const char *)(h + 1), (Py_ssize_t)h->data_len, h->wire_len);
        if (record)
            PyList_SET_ITEM(list, (Py_ssize_t)i, record);
        else
            Py_CLEAR(list);
    }
    free(heads);
    if (list)
        b->len = 0;
    return list;
}

PyObject *fabric_pfc_events(fabric *self, PyObject *args, PyObject *kwargs)
{
    NO_ARGUMENTS("pfc_events")
    const buffer *b = &self->net->recorder.incidents;
    const incident *all = (const incident *)(void *)b->data;
    uint64_t count = b->len / sizeof *all;
    PyObject *list = PyList_New(0);
    for (uint64_t i = 0, j; list && i < count; i = j) {
        PyObject *queues = PyList_New(0);
        for (j = i; queues && j < count && all[j].id == all[i].id; j++) {
            PyObject *queue = Py_BuildValue("III", all[j].node, all[j].port, all[j].priority);
            if (!queue || PyList_Append(queues, queue) < 0)
                Py_CLEAR(queues);
            Py_XDECREF(queue);
        }
        PyObject *record = queues ? Py_BuildValue("KsIN", (unsigned long long)all[i].time_ns,
                                                  all[i].deadlock ? "deadlock" : "storm", all[i].id, queues) : NULL;
        if (!record || PyList_Append(list, record) < 0)
            Py_CLEAR(list);
        Py_XDECREF(record);
    }
    return list;
}
