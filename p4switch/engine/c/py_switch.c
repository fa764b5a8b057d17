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

static PyObject *raise_status(const switch_object *self, int status)
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

static int to_bytes(PyObject *object, void *result)
{
    char *data;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(object, &data, &len) < 0)
        return 0;
    *(p4_bytes *)result = (p4_bytes){(const uint8_t *)data, (size_t)len};
    return 1;
}

/* A table, profile, counter or the like, which an argument names. */
typedef struct {
    const switch_object *self;
    int (*find)(p4_switch *sw, const char *name);
    const char *name;
    uint32_t at;
} named;

static int to_named(PyObject *object, void *result)
{
    named *n = result;
    Py_ssize_t len;
    n->name = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &len) : NULL;
    if (!n->name || strlen(n->name) != (size_t)len) {
        if (!PyErr_Occurred())
            PyErr_SetString(n->name ? PyExc_ValueError : PyExc_TypeError, "expected a name");
        return 0;
    }
    int at = n->find(n->self->sw, n->name);
    if (at < 0)
        raise_status(n->self, at);
    n->at = (uint32_t)at;
    return at >= 0;
}

/* A sequence, each of whose items `convert` writes to an element of `size` bytes. `sequence`, a tuple, keeps
 * alive what they refer to. */
typedef struct {
    int (*convert)(PyObject *object, void *item);
    size_t size;
    const char *expected;
    void *items;
    size_t n;
    PyObject *sequence;
} elements;

static void elements_release(elements *e)
{
    PyMem_Free(e->items);
    e->items = NULL;
    Py_CLEAR(e->sequence);
}

/* NULL: the arguments after this one were wrong. */
static int to_elements(PyObject *object, void *result)
{
    elements *e = result;
    if (!object) {
        elements_release(e);
        return 1;
    }
    e->items = NULL;
    PyObject *sequence = PySequence_Fast(object, e->expected);
    e->sequence = sequence ? PySequence_Tuple(sequence) : NULL; /* `convert` may run code that changes a list */
    Py_XDECREF(sequence);
    if (!e->sequence)
        return 0;
    e->n = (size_t)PyTuple_GET_SIZE(e->sequence);
    e->items = PyMem_Calloc(e->n + 1, e->size);
    if (!e->items)
        PyErr_NoMemory();
    for (size_t i = 0; e->items && i < e->n; i++)
        if (!e->convert(PyTuple_GET_ITEM(e->sequence, (Py_ssize_t)i), (char *)e->items + i * e->size))
            elements_release(e);
    if (e->items)
        return Py_CLEANUP_SUPPORTED;
    elements_release(e);
    return 0;
}

/* An action with its arguments, or a member or group. */
typedef struct {
    p4_aim aim;
    elements args;
} aim_holder;

static void aim_release(aim_holder *h) { elements_release(&h->args); }

/* The arguments of an action, whose name is still to be set. */
static int to_aim_of_args(PyObject *args, void *result)
{
    aim_holder *h = result;
    if (args)
        *h = (aim_holder){.args = {to_bytes, sizeof(p4_bytes), "expected a sequence of action arguments"}};
    int done = to_elements(args, &h->args);
    h->aim = (p4_aim){.kind = P4_TO_ACTION, .args = h->args.items, .n_args = h->args.n};
    return done;
}

/* ("action", name, args), ("member", handle) or ("group", handle). */
static int to_aim(PyObject *target, void *result)
{
    aim_holder *h = result;
    const char *kind = NULL;
    if (!target)
        return to_aim_of_args(NULL, h);
    *h = (aim_holder){.aim = {.kind = P4_TO_MEMBER}};
    if (PyTuple_Check(target) && PyTuple_GET_SIZE(target) >= 1)
        kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(target, 0));
    if (kind && !strcmp(kind, "action") && PyTuple_GET_SIZE(target) == 3) {
        const char *action = PyUnicode_AsUTF8(PyTuple_GET_ITEM(target, 1));
        int done = action ? to_aim_of_args(PyTuple_GET_ITEM(target, 2), h) : 0;
        h->aim.action = action;
        return done;
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
static int to_match(PyObject *pair, void *result)
{
    p4_match *m = result;
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

#define METHOD(name) static PyObject *name(switch_object *self, PyObject *args, PyObject *kwargs)
/* Returns NULL from a method whose arguments are wrong; `names` is its array of their names. */
#define ARGUMENTS(format, ...)                                                                                        \
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, __VA_ARGS__))                                       \
        return NULL

/* --- tables ------------------------------------------------------------------------------------------------------------ */

METHOD(table_add)
{
    static char *names[] = {"table", "key", "priority", "target", NULL};
    named table = {.self = self, .find = p4_find_table};
    elements key = {to_match, sizeof(p4_match), "expected a sequence of key fields"};
    int priority;
    aim_holder target;
    ARGUMENTS("O&O&iO&", to_named, &table, to_elements, &key, &priority, to_aim, &target);
    uint32_t handle = 0;
    int status = p4_table_add(self->sw, table.at, key.items, key.n, priority, &target.aim, &handle);
    aim_release(&target);
    elements_release(&key);
    return handle_or_raise(self, status, handle);
}

METHOD(table_modify)
{
    static char *names[] = {"table", "handle", "target", NULL};
    named table = {.self = self, .find = p4_find_table};
    uint32_t handle;
    aim_holder target;
    ARGUMENTS("O&O&O&", to_named, &table, to_u32, &handle, to_aim, &target);
    int status = p4_table_modify(self->sw, table.at, handle, &target.aim);
    aim_release(&target);
    return none_or_raise(self, status);
}

METHOD(table_delete)
{
    static char *names[] = {"table", "handle", NULL};
    named table = {.self = self, .find = p4_find_table};
    uint32_t handle;
    ARGUMENTS("O&O&", to_named, &table, to_u32, &handle);
    return none_or_raise(self, p4_table_delete(self->sw, table.at, handle));
}

METHOD(table_set_default)
{
    static char *names[] = {"table", "target", NULL};
    named table = {.self = self, .find = p4_find_table};
    PyObject *target;
    aim_holder aim;
    ARGUMENTS("O&O", to_named, &table, &target);
    if (target == Py_None)
        return none_or_raise(self, p4_table_set_default(self->sw, table.at, NULL));
    if (!to_aim(target, &aim))
        return NULL;
    int status = p4_table_set_default(self->sw, table.at, &aim.aim);
    aim_release(&aim);
    return none_or_raise(self, status);
}

METHOD(table_clear)
{
    static char *names[] = {"table", NULL};
    named table = {.self = self, .find = p4_find_table};
    ARGUMENTS("O&", to_named, &table);
    return none_or_raise(self, p4_table_clear(self->sw, table.at));
}

METHOD(table_last_hit)
{
    static char *names[] = {"table", "handle", NULL};
    named table = {.self = self, .find = p4_find_table};
    uint32_t handle;
    ARGUMENTS("O&O&", to_named, &table, to_u32, &handle);
    const p4_table_info *info = &self->sw->program->tables[table.at];
    if (!info->with_last_hit)
        return PyErr_Format(PyExc_ValueError, "table %s does not support timeouts", table.name);
    p4_entry *e = p4_table_entry(self->sw, table.at, handle);
    return e ? PyLong_FromUnsignedLongLong(*p4_entry_last_hit(info, e)) : raise_status(self, P4_INVALID);
}

/* --- action profiles ----------------------------------------------------------------------------------------------------- */

METHOD(member_add)
{
    static char *names[] = {"profile", "action", "args", NULL};
    named profile = {.self = self, .find = p4_find_profile};
    const char *action;
    aim_holder aim;
    ARGUMENTS("O&sO&", to_named, &profile, &action, to_aim_of_args, &aim);
    aim.aim.action = action;
    uint32_t handle = 0;
    int status = p4_member_add(self->sw, profile.at, &aim.aim, &handle);
    aim_release(&aim);
    return handle_or_raise(self, status, handle);
}

METHOD(member_modify)
{
    static char *names[] = {"profile", "member", "action", "args", NULL};
    named profile = {.self = self, .find = p4_find_profile};
    uint32_t member;
    const char *action;
    aim_holder aim;
    ARGUMENTS("O&O&sO&", to_named, &profile, to_u32, &member, &action, to_aim_of_args, &aim);
    aim.aim.action = action;
    int status = p4_member_modify(self->sw, profile.at, member, &aim.aim);
    aim_release(&aim);
    return none_or_raise(self, status);
}

METHOD(member_delete)
{
    static char *names[] = {"profile", "member", NULL};
    named profile = {.self = self, .find = p4_find_profile};
    uint32_t member;
    ARGUMENTS("O&O&", to_named, &profile, to_u32, &member);
    return none_or_raise(self, p4_member_delete(self->sw, profile.at, member));
}

METHOD(group_add)
{
    static char *names[] = {"profile", NULL};
    named profile = {.self = self, .find = p4_find_profile};
    ARGUMENTS("O&", to_named, &profile);
    uint32_t handle = 0;
    int status = p4_group_add(self->sw, profile.at, &handle);
    return handle_or_raise(self, status, handle);
}

METHOD(group_set)
{
    static char *names[] = {"profile", "group", "members", NULL};
    named profile = {.self = self, .find = p4_find_profile};
    uint32_t group;
    elements members = {to_u32, sizeof(uint32_t), "expected a sequence of members"};
    ARGUMENTS("O&O&O&", to_named, &profile, to_u32, &group, to_elements, &members);
    int status = p4_group_set(self->sw, profile.at, group, members.items, members.n);
    elements_release(&members);
    return none_or_raise(self, status);
}

METHOD(group_delete)
{
    static char *names[] = {"profile", "group", NULL};
    named profile = {.self = self, .find = p4_find_profile};
    uint32_t group;
    ARGUMENTS("O&O&", to_named, &profile, to_u32, &group);
    return none_or_raise(self, p4_group_delete(self->sw, profile.at, group));
}

/* --- counters, meters, registers --------------------------------------------------------------------------------------------- */

/* A cell of `named`, of which there are `size`; otherwise an exception is set. */
static int has_cell(const char *kind, const named *of, uint32_t size, uint32_t index)
{
    if (index >= size)
        PyErr_Format(PyExc_ValueError, "%s %s has %u cells; there is no cell %u", kind, of->name, size, index);
    return index < size;
}

static p4_counter *find_counter(const named *counter, uint32_t index)
{
    const p4_switch *sw = counter->self->sw;
    return has_cell("counter", counter, sw->program->counters[counter->at].size, index)
               ? &sw->counters[counter->at][index]
               : NULL;
}

static p4_counter *find_direct(const named *table, uint32_t handle)
{
    p4_switch *sw = table->self->sw;
    const p4_table_info *info = &sw->program->tables[table->at];
    if (!info->with_counters) {
        PyErr_Format(PyExc_ValueError, "table %s has no direct counter", table->name);
        return NULL;
    }
    p4_entry *e = p4_table_entry(sw, table->at, handle);
    if (!e)
        raise_status(table->self, P4_INVALID);
    return e ? p4_entry_counter(info, e) : NULL;
}

static PyObject *counter_value(const p4_counter *c)
{
    return c ? Py_BuildValue("KK", (unsigned long long)c->packets, (unsigned long long)c->bytes) : NULL;
}

static PyObject *set_counter(p4_counter *c, p4_counter value)
{
    if (!c)
        return NULL;
    *c = value;
    Py_RETURN_NONE;
}

METHOD(counter_read)
{
    static char *names[] = {"name", "index", NULL};
    named counter = {.self = self, .find = p4_find_counter};
    uint32_t index;
    ARGUMENTS("O&O&", to_named, &counter, to_u32, &index);
    return counter_value(find_counter(&counter, index));
}

METHOD(counter_packets)
{
    static char *names[] = {"name", "cells", NULL};
    named counter = {.self = self, .find = p4_find_counter};
    uint32_t cells;
    ARGUMENTS("O&O&", to_named, &counter, to_u32, &cells);
    if (cells && !find_counter(&counter, cells - 1))
        return NULL;
    const p4_counter *first = cells ? find_counter(&counter, 0) : NULL;
    PyObject *column = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(cells * sizeof(int64_t)));
    for (uint32_t i = 0; column && i < cells; i++)
        memcpy(PyBytes_AS_STRING(column) + i * sizeof(int64_t), &first[i].packets, sizeof(int64_t));
    return column;
}

METHOD(direct_counter_read)
{
    static char *names[] = {"table", "handle", NULL};
    named table = {.self = self, .find = p4_find_table};
    uint32_t handle;
    ARGUMENTS("O&O&", to_named, &table, to_u32, &handle);
    return counter_value(find_direct(&table, handle));
}

METHOD(counter_write)
{
    static char *names[] = {"name", "index", "packets", "nbytes", NULL};
    named counter = {.self = self, .find = p4_find_counter};
    uint32_t index;
    p4_counter value;
    ARGUMENTS("O&O&O&O&", to_named, &counter, to_u32, &index, to_u64, &value.packets, to_u64, &value.bytes);
    return set_counter(find_counter(&counter, index), value);
}

METHOD(direct_counter_write)
{
    static char *names[] = {"table", "handle", "packets", "nbytes", NULL};
    named table = {.self = self, .find = p4_find_table};
    uint32_t handle;
    p4_counter value;
    ARGUMENTS("O&O&O&O&", to_named, &table, to_u32, &handle, to_u64, &value.packets, to_u64, &value.bytes);
    return set_counter(find_direct(&table, handle), value);
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
    static char *names[] = {"name", "index", "config", NULL};
    named meter = {.self = self, .find = p4_find_meter};
    uint32_t index;
    PyObject *config;
    ARGUMENTS("O&O&O", to_named, &meter, to_u32, &index, &config);
    if (!has_cell("meter", &meter, self->sw->program->meters[meter.at].size, index))
        return NULL;
    return set_meter(self, &self->sw->meters[meter.at][index], config);
}

METHOD(meter_adjust)
{
    static char *names[] = {"name", "nbytes", NULL};
    named meter = {.self = self, .find = p4_find_meter};
    int adjust;
    ARGUMENTS("O&i", to_named, &meter, &adjust);
    self->sw->meters_more[meter.at].adjust = adjust;
    Py_RETURN_NONE;
}

METHOD(direct_meter_set)
{
    static char *names[] = {"table", "handle", "config", NULL};
    named table = {.self = self, .find = p4_find_table};
    uint32_t handle;
    PyObject *given, *config;
    ARGUMENTS("O&OO", to_named, &table, &given, &config);
    int m = self->sw->program->tables[table.at].meter;
    if (m < 0)
        return PyErr_Format(PyExc_ValueError, "table %s has no direct meter", table.name);
    if (given == Py_None)
        return set_meter(self, &self->sw->meters_more[m].fallback, config);
    if (!to_u32(given, &handle))
        return NULL;
    if (!p4_table_entry(self->sw, table.at, handle))
        return raise_status(self, P4_INVALID);
    return set_meter(self, &self->sw->meters[m][handle], config);
}

METHOD(register_read)
{
    static char *names[] = {"name", "index", NULL};
    named array = {.self = self, .find = p4_find_register};
    uint32_t index;
    ARGUMENTS("O&O&", to_named, &array, to_u32, &index);
    Py_ssize_t len = (Py_ssize_t)(self->sw->program->registers[array.at].width + 7) / 8;
    PyObject *value = PyBytes_FromStringAndSize(NULL, len);
    if (!value)
        return NULL;
    int status = p4_register_get(self->sw, array.at, index, (uint8_t *)PyBytes_AS_STRING(value), (size_t)len);
    if (!status)
        return value;
    Py_DECREF(value);
    return raise_status(self, status);
}

METHOD(register_write)
{
    static char *names[] = {"name", "index", "value", NULL};
    named array = {.self = self, .find = p4_find_register};
    uint32_t index;
    p4_bytes value;
    ARGUMENTS("O&O&O&", to_named, &array, to_u32, &index, to_bytes, &value);
    return none_or_raise(self, p4_register_set(self->sw, array.at, index, value.data, value.len));
}

/* A cell of an extern object, or NULL with an exception; *len: its bytes. */
static uint8_t *object_cell(const named *object, uint32_t index, Py_ssize_t *len)
{
    uint8_t *cell = p4_object_cell(object->self->sw, object->at, index);
    if (!cell)
        raise_status(object->self, P4_INVALID);
    *len = (Py_ssize_t)object->self->sw->program->objects[object->at].stride;
    return cell;
}

METHOD(object_read)
{
    static char *names[] = {"name", "index", NULL};
    named object = {.self = self, .find = p4_find_object};
    uint32_t index;
    Py_ssize_t len;
    ARGUMENTS("O&O&", to_named, &object, to_u32, &index);
    uint8_t *cell = object_cell(&object, index, &len);
    return cell ? PyBytes_FromStringAndSize((const char *)cell, len) : NULL;
}

METHOD(object_write)
{
    static char *names[] = {"name", "index", "value", NULL};
    named object = {.self = self, .find = p4_find_object};
    uint32_t index;
    p4_bytes value;
    Py_ssize_t len;
    ARGUMENTS("O&O&O&", to_named, &object, to_u32, &index, to_bytes, &value);
    uint8_t *cell = object_cell(&object, index, &len);
    if (!cell)
        return NULL;
    if ((Py_ssize_t)value.len != len)
        return PyErr_Format(PyExc_ValueError, "%s: expected a cell of %zd bytes, got %zu", object.name, len, value.len);
    memcpy(cell, value.data, value.len);
    p4_switch_state_changed(self->sw);
    Py_RETURN_NONE;
}

/* --- replication, value sets, digests ------------------------------------------------------------------------------------------- */

/* (port, instance), followed by the other members of a p4_replica in order if they are given. */
static int to_replica(PyObject *tuple, void *result)
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
    *(p4_replica *)result = (p4_replica){values[0], values[1], values[2], (uint16_t)values[3], (uint16_t)values[4],
                                         (uint16_t)values[5], (uint16_t)values[6]};
    return 1;
}

static PyObject *set_replicas(switch_object *self, p4_groups *groups, uint32_t id, PyObject *replicas, uint32_t truncate)
{
    if (replicas == Py_None)
        return none_or_raise(self, p4_replicas_set(self->sw, groups, id, NULL, 0, 0, 1));
    elements all = {to_replica, sizeof(p4_replica), "expected a sequence of (port, instance)"};
    if (!to_elements(replicas, &all))
        return NULL;
    int status = p4_replicas_set(self->sw, groups, id, all.items, all.n, truncate, 0);
    elements_release(&all);
    return none_or_raise(self, status);
}

METHOD(multicast_set)
{
    static char *names[] = {"group", "replicas", NULL};
    uint32_t group;
    PyObject *replicas;
    ARGUMENTS("O&O", to_u32, &group, &replicas);
    if (!group)
        return PyErr_Format(PyExc_ValueError, "multicast group 0 means no multicast; expected a higher number");
    return set_replicas(self, &self->sw->multicast, group, replicas, 0);
}

METHOD(clone_session_set)
{
    static char *names[] = {"session", "replicas", "truncate_bytes", NULL};
    uint32_t session, truncate = 0;
    PyObject *replicas;
    ARGUMENTS("O&O|O&", to_u32, &session, &replicas, to_u32, &truncate);
    if (session > 0x7fff)
        return PyErr_Format(PyExc_ValueError, "clone session %u: expected a number up to 32767", session);
    return set_replicas(self, &self->sw->clones, session, replicas, truncate);
}

METHOD(value_set_set)
{
    static char *names[] = {"name", "members", NULL};
    named vset = {.self = self, .find = p4_find_vset};
    PyObject *members;
    ARGUMENTS("O&O", to_named, &vset, &members);
    uint32_t n_keys = self->sw->program->vsets[vset.at].n_keys;
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
                PyErr_Format(PyExc_ValueError, "value set %s: expected %u key fields", vset.name, n_keys);
            result = NULL;
        }
        for (uint32_t k = 0; result && k < n_keys; k++)
            if (!to_match(PySequence_Fast_GET_ITEM(member, k), &matches[i * n_keys + k]))
                result = NULL;
        Py_XDECREF(member);
    }
    if (result)
        result = none_or_raise(self, p4_vset_set(self->sw, vset.at, matches, (size_t)n));
    PyMem_Free(matches);
    Py_XDECREF(fields);
    Py_DECREF(sequence);
    return result;
}

/* Appends an item to a list, and takes the item. Clears both if one of them is NULL or there is no memory. */
static void append(PyObject **items, PyObject *item)
{
    if (*items && (!item || PyList_Append(*items, item) < 0))
        Py_CLEAR(*items);
    Py_XDECREF(item);
}

static PyObject *digests(switch_object *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *list = PyList_New(0);
    for (p4_digest *d = p4_fifo_digests(self->sw->fifo), *next; d; d = next) {
        next = d->next;
        append(&list, list ? Py_BuildValue("Iy#", d->list_id, (const char *)d->data, (Py_ssize_t)d->len) : NULL);
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
        append(&list, text ? Py_BuildValue("ON", s->failed ? Py_True : Py_False, text) : NULL);
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

static int to_switch(PyObject *object, void *result) { return (*(p4_switch **)result = p4_switch_of(object)) != NULL; }

METHOD(measure)
{
    static char *names[] = {"port", "frames", "rounds", "others", NULL};
    uint32_t port, rounds;
    elements frames = {to_bytes, sizeof(p4_bytes), "expected a sequence of frames"};
    elements others = {to_switch, sizeof(p4_switch *), "expected a sequence of switches"};
    ARGUMENTS("O&O&O&|O&", to_u32, &port, to_elements, &frames, to_u32, &rounds, to_elements, &others);
    size_t n = others.n + 1;
    p4_switch **switches = PyMem_Calloc(n, sizeof *switches);
    p4_env *outer = PyMem_Calloc(n, sizeof *outer);
    PyObject *result = NULL;
    if (!switches || !outer) {
        PyErr_NoMemory();
    } else if (!frames.n) {
        PyErr_SetString(PyExc_ValueError, "expected at least one frame");
    } else {
        for (size_t i = 0; i < n; i++) {
            switches[i] = i ? ((p4_switch **)others.items)[i - 1] : self->sw;
            outer[i] = switches[i]->env;
        }
        uint64_t sent;
        double seconds = p4_measure(switches, n, port, frames.items, frames.n, rounds, &sent);
        for (size_t i = 0; i < n; i++)
            p4_switch_set_env(switches[i], &outer[i]);
        result = Py_BuildValue("dK", seconds, (unsigned long long)sent);
    }
    PyMem_Free(outer);
    PyMem_Free(switches);
    elements_release(&others);
    elements_release(&frames);
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
        append(&list, list ? p4_trace_tuple(&t->event, t->data) : NULL);
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
        if (!library)
            PyErr_SetString(PyExc_OSError, dlerror()); /* names the file; where memory is short, only its text says so */
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
    return Py_BuildValue("{sKsKsKsKsK}", "received", (unsigned long long)c->received,
                         "cloned", (unsigned long long)c->cloned, "multicast", (unsigned long long)c->multicast,
                         "transmitted", (unsigned long long)c->transmitted,
                         "dropped", (unsigned long long)c->dropped);
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
