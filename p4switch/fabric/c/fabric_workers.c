/* The Python type Fabric: functions for one of several workers that simulate the same network. */
#include "fabric.h"
#include "exchange.h"

#include <string.h>

#define SLEEP_MS 20    /* at a time */
#define LOOK_EACH 5    /* number of sleeps between checks that the others still exist */
#define MOST_WORKERS 1024
#define MOST_SHARING 256 /* one memory */
#define WORD_BYTES (UINT64_C(1) << 30) /* of what is gathered, at most in one word */

PyObject *fabric_shared_bytes(PyObject *unused, PyObject *arg)
{
    (void)unused;
    long count = PyLong_AsLong(arg);
    if (count == -1 && PyErr_Occurred())
        return NULL;
    if (count < 1 || count > MOST_SHARING)
        return PyErr_Format(PyExc_ValueError, "%ld workers; expected 1 to %d", count, MOST_SHARING);
    return PyLong_FromUnsignedLongLong(shared_memory_bytes((uint32_t)count));
}

/* Waits for other workers: sleeps, and at intervals checks whether to continue. */
static int pause_worker(void *owner, const uint32_t *word, uint32_t value)
{
    fabric *self = owner;
    Py_BEGIN_ALLOW_THREADS
    shared_memory_sleep(word, value, SLEEP_MS);
    Py_END_ALLOW_THREADS
    if (PyErr_CheckSignals() < 0)
        return -1;
    if (++self->pauses % LOOK_EACH)
        return 0;
    PyObject *result = PyObject_CallNoArgs(self->waiting);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* By node; NULL: an exception is set. To be freed by PyMem_Free. */
static uint32_t *owners_of(fabric *self, PyObject *owners, uint32_t count, uint32_t *hosts)
{
    net *n = self->net;
    PyObject *list = PySequence_Fast(owners, "owners: expected a sequence");
    if (!list)
        return NULL;
    uint32_t *by_node = PyMem_Calloc(n->all.count + 1, sizeof *by_node);
    Py_ssize_t len = PySequence_Fast_GET_SIZE(list);
    if (!by_node)
        PyErr_NoMemory();
    else if (len != (Py_ssize_t)n->all.count)
        PyErr_Format(PyExc_ValueError, "owners: %zd; expected one for each of %u nodes", len, n->all.count);
    uint32_t seen = UINT32_MAX;
    *hosts = 0; /* number of workers in a row that have hosts */
    for (Py_ssize_t i = 0; i < len && !PyErr_Occurred(); i++) {
        long owner = PyLong_AsLong(PySequence_Fast_GET_ITEM(list, i));
        if (owner == -1 && PyErr_Occurred())
            break;
        if (owner < 0 || owner >= (long)count) {
            PyErr_Format(PyExc_ValueError, "owners: %ld; expected 0 to %u", owner, count - 1);
            break;
        }
        by_node[i] = (uint32_t)owner;
        if (!n->all.list[i]->sw && by_node[i] != seen) {
            seen = by_node[i];
            ++*hosts;
        }
    }
    Py_DECREF(list);
    if (!PyErr_Occurred())
        return by_node;
    PyMem_Free(by_node);
    return NULL;
}

/* The transport to the other workers: shared memory or a function. NULL: an exception is set. */
static transport *way_of(fabric *self, uint32_t rank, uint32_t count, PyObject *memory, uint32_t spins)
{
    transport *way;
    if (!memory) {
        way = fabric_exchange_open(self, rank, count);
    } else {
        if (PyObject_GetBuffer(memory, &self->memory, PyBUF_WRITABLE) < 0)
            return NULL;
        if (count > MOST_SHARING || (uint64_t)self->memory.len < shared_memory_bytes(count)) {
            PyErr_Format(PyExc_ValueError, "join: %zd bytes; expected shared_bytes(%u)", self->memory.len, count);
            return NULL;
        }
        way = shared_memory_open(self->memory.buf, (uint64_t)self->memory.len, rank, count, spins, pause_worker, self);
    }
    if (!way)
        PyErr_NoMemory();
    return way;
}

PyObject *fabric_join(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"rank", "count", "owners", "deliver", "memory", "waiting", "spins", "exchange", NULL};
    unsigned int rank, count, spins = 0;
    uint32_t hosts;
    PyObject *owners, *deliver = NULL, *memory = NULL, *waiting = NULL, *exchange = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "IIO|$OOOIO:join", names, &rank, &count, &owners, &deliver, &memory,
                                     &waiting, &spins, &exchange))
        return NULL;
    net *n = self->net;
    if (n->workers || n->events)
        return PyErr_Format(PyExc_ValueError, "join: expected before the first event, and once");
    if (!count || count > MOST_WORKERS || rank >= count)
        return PyErr_Format(PyExc_ValueError, "worker %u of %u; expected less than %d", rank, count, MOST_WORKERS);
    if (!deliver || !memory != !waiting || !memory == !exchange)
        return PyErr_Format(PyExc_TypeError, "join: expected deliver, and memory and waiting, or exchange");
    uint32_t *by_node = owners_of(self, owners, count, &hosts);
    if (!by_node)
        return NULL;
    transport *way = NULL;
    if (hosts > 1 && !n->independent)
        PyErr_Format(PyExc_ValueError, "join: hosts that are not independent are all one worker's");
    else if ((way = way_of(self, rank, count, memory, spins)) && !workers_join(n, way, by_node))
        PyErr_NoMemory();
    PyMem_Free(by_node);
    if (PyErr_Occurred())
        return NULL;
    self->deliver = Py_NewRef(deliver);
    self->waiting = Py_XNewRef(waiting);
    self->exchange = Py_XNewRef(exchange);
    Py_RETURN_NONE;
}

static PyObject *word_bytes(const word *w)
{
    return PyBytes_FromStringAndSize((const char *)(w + 1), w->bytes);
}

int fabric_deliver(net *n)
{
    fabric *self = n->owner;
    workers *w = n->workers;
    PyObject *list = PyList_New(0);
    for (uint32_t from = 0; list && from < w->count; from++) {
        uint64_t at = 0;
        for (const word *next; list && (next = workers_next_word(workers_all_of(&w->broadcast[from]), &at));) {
            PyObject *data = word_bytes(next);
            if (!data || PyList_Append(list, data) < 0)
                Py_CLEAR(list);
            Py_XDECREF(data);
        }
        w->broadcast[from].len = 0;
    }
    PyObject *result = list ? PyObject_CallOneArg(self->deliver, list) : NULL;
    Py_XDECREF(list);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static workers *workers_of(fabric *self, const char *what)
{
    if (!self->net->workers)
        PyErr_Format(PyExc_RuntimeError, "%s: the fabric has not joined others", what);
    return self->net->workers;
}

PyObject *fabric_broadcast(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", "others", NULL};
    const char *data;
    Py_ssize_t len;
    int others = 0;
    workers *w = workers_of(self, "broadcast");
    if (!w || !PyArg_ParseTupleAndKeywords(args, kwargs, "y#|p:broadcast", names, &data, &len, &others))
        return NULL;
    if (!others)
        workers_say(w, w->rank, WORD_BROADCAST, data, (uint64_t)len);
    workers_say_others(w, WORD_BROADCAST, data, (uint64_t)len);
    Py_RETURN_NONE;
}

/* All messages of a worker, concatenated. */
static PyObject *gathered_from(buffer *b)
{
    uint64_t len = 0, at = 0;
    for (const word *next; (next = workers_next_word(workers_all_of(b), &at));)
        len += next->bytes;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)len);
    char *to = bytes ? PyBytes_AS_STRING(bytes) : NULL;
    at = 0;
    for (const word *next; to && (next = workers_next_word(workers_all_of(b), &at)); to += next->bytes)
        memcpy(to, next + 1, next->bytes);
    free(b->data);
    *b = (buffer){0};
    return bytes;
}

PyObject *fabric_gather(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", "to_all", NULL};
    const char *data;
    Py_ssize_t len;
    int to_all = 0;
    workers *w = workers_of(self, "gather");
    if (!w || !PyArg_ParseTupleAndKeywords(args, kwargs, "y#|p:gather", names, &data, &len, &to_all)
        || fabric_sync(self, "gather") < 0)
        return NULL;
    for (uint64_t at = 0; at < (uint64_t)len; at += WORD_BYTES) {
        uint64_t piece = (uint64_t)len - at < WORD_BYTES ? (uint64_t)len - at : WORD_BYTES;
        for (uint32_t to = 0; to < (to_all ? w->count : 1); to++)
            workers_say(w, to, WORD_GATHERED, data + at, piece);
    }
    if (workers_meet(self->net) < 0)
        return NULL;
    PyObject *list = PyList_New(0);
    for (uint32_t from = 0; list && (to_all || w->rank == 0) && from < w->count; from++) {
        PyObject *bytes = gathered_from(&w->gathered[from]);
        if (!bytes || PyList_Append(list, bytes) < 0)
            Py_CLEAR(list);
        Py_XDECREF(bytes);
    }
    return list;
}

PyObject *fabric_take_records(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":take_records", names))
        return NULL;
    recorder *r = &self->net->recorder;
    buffer *all[] = {&r->hops, &r->events, &r->frames};
    uint64_t len = 0;
    for (int i = 0; i < 3; i++)
        len += sizeof(uint64_t) + all[i]->len;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)len);
    char *to = bytes ? PyBytes_AS_STRING(bytes) : NULL;
    for (int i = 0; to && i < 3; i++) {
        memcpy(to, &all[i]->len, sizeof(uint64_t));
        to += sizeof(uint64_t);
        if (all[i]->len)
            memcpy(to, all[i]->data, all[i]->len);
        to += all[i]->len;
        all[i]->len = 0;
    }
    return bytes;
}

PyObject *fabric_add_records(fabric *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", NULL};
    const char *data;
    Py_ssize_t len;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y#:add_records", names, &data, &len))
        return NULL;
    recorder *r = &self->net->recorder;
    buffer *all[] = {&r->hops, &r->events, &r->frames};
    uint64_t events = r->events.len, hops = r->hops.len;
    for (int i = 0; i < 3; i++) {
        uint64_t part;
        memcpy(&part, data, sizeof part);
        data += sizeof part;
        if (part)
            memcpy(buffer_add(all[i], part), data, part);
        data += part;
    }
    for (hop *h = (hop *)(void *)(r->hops.data + hops); (char *)h < r->hops.data + r->hops.len; h++)
        if (h->event == HOP_PIPELINE)
            h->depth_bytes += events;
    Py_RETURN_NONE;
}
