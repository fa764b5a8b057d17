#include "py_settings.h"

#include <string.h>

int setting_number(PyObject *value, const char *name, uint64_t low, uint64_t high, uint64_t none, uint64_t *out)
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

int setting_bytes(PyObject *value, const char *name, uint64_t *out)
{
    return setting_number(value, name, 0, SETTING_MAX, TM_NO_LIMIT, out);
}

int setting_packets(PyObject *value, const char *name, uint32_t *out)
{
    uint64_t v;
    if (setting_number(value, name, 0, UINT32_MAX, UINT32_MAX, &v) < 0)
        return -1;
    *out = (uint32_t)v;
    return 0;
}

int setting_factor(PyObject *value, const char *name, double *out)
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

/* The index of a text among the expected ones. `given` NULL: the first. */
static int choice(const char *given, const char *name, const char *const *expected, int count, int *out)
{
    *out = 0;
    for (int i = 0; given && i < count; i++)
        if (!strcmp(given, expected[i])) {
            *out = i;
            return 0;
        }
    if (!given)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s = '%s'; expected %s%s%s%s%s", name, given, expected[0],
                 count > 2 ? ", " : " or ", expected[1], count > 2 ? " or " : "", count > 2 ? expected[2] : "");
    return -1;
}

int setting_scheduler(const char *scheduler, bool *round_robin)
{
    static const char *const names[] = {"fifo", "round_robin"};
    int found;
    if (choice(scheduler, "scheduler", names, 2, &found) < 0)
        return -1;
    *round_robin = found == 1;
    return 0;
}

int setting_priorities(PyObject *value, const char *name, uint8_t *mask)
{
    *mask = 0;
    if (!value || value == Py_None)
        return 0;
    PyObject *list = PySequence_Fast(value, "expected a sequence of priorities");
    for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(list); i++) {
        long p = PyLong_AsLong(PySequence_Fast_GET_ITEM(list, i));
        if (p < 0 || p >= TM_PRIORITIES) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "%s: priority %ld; expected 0 to 7", name, p);
            Py_CLEAR(list);
            break;
        }
        *mask |= 1u << p;
    }
    Py_XDECREF(list);
    return list ? 0 : -1;
}

/* The PFC class of each DSCP. None: a packet's class is the priority of its queue. */
static int dscp_classes(PyObject *value, tm_switch *t)
{
    t->classified = value && value != Py_None;
    if (!t->classified)
        return 0;
    PyObject *list = PySequence_Fast(value, "dscp_classes: expected a sequence of priorities");
    bool fits = list && PySequence_Fast_GET_SIZE(list) == TM_DSCPS;
    for (Py_ssize_t i = 0; fits && i < TM_DSCPS; i++) {
        long p = PyLong_AsLong(PySequence_Fast_GET_ITEM(list, i));
        fits = p >= 0 && p < TM_PRIORITIES;
        t->class_of_dscp[i] = (uint8_t)p;
    }
    Py_XDECREF(list);
    if (!fits && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "dscp_classes: expected a priority from 0 to 7 for each of %d DSCPs", TM_DSCPS);
    return fits ? 0 : -1;
}

int settings_apply(PyObject *values, tm_switch *t, tm_limits *limits)
{
    static char *names[] = {"scheduler", "queue_bytes", "yellow_bytes", "red_bytes", "queue_packets", "port_bytes",
                            "port_packets", "buffer_bytes", "alpha", "cell_bytes", "classes", "equal_priorities", "dscp_classes", NULL};
    static const char *const arbiters[] = {[TM_STRICT] = "strict", [TM_OLDEST] = "oldest",
                                           [TM_LEAST_RECENT] = "least_recent"};
    PyObject *yellow_bytes = NULL, *red_bytes = NULL;
    PyObject *queue_bytes = NULL, *queue_packets = NULL, *port_bytes = NULL, *port_packets = NULL, *buffer = NULL;
    PyObject *alpha = NULL, *cell = NULL, *equal = NULL, *dscps = NULL, *none = PyTuple_New(0);
    const char *scheduler = NULL, *classes = NULL;
    tm_switch set = *t;
    tm_limits ports;
    uint64_t cell_bytes;
    int arbiter = TM_STRICT;
    bool good = none
        && PyArg_ParseTupleAndKeywords(none, values, "|$sOOOOOOOOOsOO", names, &scheduler, &queue_bytes,
                                       &yellow_bytes, &red_bytes, &queue_packets, &port_bytes, &port_packets, &buffer, &alpha, &cell, &classes, &equal, &dscps)
        && setting_scheduler(scheduler, &ports.round_robin) == 0
        && setting_bytes(queue_bytes, "queue_bytes", &ports.queue_bytes) == 0
        && setting_bytes(yellow_bytes, "yellow_bytes", &set.yellow_bytes) == 0
        && setting_bytes(red_bytes, "red_bytes", &set.red_bytes) == 0
        && setting_packets(queue_packets, "queue_packets", &ports.queue_packets) == 0
        && setting_bytes(port_bytes, "port_bytes", &ports.port_bytes) == 0
        && setting_packets(port_packets, "port_packets", &ports.port_packets) == 0
        && setting_bytes(buffer, "buffer_bytes", &set.buffer_bytes) == 0
        && setting_factor(alpha, "alpha", &set.alpha) == 0
        && setting_number(cell, "cell_bytes", 0, 65536, t->cell_bytes, &cell_bytes) == 0
        && choice(classes, "classes", arbiters, 3, &arbiter) == 0
        && setting_priorities(equal, "equal_priorities", &set.equal) == 0 && dscp_classes(dscps, &set) == 0;
    Py_XDECREF(none);
    if (!good)
        return -1;
    if (set.alpha >= 0 && set.buffer_bytes == TM_NO_LIMIT) {
        PyErr_SetString(PyExc_ValueError, "alpha: expected buffer_bytes with it");
        return -1;
    }
    if (set.red_bytes != TM_NO_LIMIT && set.yellow_bytes < set.red_bytes) {
        PyErr_SetString(PyExc_ValueError, "yellow_bytes: expected red_bytes or more");
        return -1;
    }
    set.cell_bytes = (uint32_t)cell_bytes;
    set.arbiter = (uint8_t)arbiter;
    if (arbiter == TM_STRICT)
        set.equal = 0;
    set.managed |= set.buffer_bytes != TM_NO_LIMIT;
    set.coloured = set.yellow_bytes != TM_NO_LIMIT || set.red_bytes != TM_NO_LIMIT;
    *t = set;
    *limits = ports;
    return 0;
}

int settings_pfc(PyObject *values, const tm_switch *t, tm_pfc *config, uint8_t *lossless)
{
    static char *names[] = {"priorities", "xoff_bytes", "alpha", "xon_gap_bytes", "headroom_bytes", "reaction_ns",
                            "quanta", NULL};
    PyObject *priorities = NULL, *xoff = NULL, *alpha = NULL, *gap = NULL, *headroom = NULL, *reaction = NULL;
    PyObject *quanta_arg = NULL, *none = PyTuple_New(0);
    uint64_t quanta;
    bool good = none
        && PyArg_ParseTupleAndKeywords(none, values, "|$OOOOOOO", names, &priorities, &xoff, &alpha, &gap, &headroom,
                                       &reaction, &quanta_arg)
        && setting_priorities(priorities, "priorities", lossless) == 0
        && setting_bytes(xoff, "xoff_bytes", &config->xoff_bytes) == 0
        && setting_factor(alpha, "alpha", &config->alpha) == 0
        && setting_number(gap, "xon_gap_bytes", 0, SETTING_MAX, 0, &config->xon_gap_bytes) == 0
        && setting_bytes(headroom, "headroom_bytes", &config->headroom_bytes) == 0
        && setting_number(reaction, "reaction_ns", 0, UINT32_MAX, 0, &config->reaction_ns) == 0
        && setting_number(quanta_arg, "quanta", 1, 65535, 65535, &quanta) == 0;
    Py_XDECREF(none);
    if (!good)
        return -1;
    config->quanta = (uint32_t)quanta;
    const char *wrong = NULL;
    if (!priorities)
        wrong = "expected priorities";
    else if ((config->alpha >= 0) == (config->xoff_bytes != TM_NO_LIMIT))
        wrong = "expected one of xoff_bytes and alpha";
    else if (config->alpha >= 0 && t->buffer_bytes == TM_NO_LIMIT)
        wrong = "alpha: expected a switch with buffer_bytes";
    if (wrong)
        PyErr_Format(PyExc_ValueError, "PFC: %s", wrong);
    return wrong ? -1 : 0;
}

void settings_use_pfc(tm_port *port, const tm_pfc *config, uint8_t lossless)
{
    tm_pfc *pfc = port->pfc;
    pfc->xoff_bytes = config->xoff_bytes;
    pfc->xon_gap_bytes = config->xon_gap_bytes;
    pfc->headroom_bytes = config->headroom_bytes;
    pfc->reaction_ns = config->reaction_ns;
    pfc->alpha = config->alpha;
    pfc->quanta = config->quanta;
    port->lossless = lossless;
}

bool settings_reserve_headroom(tm_switch *t)
{
    uint64_t reserved = 0;
    for (uint32_t i = 0; i < t->port_count; i++) {
        const tm_port *port = t->ports[i];
        if (port && port->lossless && port->pfc->headroom_bytes != TM_NO_LIMIT)
            reserved += port->pfc->headroom_bytes * (uint64_t)__builtin_popcount(port->lossless);
    }
    if (reserved > t->buffer_bytes)
        return false;
    if (t->buffer_bytes != TM_NO_LIMIT)
        t->reserved_bytes = reserved;
    return true;
}

int settings_trimming(PyObject *values, tm_trimming *trimming, uint64_t *limit_bytes, uint64_t *into_limit_bytes)
{
    static char *names[] = {"priorities", "limit_bytes", "trim_priority", "trim_limit_bytes", "trim_size_bytes",
                            "victim", "seed", NULL};
    static const char *const victims[] = {"newest", "newest_or_youngest"};
    PyObject *priorities = NULL, *limit = NULL, *into = NULL, *into_limit = NULL, *size = NULL, *seed = NULL;
    PyObject *none = PyTuple_New(0);
    const char *victim = NULL;
    uint64_t into_priority, size_bytes, first;
    int chosen;
    *trimming = (tm_trimming){0};
    bool good = none
        && PyArg_ParseTupleAndKeywords(none, values, "|$OOOOOsO", names, &priorities, &limit, &into, &into_limit, &size,
                                       &victim, &seed)
        && setting_priorities(priorities, "priorities", &trimming->priorities) == 0
        && setting_bytes(limit, "limit_bytes", limit_bytes) == 0
        && setting_number(into, "trim_priority", 0, TM_PRIORITIES - 1, TM_PRIORITIES - 1, &into_priority) == 0
        && setting_bytes(into_limit, "trim_limit_bytes", into_limit_bytes) == 0
        && setting_number(size, "trim_size_bytes", 1, UINT16_MAX, 0, &size_bytes) == 0
        && setting_number(seed, "seed", 0, SETTING_MAX, 0, &first) == 0
        && choice(victim, "victim", victims, 2, &chosen) == 0;
    Py_XDECREF(none);
    if (!good)
        return -1;
    if (trimming->priorities >> into_priority & 1) {
        PyErr_Format(PyExc_ValueError, "trim_priority: %u is trimmed itself; expected another", (unsigned)into_priority);
        return -1;
    }
    trimming->into = (uint8_t)into_priority;
    trimming->dropping = !size_bytes;
    trimming->bytes = (uint32_t)size_bytes;
    trimming->youngest = chosen == 1;
    trimming->coin = link_chance_of(0, first);
    return 0;
}

int settings_use_trimming(tm_port *port, const tm_trimming *trimming, uint64_t limit_bytes, uint64_t into_limit_bytes)
{
    if (port->packets || port->queues[0].rounds) {
        PyErr_Format(PyExc_ValueError, "port %u: expected empty queues, first in, first out", port->number);
        return -1;
    }
    if (tm_set_trimming(port, trimming) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < TM_PRIORITIES; i++)
        if (trimming->priorities >> i & 1)
            port->queues[i].limit_bytes = limit_bytes;
    port->queues[trimming->into].limit_bytes = into_limit_bytes;
    return 0;
}
