/* The Python type Fabric: its life, its hosts' calls, and the run. */
#include "fabric.h"

#include "exchange.h"

#include <structmember.h>
#include <time.h>

#define MAX_FRAME_BYTES (1 << 20)
#define CHECK_EVENTS 65536 /* events between checks of signals and the wall clock */

const char *const fabric_drop_names[P4_DROP_REASONS] = {
    [P4_DROP_PROGRAM_INGRESS] = "program_ingress", [P4_DROP_PROGRAM_EGRESS] = "program_egress",
    [P4_DROP_BUFFER] = "buffer", [P4_DROP_NO_PORT] = "no_port", [P4_DROP_LINK_DOWN] = "link_down",
    [P4_DROP_LINK_LOSS] = "link_loss", [P4_DROP_HOPS] = "hops", [P4_DROP_ENDLESS] = "endless",
};

/* -- arguments --------------------------------------------------------------------------------------------------- */

node *fabric_node(fabric *self, long index)
{
    if (index < 0 || (unsigned long)index >= self->net->all.count) {
        PyErr_Format(PyExc_ValueError, "node %ld: there are %u, from 0", index, self->net->all.count);
        return NULL;
    }
    return self->net->all.list[index];
}

node *fabric_switch(fabric *self, long index)
{
    node *at = fabric_node(self, index);
    if (at && !at->sw) {
        PyErr_Format(PyExc_ValueError, "node %ld is a host; expected a switch", index);
        return NULL;
    }
    return at;
}

net_port *fabric_port(fabric *self, long index, long number)
{
    node *at = fabric_node(self, index);
    if (!at)
        return NULL;
    net_port *port = number < 0 || number > TM_MAX_PORT ? NULL : net_find_port(at, (uint32_t)number);
    if (!port)
        PyErr_Format(PyExc_ValueError, "node %ld has no port %ld that is connected", index, number);
    return port;
}

p4_frame *fabric_frame(fabric *self, PyObject *data)
{
    if (!PyBytes_Check(data)) {
        PyErr_Format(PyExc_TypeError, "a frame is bytes, not %s", Py_TYPE(data)->tp_name);
        return NULL;
    }
    Py_ssize_t len = PyBytes_GET_SIZE(data);
    if (len < 14 || len > MAX_FRAME_BYTES) {
        PyErr_Format(PyExc_ValueError, "a frame of %zd bytes; expected 14 to %d", len, MAX_FRAME_BYTES);
        return NULL;
    }
    p4_frame *frame = pool_get(&self->net->pool, (uint32_t)len);
    frame->wire_len = frame->data_len = (uint32_t)len;
    frame->tag = 0;
    memcpy(frame->data, PyBytes_AS_STRING(data), (size_t)len);
    return frame;
}

int fabric_sync(fabric *self, const char *what)
{
    if (self->net->independent && self->net->phase == PHASE_HOSTS) {
        PyErr_Format(PyExc_RuntimeError, "%s from within an endpoint that is declared independent; expected it in at()",
                     what);
        return -1;
    }
    if (self->net->midway) {
        PyErr_Format(PyExc_RuntimeError, "%s after an error in an endpoint; expected run() to go on first", what);
        return -1;
    }
    if (self->net->workers && self->net->phase == PHASE_HOSTS) {
        PyErr_Format(PyExc_RuntimeError, "%s from within a host's call, with several workers; expected it in at()", what);
        return -1;
    }
    net_sync(self->net);
    return 0;
}

/* -- calls to Python --------------------------------------------------------------------------------------------- */

/* Borrowed: the time as an int. */
static PyObject *now_int(fabric *self)
{
    uint64_t now = self->net->now;
    if (self->now && self->now_value == now)
        return self->now;
    PyObject *value = PyLong_FromUnsignedLongLong(now);
    if (value) {
        Py_XSETREF(self->now, value);
        self->now_value = now;
    }
    return value;
}

/* Calls method(now[, data]) and returns a new reference. */
static PyObject *call_host(fabric *self, host *h, PyObject *method, PyObject *data)
{
    PyObject *now = now_int(self);
    if (!now)
        return NULL;
    Py_INCREF(now); /* the host may change the clock's int during the call */
    PyObject *args[3] = {NULL, now, data};
    h->busy = true;
    PyObject *result = PyObject_Vectorcall(method, args + 1, (data ? 2 : 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    h->busy = false;
    Py_DECREF(now);
    return result;
}

static int host_receive(net *n, node *at, const p4_frame *frame)
{
    host *h = at->host;
    PyObject *data = PyBytes_FromStringAndSize((const char *)frame->data, frame->data_len);
    if (!data)
        return -1;
    PyObject *result = call_host(n->owner, h, h->receive, data);
    Py_DECREF(data);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int host_next_frame(net *n, node *at, p4_frame **frame)
{
    host *h = at->host;
    PyObject *result = call_host(n->owner, h, h->next_frame, NULL);
    if (!result)
        return -1;
    *frame = NULL;
    if (result != Py_None)
        *frame = fabric_frame(n->owner, result);
    bool failed = result != Py_None && !*frame;
    Py_DECREF(result);
    return failed ? -1 : 0;
}

static int host_next_wakeup(net *n, node *at, uint64_t *time_ns)
{
    (void)n;
    host *h = at->host;
    PyObject *none[1] = {NULL};
    h->busy = true;
    PyObject *result = PyObject_Vectorcall(h->next_wakeup, none + 1, 0 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    h->busy = false;
    if (!result)
        return -1;
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(result, &overflow);
    Py_DECREF(result);
    if (value == -1 && PyErr_Occurred())
        return -1;
    *time_ns = overflow > 0 ? TIME_NEVER : overflow < 0 || value < 0 ? 0 : (uint64_t)value;
    return 0;
}

static int host_may_report(net *n, node *at, const p4_frame *frame)
{
    (void)n;
    host *h = at->host;
    if (!h->may_report)
        return 1;
    PyObject *data = PyBytes_FromStringAndSize((const char *)frame->data, frame->data_len);
    PyObject *result = data ? PyObject_CallOneArg(h->may_report, data) : NULL;
    Py_XDECREF(data);
    int may = result ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    return may;
}

static void host_idle_but_due(net *n, node *at, uint64_t time_ns)
{
    PyErr_Format(PyExc_RuntimeError, "%s: next_frame gave None at %llu ns, but next_wakeup_ns is %llu",
                 at->name, (unsigned long long)n->now, (unsigned long long)time_ns);
}

static int run_call(net *n, void *arg)
{
    fabric *self = n->owner;
    PyObject *key = PyLong_FromVoidPtr(arg);
    if (!key)
        return -1;
    PyObject *call = PyDict_GetItemWithError(self->calls, key);
    PyObject *now = now_int(self), *result = NULL;
    if (call && now) {
        Py_INCREF(call);
        if (PyDict_DelItem(self->calls, key) == 0)
            result = PyObject_CallFunctionObjArgs(call, now, NULL);
        Py_DECREF(call);
    }
    Py_DECREF(key);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int settle(net *n, uint64_t end, bool again)
{
    fabric *self = n->owner;
    self->settling = true;
    PyObject *result = PyObject_CallFunction(self->settle, "KO", (unsigned long long)end, again ? Py_True : Py_False);
    self->settling = false;
    n->waits_ns = TIME_NEVER;
    if (!result)
        return -1;
    bool waits = result != Py_None;
    if (waits)
        n->waits_ns = PyLong_AsUnsignedLongLong(result);
    Py_DECREF(result);
    return waits && PyErr_Occurred() ? -1 : waits;
}

static void release_node(node *at)
{
    host *h = at->host;
    if (h) {
        Py_DECREF(h->receive);
        Py_DECREF(h->next_frame);
        Py_DECREF(h->next_wakeup);
        Py_XDECREF(h->may_report);
        PyMem_Free(h);
    }
    Py_XDECREF((PyObject *)at->object);
}

static const net_ops ops = {
    .receive = host_receive,
    .next_frame = host_next_frame,
    .next_wakeup = host_next_wakeup,
    .may_report = host_may_report,
    .idle_but_due = host_idle_but_due,
    .call = run_call,
    .deliver = fabric_deliver,
    .settle = settle,
    .release = release_node,
};

/* -- life -------------------------------------------------------------------------------------------------------- */

static PyObject *fabric_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"framing_bytes", "tick_ns", "independent_hosts", "settle", NULL};
    long framing_bytes = 0, tick_ns = 1;
    int independent = 0;
    PyObject *settle_arg = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$llpO:Fabric", names, &framing_bytes, &tick_ns, &independent,
                                     &settle_arg))
        return NULL;
    if (settle_arg != Py_None && (!independent || !PyCallable_Check(settle_arg)))
        return PyErr_Format(PyExc_TypeError, "settle: expected a callable, with independent_hosts");
    if (check_framing(framing_bytes) < 0)
        return NULL;
    if (tick_ns < 1 || tick_ns > 1000000000)
        return PyErr_Format(PyExc_ValueError, "tick_ns = %ld; expected 1 to 1000000000", tick_ns);
    fabric *self = (fabric *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->calls = PyDict_New();
    self->net = net_new(&ops, self);
    if (!self->calls || !self->net) {
        Py_DECREF(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    self->net->framing_bytes = (int32_t)framing_bytes;
    self->net->tick_ns = (uint32_t)tick_ns;
    self->net->independent = independent;
    self->net->settles = settle_arg != Py_None;
    self->net->careful_ns = self->net->waits_ns = self->net->brink_ns = TIME_NEVER;
    if (self->net->settles)
        self->settle = Py_NewRef(settle_arg);
    return (PyObject *)self;
}

static int fabric_traverse(fabric *self, visitproc visit, void *arg)
{
    Py_VISIT(self->calls);
    Py_VISIT(self->settle);
    Py_VISIT(self->deliver);
    Py_VISIT(self->waiting);
    Py_VISIT(self->exchange);
    for (uint32_t i = 0; self->net && i < self->net->all.count; i++) {
        host *h = self->net->all.list[i]->host;
        if (h) {
            Py_VISIT(h->receive);
            Py_VISIT(h->next_frame);
            Py_VISIT(h->next_wakeup);
            Py_VISIT(h->may_report);
        }
    }
    return 0;
}

/* Releases the endpoints; the rest stays usable until the end. */
static int fabric_clear(fabric *self)
{
    for (uint32_t i = 0; self->net && i < self->net->all.count; i++) {
        host *h = self->net->all.list[i]->host;
        if (h) {
            Py_INCREF(Py_None);
            Py_SETREF(h->receive, Py_None);
            Py_INCREF(Py_None);
            Py_SETREF(h->next_frame, Py_None);
            Py_INCREF(Py_None);
            Py_SETREF(h->next_wakeup, Py_None);
            Py_CLEAR(h->may_report);
        }
    }
    if (self->calls)
        PyDict_Clear(self->calls);
    Py_CLEAR(self->settle);
    Py_CLEAR(self->deliver);
    Py_CLEAR(self->waiting);
    Py_CLEAR(self->exchange);
    return 0;
}

static void fabric_dealloc(fabric *self)
{
    PyObject_GC_UnTrack(self);
    net_free(self->net);
    Py_XDECREF(self->calls);
    Py_XDECREF(self->settle);
    Py_XDECREF(self->now);
    Py_XDECREF(self->deliver);
    Py_XDECREF(self->waiting);
    Py_XDECREF(self->exchange);
    PyBuffer_Release(&self->memory);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* -- running ----------------------------------------------------------------------------------------------------- */

static double wall_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int optional_u64(PyObject *value, const char *name, uint64_t *out)
{
    if (!value || value == Py_None)
        return 0;
    unsigned long long v = PyLong_AsUnsignedLongLong(value);
    if (v == (unsigned long long)-1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return -1;
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s = %S; expected None or 0 to 2**64 - 1", name, value);
        return -1;
    }
    *out = v;
    return 0;
}

static net_status run_slices(fabric *self, uint64_t until, uint64_t max_events, double deadline, PyObject *progress,
                             uint64_t progress_events)
{
    net *n = self->net;
    uint64_t first = n->events, reported = n->events;
    for (n->late = false;; n->late = deadline > 0 && wall_s() > deadline) {
        uint64_t done = n->events - first, slice = CHECK_EVENTS;
        if (done >= max_events)
            return NET_BUDGET;
        if (slice > max_events - done)
            slice = max_events - done;
        if (progress && slice > progress_events - (n->events - reported))
            slice = progress_events - (n->events - reported);
        net_status status = net_run(n, until, slice);
        if (status != NET_BUDGET)
            return status;
        if (PyErr_CheckSignals() < 0)
            return NET_ERROR;
        if (progress && n->events - reported >= progress_events) {
            reported = n->events;
            PyObject *result = PyObject_CallFunction(progress, "KK", (unsigned long long)n->now,
                                                     (unsigned long long)n->events);
            if (!result)
                return NET_ERROR;
            Py_DECREF(result);
            if (n->stop) /* set there */
                return NET_STOPPED;
        }
    }
}

static PyObject *fabric_run(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"until_ns", "max_events", "max_wall_s", "progress", "progress_events", NULL};
    static const char *const words[] = {
        [NET_IDLE] = "idle", [NET_UNTIL] = "until", [NET_BUDGET] = "events", [NET_STOPPED] = "stopped",
        [NET_DEADLOCK] = "deadlock", [NET_WALL] = "wall",
    };
    PyObject *until_arg = NULL, *max_arg = NULL, *wall_arg = NULL, *progress = NULL;
    unsigned long long progress_events = 1000000;
    uint64_t until = TIME_NEVER, max_events = UINT64_MAX;
    double deadline = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOOK:run", names, &until_arg, &max_arg, &wall_arg, &progress,
                                     &progress_events)
        || optional_u64(until_arg, "until_ns", &until) < 0 || optional_u64(max_arg, "max_events", &max_events) < 0)
        return NULL;
    if (wall_arg && wall_arg != Py_None) {
        double limit = PyFloat_AsDouble(wall_arg);
        if (limit == -1 && PyErr_Occurred())
            return NULL;
        deadline = wall_s() + limit;
    }
    if (self->running) {
        PyErr_SetString(PyExc_RuntimeError, "run: the fabric is running already");
        return NULL;
    }
    if (until != TIME_NEVER && (until < self->net->now || until > NET_MAX_TIME))
        return PyErr_Format(PyExc_ValueError, "until_ns = %llu; expected %llu to %llu", (unsigned long long)until,
                            (unsigned long long)self->net->now, (unsigned long long)NET_MAX_TIME);
    if (!progress_events)
        return PyErr_Format(PyExc_ValueError, "progress_events = 0; expected at least 1");
    if (progress == Py_None)
        progress = NULL;
    self->running = true;
    Py_INCREF(self);
    net_status status = run_slices(self, until, max_events, deadline, progress, progress_events);
    self->running = false;
    Py_DECREF(self);
    if (status == NET_ERROR) /* a failure without a Python exception is lack of memory */
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    return PyUnicode_FromString(words[status]);
}

static PyObject *fabric_stop(fabric *self, PyObject *unused)
{
    (void)unused;
    self->net->stop = true;
    Py_RETURN_NONE;
}

static node *host_node(fabric *self, PyObject *arg)
{
    long index = PyLong_AsLong(arg);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    node *at = fabric_node(self, index);
    if (!at || !at->sw)
        return at;
    PyErr_Format(PyExc_ValueError, "node %ld is a switch; expected a host", index);
    return NULL;
}

static PyObject *fabric_at(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"time_ns", "call", "host", "own", NULL};
    PyObject *call, *time_arg;
    uint64_t time = 0;
    PyObject *host_arg = Py_None;
    node *at = NULL;
    int own = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$Op:at", names, &time_arg, &call, &host_arg, &own)
        || optional_u64(time_arg, "time_ns", &time) < 0)
        return NULL;
    if (time < self->net->now || time > NET_MAX_TIME)
        return PyErr_Format(PyExc_ValueError, "time_ns = %S; expected %llu (now) to %llu", time_arg,
                            (unsigned long long)self->net->now, (unsigned long long)NET_MAX_TIME);
    if (!PyCallable_Check(call))
        return PyErr_Format(PyExc_TypeError, "at: %R cannot be called", call);
    if (host_arg != Py_None && !(at = host_node(self, host_arg)))
        return NULL;
    if (at && at->away)
        Py_RETURN_NONE;
    void *number = (void *)(uintptr_t)++self->next_call;
    PyObject *key = PyLong_FromVoidPtr(number);
    if (!key || PyDict_SetItem(self->calls, key, call) < 0) {
        Py_XDECREF(key);
        return NULL;
    }
    Py_DECREF(key);
    net_at(self->net, time, number, at, own);
    Py_RETURN_NONE;
}

/* A host and a time from arguments, of a fabric that settles; NULL: an exception is set. */
static node *host_at(fabric *self, PyObject *args, const char *format, uint64_t *time)
{
    PyObject *host_arg, *time_arg;
    node *at;
    if (!PyArg_ParseTuple(args, format, &host_arg, &time_arg) || !(at = host_node(self, host_arg)))
        return NULL;
    *time = TIME_NEVER;
    if (optional_u64(time_arg, "time_ns", time) < 0)
        return NULL;
    if (self->net->settles)
        return at;
    PyErr_SetString(PyExc_RuntimeError, "hosts are not held; expected Fabric(settle=...)");
    return NULL;
}

static PyObject *fabric_hold(fabric *self, PyObject *args)
{
    uint64_t time;
    node *at = host_at(self, args, "OO:hold", &time);
    if (!at)
        return NULL;
    net_hold(self->net, at, time);
    Py_RETURN_NONE;
}

static PyObject *fabric_turn(fabric *self, PyObject *args)
{
    uint64_t time;
    node *at = host_at(self, args, "OO:turn", &time);
    if (!at)
        return NULL;
    net_turn(self->net, at, time);
    Py_RETURN_NONE;
}

static PyObject *fabric_go_on(fabric *self, PyObject *args)
{
    uint64_t time;
    node *at = host_at(self, args, "OO:go_on", &time);
    if (!at)
        return NULL;
    if (!self->settling)
        return PyErr_Format(PyExc_RuntimeError, "go_on: expected in settle");
    net_hold(self->net, at, time);
    self->net->current = at;
    if (net_go_on(self->net, at) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *fabric_settle_again(fabric *self, PyObject *unused)
{
    (void)unused;
    *(self->settling ? &self->net->unsettled : &self->net->held) = true;
    Py_RETURN_NONE;
}

static PyObject *get_known_ns(fabric *self, void *unused)
{
    (void)unused;
    const workers *w = self->net->workers;
    return PyLong_FromUnsignedLongLong(w ? min_time(self->net->known_ns, NET_NEVER) : NET_NEVER);
}

static PyObject *fabric_finished(fabric *self, PyObject *arg)
{
    int finished = PyObject_IsTrue(arg);
    if (finished < 0)
        return NULL;
    self->net->finished = finished;
    if (finished && !self->net->workers)
        self->net->stop = true;
    Py_RETURN_NONE;
}

static PyObject *fabric_careful_from(fabric *self, PyObject *arg)
{
    uint64_t time = TIME_NEVER;
    if (optional_u64(arg, "time_ns", &time) < 0)
        return NULL;
    net *n = self->net;
    if (n->careful_ns == TIME_NEVER || time > n->careful_ns)
        n->careful_ns = time;
    Py_RETURN_NONE;
}

static PyObject *fabric_kick(fabric *self, PyObject *arg)
{
    node *at = host_node(self, arg);
    if (!at)
        return NULL;
    if (!((host *)at->host)->busy && net_kick(self->net, at) < 0) /* a busy host is asked again anyway */
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *fabric_inject(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node", "port", "frame", NULL};
    long index, number;
    PyObject *data;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "llO:inject", names, &index, &number, &data))
        return NULL;
    node *at = fabric_switch(self, index);
    if (!at || fabric_sync(self, "inject") < 0)
        return NULL;
    if (number < 0 || number > TM_MAX_PORT)
        return PyErr_Format(PyExc_ValueError, "port %ld; expected 0 to %u", number, TM_MAX_PORT);
    p4_frame *frame = fabric_frame(self, data);
    if (!frame)
        return NULL;
    if (at->away)
        pool_put(&self->net->pool, frame);
    else
        net_inject(self->net, at, (uint32_t)number, frame);
    Py_RETURN_NONE;
}

static PyObject *get_now(fabric *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->net->now);
}

static PyObject *get_events(fabric *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->net->events);
}

static PyObject *get_nodes(fabric *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(self->net->all.count);
}

static PyObject *get_links(fabric *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(self->net->link_count);
}

/* -- the type ---------------------------------------------------------------------------------------------------- */

#define METHOD(name) {#name, (PyCFunction)(void (*)(void))fabric_##name, METH_VARARGS | METH_KEYWORDS, NULL}

static PyMethodDef methods[] = {
    METHOD(add_host), METHOD(add_switch), METHOD(set_queue), METHOD(set_port), METHOD(set_trimming), METHOD(set_pfc),
    METHOD(connect),
    METHOD(set_link_up), METHOD(set_link_rate), METHOD(set_link_delay), METHOD(set_link_loss),
    METHOD(watch_pfc),
    METHOD(run), METHOD(at), METHOD(inject),
    {"stop", (PyCFunction)fabric_stop, METH_NOARGS, NULL},
    {"kick", (PyCFunction)fabric_kick, METH_O, NULL},
    {"hold", (PyCFunction)fabric_hold, METH_VARARGS, NULL},
    {"turn", (PyCFunction)fabric_turn, METH_VARARGS, NULL},
    {"go_on", (PyCFunction)fabric_go_on, METH_VARARGS, NULL},
    {"settle_again", (PyCFunction)fabric_settle_again, METH_NOARGS, NULL},
    {"finished", (PyCFunction)fabric_finished, METH_O, NULL},
    {"careful_from", (PyCFunction)fabric_careful_from, METH_O, NULL},
    METHOD(port_stats), METHOD(queue_stats), METHOD(pfc_stats), METHOD(link_counters), METHOD(buffer_stats),
    METHOD(port_counts), METHOD(flow),
    METHOD(flow_stats), METHOD(conservation),
    METHOD(pfc_events), METHOD(probe), METHOD(sample), METHOD(samples), METHOD(trace), METHOD(trace_records),
    METHOD(capture), METHOD(captured),
    METHOD(join), METHOD(broadcast), METHOD(gather), METHOD(take_records), METHOD(add_records),
    {"shared_bytes", fabric_shared_bytes, METH_O | METH_STATIC, NULL},
    {"on_crash", fabric_on_crash, METH_O | METH_STATIC, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"now_ns", (getter)get_now, NULL, NULL, NULL},
    {"known_ns", (getter)get_known_ns, NULL, NULL, NULL},
    {"events", (getter)get_events, NULL, NULL, NULL},
    {"nodes", (getter)get_nodes, NULL, NULL, NULL},
    {"links", (getter)get_links, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "p4switch.engine._engine.Fabric",
    .tp_basicsize = sizeof(fabric),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Hosts, switches, links and one clock.",
    .tp_new = fabric_new,
    .tp_dealloc = (destructor)fabric_dealloc,
    .tp_traverse = (traverseproc)fabric_traverse,
    .tp_clear = (inquiry)fabric_clear,
    .tp_methods = methods,
    .tp_getset = getters,
};

int p4_fabric_register(PyObject *module)
{
    if (PyType_Ready(&type) < 0)
        return -1;
    Py_INCREF(&type);
    if (PyModule_AddObject(module, "Fabric", (PyObject *)&type) < 0) {
        Py_DECREF(&type);
        return -1;
    }
    return PyModule_AddIntConstant(module, "NEVER_NS", (long)NET_NEVER);
}
