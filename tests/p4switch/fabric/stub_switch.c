/* A pipeline for tests of the fabric: looks up the low 16 bits of the IPv4 destination. `Switch` in a module of its own. */
#include "python.h"

#include <stdlib.h>
#include <string.h>

#define NO_PORT 0xffff
#define MAX_COPIES 8

struct p4_switch {
    p4_env env;
    p4_switch_counts counts;
    uint32_t grow;  /* bytes that egress adds, as telemetry would */
    int stamp;      /* write the depths at offset 40 */
    p4_tick last;   /* of the latest call */
    long backwards; /* calls whose time was before that */
    uint16_t ports[65536][MAX_COPIES];
};

static void enqueue(p4_switch *sw, p4_frame *frame, uint32_t in, uint32_t out)
{
    p4_packet *p = calloc(1, sizeof *p);
    p->frame = frame;
    p->len = frame->wire_len;
    p->tag = frame->tag;
    p->ingress_port = in;
    p->egress_port = out;
    p->priority = frame->data_len > 15 ? frame->data[15] >> 5 : 0;
    if (frame->data_len > 19) { /* IPv4's identification: 2 to release a queue and 3 to stop it, and the queue */
        p->queue = frame->data[19];
        if (frame->data[18])
            sw->env.stop_queue(sw->env.ctx, out, frame->data[19] & 127, frame->data[18] & 1);
    }
    sw->env.enqueue(sw->env.ctx, p);
}

static void watch_clock(p4_switch *sw, p4_tick now)
{
    if (now < sw->last)
        sw->backwards++;
    else
        sw->last = now;
}

void p4_switch_receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    watch_clock(sw, now);
    sw->counts.received++;
    uint32_t key = frame->data_len >= 34 ? frame->data[32] << 8 | frame->data[33] : 0;
    const uint16_t *ports = sw->ports[key];
    if (ports[0] == NO_PORT) {
        sw->counts.dropped++;
        sw->env.drop(sw->env.ctx, port, frame->tag, frame->wire_len, P4_DROP_PROGRAM_INGRESS);
        sw->env.frame_free(sw->env.ctx, frame);
        return;
    }
    for (int i = 1; i < MAX_COPIES && ports[i] != NO_PORT; i++) {
        p4_frame *copy = sw->env.frame_new(sw->env.ctx, frame->data_len);
        copy->wire_len = frame->wire_len;
        copy->data_len = frame->data_len;
        copy->tag = frame->tag;
        memcpy(copy->data, frame->data, frame->data_len);
        sw->counts.multicast++;
        enqueue(sw, copy, port, ports[i]);
    }
    enqueue(sw, frame, port, ports[0]);
}

static void stamp(p4_frame *frame, uint32_t at, uint32_t value)
{
    for (int i = 0; i < 4 && at + 4 <= frame->data_len; i++)
        frame->data[at + i] = value >> (24 - 8 * i) & 255;
}

p4_frame *p4_switch_transmit(p4_switch *sw, p4_packet *packet, p4_tick now)
{
    watch_clock(sw, now);
    p4_frame *frame = packet->frame;
    if (sw->stamp) {
        stamp(frame, 40, packet->enq_depth);
        stamp(frame, 44, packet->deq_depth);
        stamp(frame, 48, (uint32_t)packet->enq_time);
        stamp(frame, 52, (uint32_t)packet->deq_time);
    }
    if (packet->trimmed)
        frame->wire_len = packet->len;
    frame->wire_len += sw->grow;
    sw->counts.transmitted++;
    free(packet);
    return frame;
}

void p4_packet_free(p4_switch *sw, p4_packet *packet)
{
    sw->env.frame_free(sw->env.ctx, packet->frame);
    free(packet);
}

uint32_t p4_switch_packet_bytes(const p4_switch *sw)
{
    (void)sw;
    return sizeof(p4_packet);
}

void p4_switch_set_env(p4_switch *sw, const p4_env *env)
{
    sw->env = *env;
}

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
const p4_env *p4_switch_get_env(const p4_switch *sw)
{
    return &sw->env;
}

p4_switch_counts p4_switch_get_counts(const p4_switch *sw)
{
    return sw->counts;
}

/* -- Python: Switch(routes, grow=0, stamp=False), routes: dict of low 16 bits to list of ports; its `backwards` ------- */

typedef struct switch_object {
    PyObject_HEAD
    p4_switch *sw;
} switch_object;

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"routes", "grow", "stamp", NULL};
    PyObject *routes, *key, *list;
    int grow = 0, stamped = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|ip", names, &PyDict_Type, &routes, &grow, &stamped))
        return NULL;
    switch_object *self = (switch_object *)type->tp_alloc(type, 0);
    self->sw = calloc(1, sizeof *self->sw);
    self->sw->grow = (uint32_t)grow;
    self->sw->stamp = stamped;
    memset(self->sw->ports, 0xff, sizeof self->sw->ports);
    for (Py_ssize_t at = 0; PyDict_Next(routes, &at, &key, &list);)
        for (Py_ssize_t i = 0; i < PyList_Size(list) && i < MAX_COPIES; i++)
            self->sw->ports[PyLong_AsLong(key) & 0xffff][i] = (uint16_t)PyLong_AsLong(PyList_GetItem(list, i));
    return (PyObject *)self;
}

static void dealloc(switch_object *self)
{
    free(self->sw);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *backwards(switch_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(self->sw->backwards);
}

static PyGetSetDef getters[] = {{"backwards", (getter)backwards, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject switch_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stub.Switch",
    .tp_basicsize = sizeof(switch_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new,
    .tp_getset = getters,
    .tp_dealloc = (destructor)dealloc,
};

p4_switch *p4_switch_of(PyObject *object)
{
    if (Py_TYPE(object) != &switch_type) {
        PyErr_Format(PyExc_TypeError, "expected a Switch, not %s", Py_TYPE(object)->tp_name);
        return NULL;
    }
    return ((switch_object *)object)->sw;
}

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_engine", .m_size = -1};

PyMODINIT_FUNC PyInit__engine(void)
{
    PyObject *self = PyModule_Create(&module);
    if (!self || PyType_Ready(&switch_type) < 0 || PyModule_AddObject(self, "Switch", (PyObject *)&switch_type) < 0
        || p4_fabric_register(self) < 0)
        return NULL;
    return self;
}
