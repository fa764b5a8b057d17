/* The extension module `_live`: the types Switch (the engine's) and Live, a switch in real time. */
#include "python.h"

#include "live.h"
#include "py_counts.h"
#include "py_settings.h"

#include <errno.h>
#include <string.h>
#include <time.h>

typedef struct {
    PyObject_HEAD
    live *l;
    PyObject *sw; /* the Switch that packets go through, or NULL */
    pthread_t thread;
    bool running;
} live_object;

static PyObject *raise_errno(const char *what)
{
    return PyErr_SetFromErrnoWithFilename(PyExc_OSError, what);
}

static void take_lock(live_object *self)
{
    Py_BEGIN_ALLOW_THREADS
    live_lock(self->l);
    Py_END_ALLOW_THREADS
}

static int live_init(live_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tick_ns", "cell_bytes", "framing_bytes", "origin_ns", NULL};
    unsigned int tick_ns = 1000, cell_bytes = 80;
    int framing_bytes = 0;
    unsigned long long origin_ns = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|IIiK:Live", names, &tick_ns, &cell_bytes, &framing_bytes,
                                     &origin_ns))
        return -1;
    if (self->l || !tick_ns) {
        PyErr_SetString(PyExc_ValueError, "tick_ns: expected 1 or more");
        return -1;
    }
    self->l = live_new(tick_ns, cell_bytes, framing_bytes, origin_ns);
    if (!self->l) {
        raise_errno("eventfd");
        return -1;
    }
    return 0;
}

static live_port *find(live_object *self, unsigned int number)
{
    live_port *port = number < LIVE_MAX_PORTS ? self->l->ports[number] : NULL;
    if (!port)
        PyErr_Format(PyExc_ValueError, "there is no port %u", number);
    return port;
}

/* Returns the sender of its frames, and the reason if it is not the preferred one; None without an interface. */
static PyObject *live_add(live_object *self, PyObject *args)
{
    static const char *const senders[] = {[LIVE_SEND_AUTO] = "auto", [LIVE_SEND_PACKET] = "packet", [LIVE_SEND_XDP] = "xdp"};
    unsigned int number, ring_slots = 512, sender = LIVE_SEND_AUTO;
    int loops = 0;
    const char *interface, *name = senders[sender];
    if (!PyArg_ParseTuple(args, "Iz|Isp:add_port", &number, &interface, &ring_slots, &name, &loops))
        return NULL;
    while (sender <= LIVE_SEND_XDP && strcmp(name, senders[sender]))
        sender++;
    if (sender > LIVE_SEND_XDP)
        return PyErr_Format(PyExc_ValueError, "add_port: %s; expected auto, packet or xdp", name);
    take_lock(self);
    live_port *port = live_add_port(self->l, number, interface, ring_slots, sender, loops);
    bool xdp = port && port->xdp;
    int error = errno;
    live_unlock(self->l);
    errno = error;
    if (!port)
        return raise_errno(interface ? interface : "CPU port");
    live_wake(self->l);
    if (!interface)
        Py_RETURN_NONE;
    if (xdp || sender == LIVE_SEND_PACKET)
        return PyUnicode_FromString(xdp ? "AF_XDP" : "AF_PACKET");
    return PyUnicode_FromFormat("AF_PACKET (AF_XDP: %s)", strerror(error));
}

static PyObject *live_set_port(live_object *self, PyObject *args)
{
    unsigned int number;
    unsigned long long rate, delay;
    int framing_bytes = self->l->framing_bytes;
    if (!PyArg_ParseTuple(args, "IKK|i:set_port", &number, &rate, &delay, &framing_bytes))
        return NULL;
    live_port *port = find(self, number);
    if (!port)
        return NULL;
    take_lock(self);
    port->framing_bytes = framing_bytes;
    int failed = live_set_link(self->l, port, rate, delay);
    live_unlock(self->l);
    live_wake(self->l);
    if (failed)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *live_change_at(live_object *self, PyObject *args)
{
    unsigned int number;
    unsigned long long time, rate, delay, seed;
    double loss;
    int up;
    if (!PyArg_ParseTuple(args, "IKpKKdK:change_link", &number, &time, &up, &rate, &delay, &loss, &seed))
        return NULL;
    live_port *port = find(self, number);
    if (!port)
        return NULL;
    take_lock(self);
    live_change change = {time, port, !up, rate, delay, seed, loss};
    int failed = live_change_link(self->l, &change);
    live_unlock(self->l);
    live_wake(self->l);
    if (failed)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Applies to the switch and all its ports, including later ones. */
static PyObject *live_set_traffic(live_object *self, PyObject *args, PyObject *kwargs)
{
    PyObject *values = kwargs ? Py_NewRef(kwargs) : PyDict_New();
    live *l = self->l;
    if (!values || !PyArg_ParseTuple(args, ":set_traffic")) {
        Py_XDECREF(values);
        return NULL;
    }
    take_lock(self);
    int failed = settings_apply(values, &l->tm, &l->limits);
    bool memory = true;
    for (uint32_t i = 0; !failed && i < l->count; i++)
        memory &= tm_set_limits(&l->ports[l->numbers[i]]->tm, &l->limits) == 0;
    live_unlock(l);
    Py_DECREF(values);
    if (failed)
        return NULL;
    if (!memory)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *live_set_trimming(live_object *self, PyObject *args, PyObject *kwargs)
{
    unsigned int number;
    PyObject *values = kwargs ? Py_NewRef(kwargs) : PyDict_New();
    live_port *port = values && PyArg_ParseTuple(args, "I:set_trimming", &number) ? find(self, number) : NULL;
    tm_trimming trimming;
    uint64_t limit_bytes, into_limit_bytes;
    bool good = port && settings_trimming(values, &trimming, &limit_bytes, &into_limit_bytes) == 0;
    Py_XDECREF(values);
    if (!good)
        return NULL;
    take_lock(self);
    int failed = settings_use_trimming(&port->tm, &trimming, limit_bytes, into_limit_bytes);
    live_unlock(self->l);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *live_set_pfc(live_object *self, PyObject *args, PyObject *kwargs)
{
    unsigned int number;
    PyObject *values = kwargs ? Py_NewRef(kwargs) : PyDict_New();
    live_port *port = values && PyArg_ParseTuple(args, "I:set_pfc", &number) ? find(self, number) : NULL;
    tm_switch *tm = &self->l->tm;
    tm_pfc config;
    uint8_t lossless;
    if (!port || settings_pfc(values, tm, &config, &lossless) < 0) {
        Py_XDECREF(values);
        return NULL;
    }
    Py_DECREF(values);
    take_lock(self);
    bool allocated = tm_pfc_alloc(&port->tm) == 0, fits = true;
    if (allocated) {
        tm_pfc before = *port->tm.pfc;
        uint8_t lossless_before = port->tm.lossless;
        settings_use_pfc(&port->tm, &config, lossless);
        fits = settings_reserve_headroom(tm);
        if (fits) {
            tm->managed = true;
            tm->dynamic_pfc |= config.alpha >= 0;
        } else {
            settings_use_pfc(&port->tm, &before, lossless_before);
        }
    }
    live_unlock(self->l);
    if (!allocated)
        return PyErr_NoMemory();
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "the headroom of all ports is more than the buffer");
    Py_RETURN_NONE;
}

static PyObject *live_log_depths(live_object *self, PyObject *args)
{
    unsigned long long interval_ns;
    if (!PyArg_ParseTuple(args, "K:log_depths", &interval_ns))
        return NULL;
    take_lock(self);
    self->l->log_interval = interval_ns;
    live_unlock(self->l);
    Py_RETURN_NONE;
}

static PyObject *live_set_switch_object(live_object *self, PyObject *object)
{
    p4_switch *sw = NULL;
    if (object != Py_None) {
        sw = p4_switch_of(object);
        if (!sw)
            return NULL;
    }
    take_lock(self);
    live_set_switch(self->l, sw);
    live_unlock(self->l);
    PyObject *old = self->sw;
    self->sw = sw ? Py_NewRef(object) : NULL;
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

static PyObject *live_inject_frame(live_object *self, PyObject *args)
{
    unsigned int number;
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "Iy*:inject", &number, &data))
        return NULL;
    take_lock(self);
    int failed = data.len > UINT16_MAX ? (errno = EMSGSIZE, -1) : live_inject(self->l, number, data.buf, (size_t)data.len);
    int error = errno;
    live_unlock(self->l);
    PyBuffer_Release(&data);
    errno = error;
    if (failed)
        return raise_errno("inject");
    Py_RETURN_NONE;
}

static void *run(void *arg)
{
    live_loop(arg);
    return NULL;
}

static PyObject *live_start(live_object *self, PyObject *unused)
{
    (void)unused;
    if (self->running)
        return PyErr_Format(PyExc_RuntimeError, "started already");
    self->l->stop = false;
    errno = pthread_create(&self->thread, NULL, run, self->l);
    if (errno)
        return raise_errno("thread");
    self->running = true;
    Py_RETURN_NONE;
}

static PyObject *live_hold(live_object *self, PyObject *unused)
{
    (void)unused;
    take_lock(self);
    self->l->holds = true;
    live_unlock(self->l);
    Py_RETURN_NONE;
}

static PyObject *live_stop(live_object *self, PyObject *unused)
{
    (void)unused;
    if (self->running) {
        Py_BEGIN_ALLOW_THREADS
        live_lock(self->l);
        self->l->stop = true;
        pthread_cond_broadcast(&self->l->news);
        live_unlock(self->l);
        live_wake(self->l);
        pthread_join(self->thread, NULL);
        Py_END_ALLOW_THREADS
        self->running = false;
    }
    Py_RETURN_NONE;
}

static PyObject *live_enter(live_object *self, PyObject *unused)
{
    (void)unused;
    take_lock(self);
    return Py_NewRef(self);
}

static PyObject *live_exit(live_object *self, PyObject *unused)
{
    (void)unused;
    live_unlock(self->l);
    live_wake(self->l);
    Py_RETURN_NONE;
}

/* Waits until there are CPU frames, digests or messages of the program, or for the given time; returns the frames. */
static PyObject *live_take(live_object *self, PyObject *args)
{
    double timeout_s;
    if (!PyArg_ParseTuple(args, "d:take", &timeout_s))
        return NULL;
    live *l = self->l;
    struct timespec until;
    p4_frame *frames;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + (uint64_t)(timeout_s * 1e9);
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    Py_BEGIN_ALLOW_THREADS
    live_lock(l);
    /* A waiting thread does not want the lock. */
    __atomic_sub_fetch(&l->wanted, 1, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&l->turn);
    while (!l->cpu_first && !l->reported && !l->stop)
        if (pthread_cond_timedwait(&l->news, &l->lock, &until))
            break;
    __atomic_add_fetch(&l->wanted, 1, __ATOMIC_SEQ_CST);
    frames = l->cpu_first;
    l->cpu_first = NULL;
    l->cpu_last = &l->cpu_first;
    l->cpu_count = 0;
    l->reported = false;
    live_unlock(l);
    Py_END_ALLOW_THREADS
    PyObject *list = PyList_New(0);
    for (const p4_frame *f = frames; f; f = f->next) {
        PyObject *data = list ? PyBytes_FromStringAndSize(NULL, f->wire_len) : NULL;
        if (data) {
            uint32_t len = f->data_len < f->wire_len ? f->data_len : f->wire_len;
            memcpy(PyBytes_AS_STRING(data), f->data, len);
            memset(PyBytes_AS_STRING(data) + len, 0, f->wire_len - len);
            if (PyList_Append(list, data) < 0)
                Py_CLEAR(list);
            Py_DECREF(data);
        } else {
            Py_CLEAR(list);
        }
    }
    take_lock(self);
    for (p4_frame *f; (f = frames); live_frame_free(l, f))
        frames = f->next;
    live_unlock(l);
    return list;
}

static PyObject *live_now(live_object *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(live_clock(self->l));
}

static int put(PyObject *dict, const char *name, uint64_t value)
{
    PyObject *number = PyLong_FromUnsignedLongLong(value);
    int failed = number ? PyDict_SetItemString(dict, name, number) : -1;
    Py_XDECREF(number);
    return failed;
}

static int put_drops(PyObject *dict, const uint64_t *drops)
{
    static const char *const names[P4_DROP_REASONS] = {
        [P4_DROP_PROGRAM_INGRESS] = "drop_program_ingress", [P4_DROP_PROGRAM_EGRESS] = "drop_program_egress",
        [P4_DROP_BUFFER] = "drop_buffer", [P4_DROP_NO_PORT] = "drop_no_port",
        [P4_DROP_LINK_DOWN] = "drop_link_down", [P4_DROP_LINK_LOSS] = "drop_link_loss",
        [P4_DROP_HOPS] = "drop_hops",
        [P4_DROP_ENDLESS] = "drop_endless",
    };
    for (int i = 0; i < P4_DROP_REASONS; i++)
        if (names[i] && put(dict, names[i], drops[i]) < 0)
            return -1;
    return 0;
}

static PyObject *pfc_stats(const tm_port *tm)
{
    PyObject *rows = PyList_New(0);
    for (uint32_t i = 0; rows && tm->pfc && i < TM_PRIORITIES; i++) {
        const tm_class *c = &tm->pfc->classes[i];
        if (!c->pauses_sent && !c->pauses_received)
            continue;
        PyObject *d = PyDict_New();
        if (!d || put(d, "priority", i) < 0 || put(d, "pauses_sent", c->pauses_sent) < 0
            || put(d, "resumes_sent", c->resumes_sent) < 0 || put(d, "refreshes_sent", c->refreshes_sent) < 0
            || put(d, "pauses_received", c->pauses_received) < 0 || put(d, "paused_ns", c->paused_ns) < 0
            || put(d, "longest_ns", c->longest_ns) < 0 || put(d, "ingress_max_bytes", c->ingress_max_bytes) < 0
            || put(d, "headroom_max_bytes", c->headroom_max_bytes) < 0 || PyList_Append(rows, d) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(d);
    }
    return rows;
}

/* ([time, ...], [depth, ...]) */
static PyObject *depth_log(const live_log *log)
{
    PyObject *times = PyList_New((Py_ssize_t)log->count), *depths = PyList_New((Py_ssize_t)log->count);
    for (size_t i = 0; times && depths && i < log->count; i++) {
        PyList_SET_ITEM(times, (Py_ssize_t)i, PyLong_FromUnsignedLongLong(log->entries[i].time));
        PyList_SET_ITEM(depths, (Py_ssize_t)i, PyLong_FromUnsignedLongLong(log->entries[i].bytes));
    }
    return times && depths ? Py_BuildValue("(NN)", times, depths) : NULL;
}

/* Takes the object; NULL means that its creation failed. */
static int put_object(PyObject *dict, const char *name, PyObject *object)
{
    int failed = object ? PyDict_SetItemString(dict, name, object) : -1;
    Py_XDECREF(object);
    return failed;
}

static uint32_t pfc_on_wire(const wire *w)
{
    uint32_t count = 0;
    for (uint32_t i = w->head; i != w->tail; i++) {
        const p4_frame *frame = w->slots[i & w->mask].frame;
        count += pfc_is_frame(frame->data, frame->data_len);
    }
    return count;
}

static PyObject *port_stats(live_port *port)
{
    PyObject *d = PyDict_New();
    const tm_port *tm = &port->tm;
    if (!d)
        return NULL;
    live_ring_drops(&port->socket);
    if (put(d, "port", tm->number) < 0 || put(d, "rx_packets", port->rx_packets) < 0
        || put(d, "rx_bytes", port->rx_bytes) < 0 || put(d, "tx_packets", port->tx_packets) < 0
        || put(d, "tx_bytes", port->tx_bytes) < 0 || put(d, "rx_truncated", port->rx_truncated) < 0
        || put(d, "rx_ring_full", port->socket.ring_drops) < 0 || put(d, "tx_failed", port->tx_failed) < 0
        || put(d, "pfc_received", port->pfc_received) < 0 || put(d, "pfc_sent", port->pfc_sent) < 0
        || put(d, "busy_ns", tm->link.busy_ns) < 0 || put(d, "depth_bytes", tm->bytes) < 0
        || put(d, "depth_packets", tm->packets) < 0 || put(d, "max_bytes", tm->max_bytes) < 0
        || put(d, "max_packets", tm->max_packets) < 0
        || put(d, "on_wire_packets", port->wire.tail - port->wire.head) < 0 || put_drops(d, port->drops) < 0
        || put(d, "sends_by_xdp", port->xdp != NULL) < 0 || put(d, "on_wire_pfc", pfc_on_wire(&port->wire)) < 0 || put_object(d, "pfc", pfc_stats(tm)) < 0 || put_object(d, "depths", depth_log(&port->log)) < 0)
        Py_CLEAR(d);
    return d;
}

static int put_asserts(PyObject *dict, const p4_switch *sw)
{
    const char *first = NULL;
    uint64_t count = sw ? p4_switch_failed_asserts(sw, &first) : 0;
    PyObject *text = first ? PyUnicode_DecodeUTF8(first, (Py_ssize_t)strlen(first), "replace") : Py_NewRef(Py_None);
    return put(dict, "failed_asserts", count) < 0 ? -1 : put_object(dict, "failed_assert", text);
}

static PyObject *live_stats(live_object *self, PyObject *unused)
{
    (void)unused;
    live *l = self->l;
    PyObject *d = PyDict_New(), *ports = PyList_New(0), *lag = PyList_New(0);
    take_lock(self);
    bool failed = !d || !ports || !lag;
    for (uint32_t i = 0; i < l->count && !failed; i++) {
        PyObject *row = port_stats(l->ports[l->numbers[i]]);
        failed = !row || PyList_Append(ports, row) < 0;
        Py_XDECREF(row);
    }
    for (int i = 0; i < LIVE_LAG_BUCKETS && !failed; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(l->lag[i]);
        failed = !count || PyList_Append(lag, count) < 0;
        Py_XDECREF(count);
    }
    failed = failed || put(d, "now_ns", live_clock(l)) < 0 || put(d, "lag_max_ns", l->lag_max_ns) < 0
        || put(d, "lag_sum_ns", l->lag_sum_ns) < 0
        || put(d, "origin_ns", l->origin) < 0 || put(d, "cloned", l->sw ? p4_switch_get_counts(l->sw).cloned : 0) < 0
        || put(d, "multicast", l->sw ? p4_switch_get_counts(l->sw).multicast : 0) < 0
        || put(d, "cpu_dropped", l->cpu_dropped) < 0 || put(d, "no_pipeline", l->no_pipeline) < 0
        || put(d, "buffer_bytes", l->tm.used_bytes) < 0 || put(d, "buffer_max_bytes", l->tm.max_bytes) < 0
        || put_asserts(d, l->sw) < 0 || put_drops(d, l->lost_drops) < 0 || PyDict_SetItemString(d, "ports", ports) < 0
        || PyDict_SetItemString(d, "lag_log2_ns", lag) < 0;
    live_unlock(l);
    Py_XDECREF(ports);
    Py_XDECREF(lag);
    if (failed)
        Py_CLEAR(d);
    return d;
}

static void live_dealloc(live_object *self)
{
    if (self->l) {
        PyObject *none = live_stop(self, NULL);
        Py_XDECREF(none);
        live_free(self->l);
    }
    Py_XDECREF(self->sw);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *live_port_counts(live_object *self, PyObject *unused)
{
    (void)unused;
    const live *l = self->l;
    PyObject *dict = PyDict_New();
    take_lock(self);
    for (uint32_t i = 0; i < l->count && dict; i++) {
        const live_port *port = l->ports[l->numbers[i]];
        const frame_counts frames = {port->rx_packets, port->rx_bytes, port->pfc_received,
                                     port->tx_packets, port->tx_bytes, port->pfc_sent};
        if (counts_put(dict, &port->tm, &frames) < 0)
            Py_CLEAR(dict);
    }
    live_unlock(self->l);
    return dict;
}

static PyMethodDef methods[] = {
    {"add_port", (PyCFunction)live_add, METH_VARARGS, NULL},
    {"set_port", (PyCFunction)live_set_port, METH_VARARGS, NULL},
    {"change_link", (PyCFunction)live_change_at, METH_VARARGS, NULL},
    {"set_traffic", (PyCFunction)(void (*)(void))live_set_traffic, METH_VARARGS | METH_KEYWORDS, NULL},
    {"set_trimming", (PyCFunction)(void (*)(void))live_set_trimming, METH_VARARGS | METH_KEYWORDS, NULL},
    {"set_pfc", (PyCFunction)(void (*)(void))live_set_pfc, METH_VARARGS | METH_KEYWORDS, NULL},
    {"log_depths", (PyCFunction)live_log_depths, METH_VARARGS, NULL},
    {"set_switch", (PyCFunction)live_set_switch_object, METH_O, NULL},
    {"inject", (PyCFunction)live_inject_frame, METH_VARARGS, NULL},
    {"start", (PyCFunction)live_start, METH_NOARGS, NULL},
    {"hold", (PyCFunction)live_hold, METH_NOARGS, NULL},
    {"stop", (PyCFunction)live_stop, METH_NOARGS, NULL},
    {"take", (PyCFunction)live_take, METH_VARARGS, NULL},
    {"now_ns", (PyCFunction)live_now, METH_NOARGS, NULL},
    {"port_counts", (PyCFunction)live_port_counts, METH_NOARGS, NULL},
    {"stats", (PyCFunction)live_stats, METH_NOARGS, NULL},
    {"__enter__", (PyCFunction)live_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)live_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject live_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "p4switch.daemon._live.Live",
    .tp_basicsize = sizeof(live_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)live_init,
    .tp_dealloc = (destructor)live_dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_live", .m_size = -1};

PyMODINIT_FUNC PyInit__live(void)
{
    if (PyType_Ready(&live_type) < 0)
        return NULL;
    PyObject *self = PyModule_Create(&module);
    if (!self)
        return NULL;
    if (p4_engine_register(self) < 0 || PyModule_AddObjectRef(self, "Live", (PyObject *)&live_type) < 0)
        Py_CLEAR(self);
    return self;
}
