/* Python type Switch: the control plane of one pipeline, and packet tests without a fabric. */
#include "python.h"

#include "measure.h"
#include "process.h"
#include "runtime.h"

#include <dlfcn.h>

typedef struct {
    PyObject_HEAD
    p4_switch *sw;
    PyObject *pipes; /* the other pipes of a switch that this is the first pipe of */
} switch_object;

/* --- errors and arguments -------------------------------------------------------------------------------------------- */

static PyObject *raise_status(switch_object *self, int status)
{
    if (status == P4_MEMORY)
        return PyErr_NoMemory();
    PyErr_SetString(status == P4_FULL ? PyExc_OverflowError : PyExc_ValueError, self->sw->error);
    return NULL;
}

static PyObject *none_or_raise(switch_object *self, int status)
{
    if (status)
        return raise_status(self, status);
    Py_RETURN_NONE;
}

static PyObject *handle_or_raise(switch_object *self, int status, uint32_t handle)
{
    return status ? raise_status(self, status) : PyLong_FromUnsignedLong(handle);
}

static int to_u32(PyObject *object, void *result)
{
    unsigned long value = PyLong_AsUnsignedLong(object);
    if (PyErr_Occurred() || value > UINT32_MAX) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_ValueError, "expected a number from 0 to %u", UINT32_MAX);
        }
        return 0;
    }
    *(uint32_t *)result = (uint32_t)value;
    return 1;
}

static int to_u64(PyObject *object, void *result)
{
    *(uint64_t *)result = PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred())
        return 1;
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        PyErr_SetString(PyExc_ValueError, "expected a number from 0 to 2**64 - 1");
    }
    return 0;
}

static int to_bytes(PyObject *object, p4_bytes *result)
{
    char *data;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(object, &data, &len) < 0)
        return 0;
    *result = (p4_bytes){(const uint8_t *)data, (size_t)len};
    return 1;
}

/* Values of an action; `args` keeps the bytes objects alive. */
typedef struct {
    p4_aim aim;
    p4_bytes *values;
    PyObject *args;
} aim_holder;

static void aim_release(aim_holder *h)
{
    PyMem_Free(h->values);
    Py_XDECREF(h->args);
    h->values = NULL;
    h->args = NULL;
}

static int aim_args(PyObject *args, aim_holder *h)
{
    h->args = PySequence_Fast(args, "expected a sequence of action arguments");
    if (!h->args)
        return 0;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(h->args);
    h->values = PyMem_Calloc((size_t)n + 1, sizeof *h->values);
    if (!h->values) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!to_bytes(PySequence_Fast_GET_ITEM(h->args, i), &h->values[i]))
            return 0;
    h->aim.kind = P4_TO_ACTION;
    h->aim.args = h->values;
    h->aim.n_args = (size_t)n;
    return 1;
}

/* ("action", name, args), ("member", handle) or ("group", handle). */
static int aim_parse(PyObject *target, aim_holder *h)
{
    const char *kind = NULL;
    memset(h, 0, sizeof *h);
    if (PyTuple_Check(target) && PyTuple_GET_SIZE(target) >= 1)
        kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(target, 0));
    if (kind && !strcmp(kind, "action") && PyTuple_GET_SIZE(target) == 3) {
        h->aim.action = PyUnicode_AsUTF8(PyTuple_GET_ITEM(target, 1));
        return h->aim.action && aim_args(PyTuple_GET_ITEM(target, 2), h);
    }
    if (kind && (!strcmp(kind, "member") || !strcmp(kind, "group")) && PyTuple_GET_SIZE(target) == 2) {
        h->aim.kind = *kind == 'm' ? P4_TO_MEMBER : P4_TO_GROUP;
        return to_u32(PyTuple_GET_ITEM(target, 1), &h->aim.index);
    }
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError,
                        "expected (\"action\", name, args), (\"member\", handle) or (\"group\", handle)");
    return 0;
}

/* One (a, b) of a key field; the tuple keeps the bytes alive. */
static int match_parse(PyObject *pair, p4_match *m)
{
    *m = (p4_match){{NULL, 0}, {NULL, 0}, -1};
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        PyErr_SetString(PyExc_ValueError, "expected a pair for each key field");
        return 0;
    }
    PyObject *a = PyTuple_GET_ITEM(pair, 0), *b = PyTuple_GET_ITEM(pair, 1);
    if (a != Py_None && !to_bytes(a, &m->value))
        return 0;
    if (PyLong_Check(b)) {
        long prefix = PyLong_AsLong(b);
        if (PyErr_Occurred() || prefix < 0 || prefix > 65535) {
            PyErr_Clear();
            PyErr_SetString(PyExc_ValueError, "expected a prefix length");
            return 0;
        }
        m->prefix = (int32_t)prefix;
        return 1;
    }
    return to_bytes(b, &m->mask);
}

/* A key; *sequence keeps the pairs alive and is the caller's to release. NULL with an exception set. */
static p4_match *key_parse(PyObject *key, PyObject **sequence, Py_ssize_t *n)
{
    *sequence = PySequence_Fast(key, "expected a sequence of key fields");
    if (!*sequence)
        return NULL;
    *n = PySequence_Fast_GET_SIZE(*sequence);
    p4_match *matches = PyMem_Calloc((size_t)*n + 1, sizeof *matches);
    if (!matches)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; matches && i < *n; i++) {
        if (!match_parse(PySequence_Fast_GET_ITEM(*sequence, i), &matches[i])) {
            PyMem_Free(matches);
            matches = NULL;
        }
    }
    if (!matches)
        Py_CLEAR(*sequence);
    return matches;
}

#define METHOD(name) static PyObject *name(switch_object *self, PyObject *args, PyObject *kwargs)

/* --- tables ------------------------------------------------------------------------------------------------------------ */

METHOD(table_add)
{
    const char *table;
    PyObject *key, *target, *sequence;
    int priority;
    static char *names[] = {"table", "key", "priority", "target", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOiO", names, &table, &key, &priority, &target))
        return NULL;
    int t = p4_find_table(self->sw, table);
    if (t < 0)
        return raise_status(self, t);
    Py_ssize_t n;
    p4_match *matches = key_parse(key, &sequence, &n);
    if (!matches)
        return NULL;
    aim_holder aim;
    PyObject *result = NULL;
    if (aim_parse(target, &aim)) {
        uint32_t handle = 0;
        int status = p4_table_add(self->sw, (uint32_t)t, matches, (size_t)n, priority, &aim.aim, &handle);
        result = handle_or_raise(self, status, handle);
    }
    aim_release(&aim);
    PyMem_Free(matches);
    Py_DECREF(sequence);
    return result;
}

METHOD(table_modify)
{
    const char *table;
    PyObject *target;
    uint32_t handle;
    static char *names[] = {"table", "handle", "target", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&O", names, &table, to_u32, &handle, &target))
        return NULL;
    int t = p4_find_table(self->sw, table);
    if (t < 0)
        return raise_status(self, t);
    aim_holder aim;
    PyObject *result = NULL;
    if (aim_parse(target, &aim))
        result = none_or_raise(self, p4_table_modify(self->sw, (uint32_t)t, handle, &aim.aim));
    aim_release(&aim);
    return result;
}

METHOD(table_delete)
{
    const char *table;
    uint32_t handle;
    static char *names[] = {"table", "handle", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&", names, &table, to_u32, &handle))
        return NULL;
    int t = p4_find_table(self->sw, table);
    if (t < 0)
        return raise_status(self, t);
    return none_or_raise(self, p4_table_delete(self->sw, (uint32_t)t, handle));
}

METHOD(table_set_default)
{
    const char *table;
    PyObject *target;
    static char *names[] = {"table", "target", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO", names, &table, &target))
        return NULL;
    int t = p4_find_table(self->sw, table);
    if (t < 0)
        return raise_status(self, t);
    if (target == Py_None)
        return none_or_raise(self, p4_table_set_default(self->sw, (uint32_t)t, NULL));
    aim_holder aim;
    PyObject *result = NULL;
    if (aim_parse(target, &aim))
        result = none_or_raise(self, p4_table_set_default(self->sw, (uint32_t)t, &aim.aim));
    aim_release(&aim);
    return result;
}

METHOD(table_clear)
{
    const char *table;
    static char *names[] = {"table", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s", names, &table))
        return NULL;
    int t = p4_find_table(self->sw, table);
    if (t < 0)
        return raise_status(self, t);
    return none_or_raise(self, p4_table_clear(self->sw, (uint32_t)t));
}

METHOD(table_last_hit)
{
    const char *table;
    uint32_t handle;
    static char *names[] = {"table", "handle", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&", names, &table, to_u32, &handle))
        return NULL;
    int t = p4_find_table(self->sw, table);
    if (t < 0)
        return raise_status(self, t);
    const p4_table_info *info = &self->sw->program->tables[t];
    if (!info->with_last_hit)
        return PyErr_Format(PyExc_ValueError, "table %s does not support timeouts", table);
    p4_entry *e = p4_table_entry(self->sw, (uint32_t)t, handle);
    return e ? PyLong_FromUnsignedLongLong(*p4_entry_last_hit(info, e)) : raise_status(self, P4_INVALID);
}

/* --- action profiles ----------------------------------------------------------------------------------------------------- */

METHOD(member_add)
{
    const char *profile, *action;
    PyObject *values;
    static char *names[] = {"profile", "action", "args", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ssO", names, &profile, &action, &values))
        return NULL;
    int p = p4_find_profile(self->sw, profile);
    if (p < 0)
        return raise_status(self, p);
    aim_holder aim = {{P4_TO_ACTION, action, 0, NULL, 0}, NULL, NULL};
    PyObject *result = NULL;
    if (aim_args(values, &aim)) {
        uint32_t handle = 0;
        int status = p4_member_add(self->sw, (uint32_t)p, &aim.aim, &handle);
        result = handle_or_raise(self, status, handle);
    }
    aim_release(&aim);
    return result;
}

METHOD(member_modify)
{
    const char *profile, *action;
    PyObject *values;
    uint32_t member;
    static char *names[] = {"profile", "member", "action", "args", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&sO", names, &profile, to_u32, &member, &action, &values))
        return NULL;
    int p = p4_find_profile(self->sw, profile);
    if (p < 0)
        return raise_status(self, p);
    aim_holder aim = {{P4_TO_ACTION, action, 0, NULL, 0}, NULL, NULL};
    PyObject *result = NULL;
    if (aim_args(values, &aim))
        result = none_or_raise(self, p4_member_modify(self->sw, (uint32_t)p, member, &aim.aim));
    aim_release(&aim);
    return result;
}

METHOD(member_delete)
{
    const char *profile;
    uint32_t member;
    static char *names[] = {"profile", "member", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&", names, &profile, to_u32, &member))
        return NULL;
    int p = p4_find_profile(self->sw, profile);
    if (p < 0)
        return raise_status(self, p);
    return none_or_raise(self, p4_member_delete(self->sw, (uint32_t)p, member));
}

METHOD(group_add)
{
    const char *profile;
    static char *names[] = {"profile", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s", names, &profile))
        return NULL;
    int p = p4_find_profile(self->sw, profile);
    if (p < 0)
        return raise_status(self, p);
    uint32_t handle = 0;
    int status = p4_group_add(self->sw, (uint32_t)p, &handle);
    return handle_or_raise(self, status, handle);
}

METHOD(group_set)
{
    const char *profile;
    uint32_t group;
    PyObject *members;
    static char *names[] = {"profile", "group", "members", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&O", names, &profile, to_u32, &group, &members))
        return NULL;
    int p = p4_find_profile(self->sw, profile);
    if (p < 0)
        return raise_status(self, p);
    PyObject *sequence = PySequence_Fast(members, "expected a sequence of members");
    if (!sequence)
        return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
    uint32_t *list = PyMem_Calloc((size_t)n + 1, sizeof *list);
    PyObject *result = list ? Py_None : PyErr_NoMemory();
    for (Py_ssize_t i = 0; result && i < n; i++)
        if (!to_u32(PySequence_Fast_GET_ITEM(sequence, i), &list[i]))
            result = NULL;
    if (result)
        result = none_or_raise(self, p4_group_set(self->sw, (uint32_t)p, group, list, (size_t)n));
    PyMem_Free(list);
    Py_DECREF(sequence);
    return result;
}

METHOD(group_delete)
{
    const char *profile;
    uint32_t group;
    static char *names[] = {"profile", "group", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&", names, &profile, to_u32, &group))
        return NULL;
    int p = p4_find_profile(self->sw, profile);
    if (p < 0)
        return raise_status(self, p);
    return none_or_raise(self, p4_group_delete(self->sw, (uint32_t)p, group));
}

/* --- counters, meters, registers --------------------------------------------------------------------------------------------- */

static p4_counter *find_counter(switch_object *self, const char *name, uint32_t index)
{
    int c = p4_find_counter(self->sw, name);
    if (c < 0) {
        raise_status(self, c);
        return NULL;
    }
    if (index >= self->sw->program->counters[c].size) {
        PyErr_Format(PyExc_ValueError, "counter %s has %u cells; there is no cell %u", name,
                     self->sw->program->counters[c].size, index);
        return NULL;
    }
    return &self->sw->counters[c][index];
}

static p4_counter *find_direct(switch_object *self, const char *table, uint32_t handle)
{
    int t = p4_find_table(self->sw, table);
    if (t < 0) {
        raise_status(self, t);
        return NULL;
    }
    const p4_table_info *info = &self->sw->program->tables[t];
    if (!info->with_counters) {
        PyErr_Format(PyExc_ValueError, "table %s has no direct counter", table);
        return NULL;
    }
    p4_entry *e = p4_table_entry(self->sw, (uint32_t)t, handle);
    if (!e) {
        raise_status(self, P4_INVALID);
        return NULL;
    }
    return p4_entry_counter(info, e);
}

static PyObject *counter_value(const p4_counter *c)
{
    return c ? Py_BuildValue("KK", (unsigned long long)c->packets, (unsigned long long)c->bytes) : NULL;
}

METHOD(counter_read)
{
    const char *name;
    uint32_t index;
    static char *names[] = {"name", "index", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&", names, &name, to_u32, &index))
        return NULL;
    return counter_value(find_counter(self, name, index));
}

METHOD(counter_packets)
{
    const char *name;
    uint32_t cells;
    static char *names[] = {"name", "cells", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&", names, &name, to_u32, &cells))
        return NULL;
    if (cells && !find_counter(self, name, cells - 1))
        return NULL;
    const p4_counter *counter = cells ? find_counter(self, name, 0) : NULL;
    PyObject *column = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(cells * sizeof(int64_t)));
    for (uint32_t i = 0; column && i < cells; i++)
        memcpy(PyBytes_AS_STRING(column) + i * sizeof(int64_t), &counter[i].packets, sizeof(int64_t));
    return column;
}

METHOD(direct_counter_read)
{
    const char *table;
    uint32_t handle;
    static char *names[] = {"table", "handle", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&", names, &table, to_u32, &handle))
        return NULL;
    return counter_value(find_direct(self, table, handle));
}

METHOD(counter_write)
{
    const char *name;
    uint32_t index;
    p4_counter value;
    static char *names[] = {"name", "index", "packets", "nbytes", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&O&O&", names, &name, to_u32, &index, to_u64, &value.packets,
                                     to_u64, &value.bytes))
        return NULL;
    p4_counter *c = find_counter(self, name, index);
    if (!c)
        return NULL;
    *c = value;
    Py_RETURN_NONE;
}

METHOD(direct_counter_write)
{
    const char *table;
    uint32_t handle;
    p4_counter value;
    static char *names[] = {"table", "handle", "packets", "nbytes", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&O&O&", names, &table, to_u32, &handle, to_u64, &value.packets,
                                     to_u64, &value.bytes))
        return NULL;
    p4_counter *c = find_direct(self, table, handle);
    if (!c)
        return NULL;
    *c = value;
    Py_RETURN_NONE;
}

static PyObject *set_meter(switch_object *self, p4_meter *meter, PyObject *config)
{
    uint64_t rates[4];
    if (config == Py_None)
        return none_or_raise(self, p4_meter_set(self->sw, meter, NULL));
    if (!PyTuple_Check(config) || PyTuple_GET_SIZE(config) != 4)
        return PyErr_Format(PyExc_ValueError,
                            "expected (committed rate, committed burst, peak rate, peak burst) or None");
    for (int i = 0; i < 4; i++)
        if (!to_u64(PyTuple_GET_ITEM(config, i), &rates[i]))
            return NULL;
    return none_or_raise(self, p4_meter_set(self->sw, meter, rates));
}

METHOD(meter_set)
{
    const char *name;
    uint32_t index;
    PyObject *config;
    static char *names[] = {"name", "index", "config", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&O", names, &name, to_u32, &index, &config))
        return NULL;
    int m = p4_find_meter(self->sw, name);
    if (m < 0)
        return raise_status(self, m);
    if (index >= self->sw->program->meters[m].size)
        return PyErr_Format(PyExc_ValueError, "meter %s has %u cells; there is no cell %u", name,
                            self->sw->program->meters[m].size, index);
    return set_meter(self, &self->sw->meters[m][index], config);
}

METHOD(meter_adjust)
{
    const char *name;
    int adjust;
    static char *names[] = {"name", "nbytes", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "si", names, &name, &adjust))
        return NULL;
    int m = p4_find_meter(self->sw, name);
    if (m < 0)
        return raise_status(self, m);
    self->sw->meters_more[m].adjust = adjust;
    Py_RETURN_NONE;
}

METHOD(direct_meter_set)
{
    const char *table;
    uint32_t handle;
    PyObject *given, *config;
    static char *names[] = {"table", "handle", "config", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOO", names, &table, &given, &config))
        return NULL;
    int t = p4_find_table(self->sw, table);
    if (t < 0)
        return raise_status(self, t);
    int m = self->sw->program->tables[t].meter;
    if (m < 0)
        return PyErr_Format(PyExc_ValueError, "table %s has no direct meter", table);
    if (given == Py_None)
        return set_meter(self, &self->sw->meters_more[m].fallback, config);
    if (!to_u32(given, &handle))
        return NULL;
    if (!p4_table_entry(self->sw, (uint32_t)t, handle))
        return raise_status(self, P4_INVALID);
    return set_meter(self, &self->sw->meters[m][handle], config);
}

METHOD(register_read)
{
    const char *name;
    uint32_t index;
    static char *names[] = {"name", "index", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&", names, &name, to_u32, &index))
        return NULL;
    int r = p4_find_register(self->sw, name);
    if (r < 0)
        return raise_status(self, r);
    Py_ssize_t len = (Py_ssize_t)(self->sw->program->registers[r].width + 7) / 8;
    PyObject *value = PyBytes_FromStringAndSize(NULL, len);
    if (!value)
        return NULL;
    int status = p4_register_get(self->sw, (uint32_t)r, index, (uint8_t *)PyBytes_AS_STRING(value), (size_t)len);
    if (!status)
        return value;
    Py_DECREF(value);
    return raise_status(self, status);
}

METHOD(register_write)
{
    const char *name;
    uint32_t index;
    PyObject *value;
    p4_bytes bytes;
    static char *names[] = {"name", "index", "value", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&O", names, &name, to_u32, &index, &value))
        return NULL;
    int r = p4_find_register(self->sw, name);
    if (r < 0)
        return raise_status(self, r);
    if (!to_bytes(value, &bytes))
        return NULL;
    return none_or_raise(self, p4_register_set(self->sw, (uint32_t)r, index, bytes.data, bytes.len));
}

/* A cell of an extern object, or NULL with an exception; *len: its bytes. */
static uint8_t *object_cell(switch_object *self, const char *name, uint32_t index, Py_ssize_t *len)
{
    int o = p4_find_object(self->sw, name);
    uint8_t *cell = o < 0 ? NULL : p4_object_cell(self->sw, (uint32_t)o, index);
    if (!cell) {
        raise_status(self, P4_INVALID);
        return NULL;
    }
    *len = (Py_ssize_t)self->sw->program->objects[o].stride;
    return cell;
}

METHOD(object_read)
{
    const char *name;
    uint32_t index;
    Py_ssize_t len;
    static char *names[] = {"name", "index", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&", names, &name, to_u32, &index))
        return NULL;
    uint8_t *cell = object_cell(self, name, index, &len);
    return cell ? PyBytes_FromStringAndSize((const char *)cell, len) : NULL;
}

METHOD(object_write)
{
    const char *name;
    uint32_t index;
    PyObject *value;
    p4_bytes bytes;
    Py_ssize_t len;
    static char *names[] = {"name", "index", "value", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO&O", names, &name, to_u32, &index, &value))
        return NULL;
    uint8_t *cell = object_cell(self, name, index, &len);
    if (!cell || !to_bytes(value, &bytes))
        return NULL;
    if ((Py_ssize_t)bytes.len != len)
        return PyErr_Format(PyExc_ValueError, "%s: expected a cell of %zd bytes, got %zu", name, len, bytes.len);
    memcpy(cell, bytes.data, bytes.len);
    p4_switch_state_changed(self->sw);
    Py_RETURN_NONE;
}

/* --- replication, value sets, digests ------------------------------------------------------------------------------------------- */

/* (port, instance), followed by the other members of a p4_replica in order if they are given. */
static int to_replica(PyObject *tuple, p4_replica *r)
{
    uint32_t values[7] = {0};
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : 0;
    if (n != 2 && n != 7) {
        PyErr_SetString(PyExc_ValueError, "expected (port, instance) or (port, instance, xid, of, at, lag_of, lag_at)");
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!to_u32(PyTuple_GET_ITEM(tuple, i), &values[i]))
            return 0;
        if (i > 2 && values[i] > UINT16_MAX) {
            PyErr_SetString(PyExc_ValueError, "of, at, lag_of and lag_at of a replica are at most 65535");
            return 0;
        }
    }
    *r = (p4_replica){values[0], values[1], values[2], (uint16_t)values[3], (uint16_t)values[4], (uint16_t)values[5],
                      (uint16_t)values[6]};
    return 1;
}

static PyObject *set_replicas(switch_object *self, p4_groups *groups, uint32_t id, PyObject *replicas, uint32_t truncate)
{
    if (replicas == Py_None)
        return none_or_raise(self, p4_replicas_set(self->sw, groups, id, NULL, 0, 0, 1));
    PyObject *sequence = PySequence_Fast(replicas, "expected a sequence of (port, instance)");
    if (!sequence)
        return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
    p4_replica *list = PyMem_Calloc((size_t)n + 1, sizeof *list);
    PyObject *result = list ? Py_None : PyErr_NoMemory();
    for (Py_ssize_t i = 0; result && i < n; i++)
        if (!to_replica(PySequence_Fast_GET_ITEM(sequence, i), &list[i]))
            result = NULL;
    if (result)
        result = none_or_raise(self, p4_replicas_set(self->sw, groups, id, list, (size_t)n, truncate, 0));
    PyMem_Free(list);
    Py_DECREF(sequence);
    return result;
}

METHOD(multicast_set)
{
    uint32_t group;
    PyObject *replicas;
    static char *names[] = {"group", "replicas", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O", names, to_u32, &group, &replicas))
        return NULL;
    if (!group)
        return PyErr_Format(PyExc_ValueError, "multicast group 0 means no multicast; expected a higher number");
    return set_replicas(self, &self->sw->multicast, group, replicas, 0);
}

METHOD(clone_session_set)
{
    uint32_t session, truncate = 0;
    PyObject *replicas;
    static char *names[] = {"session", "replicas", "truncate_bytes", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O|O&", names, to_u32, &session, &replicas, to_u32, &truncate))
        return NULL;
    if (session > 0x7fff)
        return PyErr_Format(PyExc_ValueError, "clone session %u: expected a number up to 32767", session);
    return set_replicas(self, &self->sw->clones, session, replicas, truncate);
}

METHOD(value_set_set)
{
    const char *name;
    PyObject *members;
    static char *names[] = {"name", "members", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO", names, &name, &members))
        return NULL;
    int v = p4_find_vset(self->sw, name);
    if (v < 0)
        return raise_status(self, v);
    uint32_t n_keys = self->sw->program->vsets[v].n_keys;
    PyObject *sequence = PySequence_Fast(members, "expected a sequence of members");
    if (!sequence)
        return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
    p4_match *matches = PyMem_Calloc((size_t)n * n_keys + 1, sizeof *matches);
    PyObject *fields = PyList_New(0); /* keeps the members' bytes alive */
    PyObject *result = matches && fields ? Py_None : PyErr_NoMemory();
    for (Py_ssize_t i = 0; result && i < n; i++) {
        PyObject *member = PySequence_Fast(PySequence_Fast_GET_ITEM(sequence, i), "expected a sequence of key fields");
        if (!member || PyList_Append(fields, member) < 0 || PySequence_Fast_GET_SIZE(member) != (Py_ssize_t)n_keys) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "value set %s: expected %u key fields", name, n_keys);
            result = NULL;
        }
        for (uint32_t k = 0; result && k < n_keys; k++)
            if (!match_parse(PySequence_Fast_GET_ITEM(member, k), &matches[i * n_keys + k]))
                result = NULL;
        Py_XDECREF(member);
    }
    if (result)
        result = none_or_raise(self, p4_vset_set(self->sw, (uint32_t)v, matches, (size_t)n));
    PyMem_Free(matches);
    Py_XDECREF(fields);
    Py_DECREF(sequence);
    return result;
}

static PyObject *digests(switch_object *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *list = PyList_New(0);
    for (p4_digest *d = p4_fifo_digests(self->sw->fifo), *next; d; d = next) {
        next = d->next;
        PyObject *item = list ? Py_BuildValue("Iy#", d->list_id, (const char *)d->data, (Py_ssize_t)d->len) : NULL;
        if (list && (!item || PyList_Append(list, item) < 0))
            Py_CLEAR(list);
        Py_XDECREF(item);
        free(d);
    }
    return list;
}

static PyObject *said(switch_object *self, PyObject *Py_UNUSED(ignored))
{
    uint64_t lost;
    PyObject *list = PyList_New(0);
    for (p4_said *s = p4_fifo_said(self->sw->fifo, &lost), *next; s; s = next) {
        next = s->next;
        PyObject *text = list ? PyUnicode_DecodeUTF8(s->text, (Py_ssize_t)strlen(s->text), "replace") : NULL;
        PyObject *item = text ? Py_BuildValue("ON", s->failed ? Py_True : Py_False, text) : NULL;
        if (list && (!item || PyList_Append(list, item) < 0))
            Py_CLEAR(list);
        Py_XDECREF(item);
        free(s);
    }
    return list ? Py_BuildValue("NK", list, (unsigned long long)lost) : NULL;
}

/* --- packets ------------------------------------------------------------------------------------------------------------------------- */

METHOD(process)
{
    uint32_t port;
    Py_buffer frame;
    uint64_t now = 0;
    Py_ssize_t most = 1024;
    PyObject *depth = Py_None;
    static char *names[] = {"port", "frame", "now", "max_outputs", "depth", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&y*|O&nO", names, to_u32, &port, &frame, to_u64, &now, &most,
                                     &depth))
        return NULL;
    uint32_t cells = 0;
    if (depth != Py_None && !to_u32(depth, &cells)) {
        PyBuffer_Release(&frame);
        return NULL;
    }
    p4_switch *sw = self->sw;
    p4_env outer = sw->env; /* possibly that of a fabric; it is restored after the packet */
    PyObject *list = NULL;
    if (frame.len > 1 << 24)
        PyErr_Format(PyExc_ValueError, "a frame of %zd bytes is too long", frame.len);
    else
        list = PyList_New(0);
    if (list) {
        p4_switch_set_env(sw, p4_fifo_env(sw->fifo));
        p4_fifo_set_depth(sw->fifo, depth == Py_None ? -1 : (int64_t)cells);
        if (p4_fifo_inject(sw->fifo, port, frame.buf, (uint32_t)frame.len, (uint32_t)frame.len, now) < 0)
            PyErr_NoMemory();
        p4_frame *out;
        uint32_t out_port;
        while (!PyErr_Occurred() && PyList_GET_SIZE(list) < most && (out = p4_fifo_next(sw->fifo, &out_port, now))) {
            PyObject *data = PyBytes_FromStringAndSize(NULL, out->wire_len);
            if (data) {
                char *bytes = PyBytes_AS_STRING(data);
                memcpy(bytes, out->data, out->data_len);
                memset(bytes + out->data_len, 0, out->wire_len - out->data_len);
                PyObject *item = Py_BuildValue("IN", out_port, data);
                if (item) {
                    PyList_Append(list, item);
                    Py_DECREF(item);
                }
            }
            free(out);
        }
        p4_fifo_clear(sw->fifo);
        p4_switch_set_env(sw, &outer);
        if (PyErr_Occurred())
            Py_CLEAR(list);
    }
    PyBuffer_Release(&frame);
    return list;
}

METHOD(measure)
{
    uint32_t port, rounds;
    PyObject *frames, *others = NULL;
    static char *names[] = {"port", "frames", "rounds", "others", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&OO&|O", names, to_u32, &port, &frames, to_u32, &rounds, &others))
        return NULL;
    PyObject *sequence = PySequence_Fast(frames, "expected a sequence of frames");
    PyObject *more = others ? PySequence_Fast(others, "expected a sequence of switches") : PyTuple_New(0);
    if (!sequence || !more) {
        Py_XDECREF(sequence);
        Py_XDECREF(more);
        return NULL;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence), n_more = PySequence_Fast_GET_SIZE(more);
    p4_bytes *list = PyMem_Calloc((size_t)n + 1, sizeof *list);
    p4_switch **switches = PyMem_Calloc((size_t)n_more + 1, sizeof *switches);
    p4_env *outer = PyMem_Calloc((size_t)n_more + 1, sizeof *outer);
    PyObject *result = list && switches && outer && n ? Py_None : NULL;
    if (!result)
        PyErr_SetString(PyExc_ValueError, "expected at least one frame");
    for (Py_ssize_t i = 0; result && i < n; i++)
        if (!to_bytes(PySequence_Fast_GET_ITEM(sequence, i), &list[i]))
            result = NULL;
    for (Py_ssize_t i = 0; result && i <= n_more; i++) {
        switches[i] = i ? p4_switch_of(PySequence_Fast_GET_ITEM(more, i - 1)) : self->sw;
        if (!switches[i])
            result = NULL;
        else
            outer[i] = switches[i]->env;
    }
    if (result) {
        uint64_t sent;
        double seconds = p4_measure(switches, (size_t)n_more + 1, port, list, (size_t)n, rounds, &sent);
        for (Py_ssize_t i = 0; i <= n_more; i++)
            p4_switch_set_env(switches[i], &outer[i]);
        result = Py_BuildValue("dK", seconds, (unsigned long long)sent);
    }
    PyMem_Free(outer);
    PyMem_Free(switches);
    PyMem_Free(list);
    Py_DECREF(more);
    Py_DECREF(sequence);
    return result;
}

METHOD(join)
{
    enum { MOST = 16 };
    PyObject *others;
    uint32_t port_bits;
    static char *names[] = {"others", "port_bits", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O&", names, &PyTuple_Type, &others, to_u32, &port_bits))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(others);
    p4_switch *pipes[MOST] = {self->sw};
    if (n >= MOST || port_bits > 31)
        return PyErr_Format(PyExc_ValueError, "expected at most %d pipes, and ports of at most 31 bits", MOST);
    for (Py_ssize_t i = 0; i < n; i++)
        if (!(pipes[i + 1] = p4_switch_of(PyTuple_GET_ITEM(others, i))))
            return NULL;
    int status = p4_switch_join(pipes, (uint32_t)n + 1, port_bits);
    if (!status)
        Py_XSETREF(self->pipes, Py_NewRef(others));
    return none_or_raise(self, status);
}

METHOD(set_tracing)
{
    int on;
    static char *names[] = {"on", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "p", names, &on))
        return NULL;
    p4_fifo_set_tracing(self->sw->fifo, on);
    Py_RETURN_NONE;
}

static PyObject *traced(switch_object *self, PyObject *Py_UNUSED(ignored))
{
    uint64_t lost;
    PyObject *list = PyList_New(0);
    for (p4_traced *t = p4_fifo_traced(self->sw->fifo, &lost), *next; t; t = next) {
        next = t->next;
        PyObject *item = list ? p4_trace_tuple(&t->event, t->data) : NULL;
        if (list && (!item || PyList_Append(list, item) < 0))
            Py_CLEAR(list);
        Py_XDECREF(item);
        free(t);
    }
    return list ? Py_BuildValue("NK", list, (unsigned long long)lost) : NULL;
}

static PyObject *passed(switch_object *self, PyObject *Py_UNUSED(ignored))
{
    uint32_t n = self->sw->program->n_points;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(self->sw->passed[i]);
        if (!count)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, count);
    }
    return list;
}

static PyObject *reset(switch_object *self, PyObject *Py_UNUSED(ignored))
{
    return none_or_raise(self, p4_switch_reset(self->sw));
}

/* --- the type -------------------------------------------------------------------------------------------------------------------------- */

static int switch_init(switch_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"library", "device_id", "seed", "tick_ns", NULL};
    PyObject *path = NULL;
    uint32_t device_id = 0;
    uint64_t seed = 0, tick_ns = 1;
    char error[256] = "out of memory";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$O&O&O&", names, PyUnicode_FSConverter, &path, to_u32, &device_id,
                                     to_u64, &seed, to_u64, &tick_ns))
        return -1;
    if (self->sw) {
        PyErr_SetString(PyExc_ValueError, "the switch has been initialised already");
    } else if (!tick_ns) {
        PyErr_SetString(PyExc_ValueError, "tick_ns: expected a positive number");
    } else {
        /* Libraries stay loaded: packets of their pools may outlive a switch. */
        void *library = dlopen(PyBytes_AS_STRING(path), RTLD_NOW | RTLD_LOCAL);
        const p4_program *program = library ? dlsym(library, P4_PROGRAM_SYMBOL) : NULL;
        const char *reason = library ? NULL : dlerror(); /* it has no numbers for its reasons */
        if (reason && (strstr(reason, "failed to map") || strstr(reason, "annot allocate memory")))
            PyErr_NoMemory();
        else if (!program)
            PyErr_Format(PyExc_ValueError, "%s is not a compiled pipeline", PyBytes_AS_STRING(path));
        else if (program->abi != P4_ABI)
            PyErr_Format(PyExc_ValueError, "%s was compiled for another version of the engine",
                         PyBytes_AS_STRING(path));
        else if (!(self->sw = p4_switch_new(program, device_id, seed, tick_ns, error)))
            PyErr_SetString(PyExc_ValueError, error);
    }
    Py_DECREF(path);
    return PyErr_Occurred() ? -1 : 0;
}

static void switch_dealloc(switch_object *self)
{
    if (self->sw)
        p4_switch_delete(self->sw);
    Py_XDECREF(self->pipes);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *get_counts(switch_object *self, void *closure)
{
    const p4_switch_counts counts = p4_switch_get_counts(self->sw), *c = &counts;
    (void)closure;
    return Py_BuildValue("{sKsKsKsKsK}", "received", (unsigned long long)c->received, "cloned",
                         (unsigned long long)c->cloned, "multicast", (unsigned long long)c->multicast, "transmitted", (unsigned long long)c->transmitted, "dropped",
                         (unsigned long long)c->dropped);
}

static PyObject *get_drop_port(switch_object *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(self->sw->drop_port);
}

static int set_drop_port(switch_object *self, PyObject *value, void *closure)
{
    (void)closure;
    if (!value) {
        PyErr_SetString(PyExc_ValueError, "drop_port cannot be deleted");
        return -1;
    }
    return to_u32(value, &self->sw->drop_port) ? 0 : -1;
}

static PyObject *get_lost_digests(switch_object *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(p4_fifo_lost_digests(self->sw->fifo));
}

static PyObject *get_failed_asserts(switch_object *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(self->sw->failed_asserts);
}

static PyObject *get_failed_assert(switch_object *self, void *closure)
{
    (void)closure;
    const char *text = self->sw->failed_assert;
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_NewRef(Py_None);
}

#define ENTRY(name) {#name, (PyCFunction)(void (*)(void))name, METH_VARARGS | METH_KEYWORDS, NULL}

static PyMethodDef methods[] = {
    ENTRY(process),
    ENTRY(measure),
    ENTRY(join), ENTRY(set_tracing),
    ENTRY(table_add),
    ENTRY(table_modify),
    ENTRY(table_delete),
    ENTRY(table_set_default),
    ENTRY(table_clear),
    ENTRY(table_last_hit),
    ENTRY(member_add),
    ENTRY(member_modify),
    ENTRY(member_delete),
    ENTRY(group_add),
    ENTRY(group_set),
    ENTRY(group_delete),
    ENTRY(counter_read),
    ENTRY(counter_packets),
    ENTRY(counter_write),
    ENTRY(direct_counter_read),
    ENTRY(direct_counter_write),
    ENTRY(meter_set),
    ENTRY(meter_adjust),
    ENTRY(direct_meter_set),
    ENTRY(register_read),
    ENTRY(register_write),
    ENTRY(object_read),
    ENTRY(object_write),
    ENTRY(multicast_set),
    ENTRY(clone_session_set),
    ENTRY(value_set_set),
    {"digests", (PyCFunction)(void (*)(void))digests, METH_NOARGS, NULL},
    {"said", (PyCFunction)(void (*)(void))said, METH_NOARGS, NULL},
    {"traced", (PyCFunction)(void (*)(void))traced, METH_NOARGS, NULL},
    {"passed", (PyCFunction)(void (*)(void))passed, METH_NOARGS, NULL},
    {"reset", (PyCFunction)(void (*)(void))reset, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"counts", (getter)get_counts, NULL, NULL, NULL},
    {"drop_port", (getter)get_drop_port, (setter)set_drop_port, NULL, NULL},
    {"lost_digests", (getter)get_lost_digests, NULL, NULL, NULL},
    {"failed_asserts", (getter)get_failed_asserts, NULL, NULL, NULL},
    {"failed_assert", (getter)get_failed_assert, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject switch_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "p4switch.engine._engine.Switch",
    .tp_basicsize = sizeof(switch_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "One instance of a compiled pipeline.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)switch_init,
    .tp_dealloc = (destructor)switch_dealloc,
    .tp_methods = methods,
    .tp_getset = getset,
};

p4_switch *p4_switch_of(PyObject *object)
{
    if (Py_TYPE(object) != &switch_type) {
        PyErr_Format(PyExc_TypeError, "expected a Switch, not %s", Py_TYPE(object)->tp_name);
        return NULL;
    }
    p4_switch *sw = ((switch_object *)object)->sw;
    if (!sw)
        PyErr_SetString(PyExc_ValueError, "the switch was not initialised");
    return sw;
}

int p4_engine_register(PyObject *module)
{
    if (PyType_Ready(&switch_type) < 0)
        return -1;
    Py_INCREF(&switch_type);
    if (PyModule_AddObject(module, "Switch", (PyObject *)&switch_type) < 0) {
        Py_DECREF(&switch_type);
        return -1;
    }
    return 0;
}
