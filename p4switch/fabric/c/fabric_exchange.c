/* A transport implemented by a Python function, for instance between machines. */
#include "fabric.h"

#include <stdlib.h>
#include <string.h>

typedef struct called {
    transport t;
    fabric *owner; /* whose `exchange` it is */
    buffer *came;  /* by rank */
} called;

static PyObject *parts_of(const buffer *out, uint32_t count)
{
    PyObject *parts = PyList_New(count);
    for (uint32_t to = 0; parts && to < count; to++) {
        PyObject *part = PyBytes_FromStringAndSize(out[to].data, (Py_ssize_t)out[to].len);
        if (part)
            PyList_SET_ITEM(parts, to, part);
        else
            Py_CLEAR(parts);
    }
    return parts;
}

/* The list's data for each worker. -1: an exception is set. */
static int take(PyObject *list, uint32_t count, int (*put)(void *to, uint32_t from, const Py_buffer *view), void *to)
{
    if (PyList_GET_SIZE(list) != (Py_ssize_t)count) {
        PyErr_Format(PyExc_ValueError, "exchange gave %zd; expected one of each of %u workers", PyList_GET_SIZE(list),
                     count);
        return -1;
    }
    for (uint32_t from = 0; from < count; from++) {
        Py_buffer view;
        if (PyObject_GetBuffer(PyList_GET_ITEM(list, from), &view, PyBUF_SIMPLE) < 0)
            return -1;
        int status = put(to, from, &view);
        PyBuffer_Release(&view);
        if (status < 0)
            return -1;
    }
    return 0;
}

typedef struct notices {
    char *list;
    uint32_t size;
} notices;

static int put_notice(void *to, uint32_t from, const Py_buffer *view)
{
    const notices *all = to;
    if (view->len != (Py_ssize_t)all->size) {
        PyErr_Format(PyExc_ValueError, "exchange gave a notice of %zd bytes; expected %u", view->len, all->size);
        return -1;
    }
    memcpy(all->list + (uint64_t)from * all->size, view->buf, all->size);
    return 0;
}

static int put_part(void *to, uint32_t from, const Py_buffer *view)
{
    buffer *came = (buffer *)to + from;
    came->len = 0;
    if (view->len)
        memcpy(buffer_add(came, (uint64_t)view->len), view->buf, (size_t)view->len);
    return 0;
}

static int exchange(transport *t, const void *notice, uint32_t size, void *notices_, buffer *out, arrived *in)
{
    called *c = (called *)t;
    fabric *owner = c->owner;
    PyObject *parts = parts_of(out, t->count);
    PyObject *result = parts ? PyObject_CallFunction(owner->exchange, "y#N", notice, (Py_ssize_t)size, parts) : NULL;
    PyObject *sent, *came;
    notices all = {notices_, size};
    int status = -1;
    if (result && PyArg_ParseTuple(result, "O!O!:exchange", &PyList_Type, &sent, &PyList_Type, &came)
        && take(sent, t->count, put_notice, &all) == 0)
        status = take(came, t->count, put_part, c->came);
    Py_XDECREF(result);
    for (uint32_t i = 0; i < t->count; i++) {
        out[i].len = 0;
        in[i] = (arrived){c->came[i].data, c->came[i].len};
    }
    return status;
}

static void close_called(transport *t)
{
    called *c = (called *)t;
    for (uint32_t i = 0; i < t->count; i++)
        free(c->came[i].data);
    free(c->came);
    free(c);
}

transport *fabric_exchange_open(fabric *owner, uint32_t rank, uint32_t count)
{
    called *c = calloc(1, sizeof *c);
    buffer *came = calloc(count, sizeof *came);
    if (!c || !came) {
        free(c);
        free(came);
        return NULL;
    }
    *c = (called){{.rank = rank, .count = count, .exchange = exchange, .close = close_called}, owner, came};
    return &c->t;
}
