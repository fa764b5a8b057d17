/* Interface between the two Python types of the extension module, Switch and Fabric. */
#ifndef P4CC_PYTHON_H
#define P4CC_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "switch.h"

/* The pipeline of a `Switch`, which lives as long as the object; NULL with TypeError set if `object` is not a
 * Switch. */
p4_switch *p4_switch_of(PyObject *object);

/* An event as passed to Python: kind, packet, copy, now, point or -1, value, extra, data. */
static inline PyObject *p4_trace_tuple(const p4_trace_event *e, const void *data)
{
    return Py_BuildValue("iIILiLLy#I", (int)e->kind, e->packet, e->copy, (long long)e->now,
                         e->point == P4_NO_POINT ? -1 : (int)e->point, (long long)e->value, (long long)e->extra,
                         (const char *)data, (Py_ssize_t)e->size, e->pipe);
}

/* Adds `Switch` to the module; 0, or -1 with an exception set. */
int p4_engine_register(PyObject *module);

/* Adds `Fabric` to the module; defined in p4switch/fabric/c. */
int p4_fabric_register(PyObject *module);

#endif
