/* Python type Switch: the control plane of one pipeline. */
#include "python.h"

typedef struct {
    PyObject_HEAD
    p4_switch *sw;
} switch_object;

static PyTypeObject switch_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "p4switch.engine._engine.Switch",
    .tp_basicsize = sizeof(switch_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "One instance of a compiled pipeline.",
    .tp_new = PyType_GenericNew,
};

p4_switch *p4_switch_of(PyObject *object)
{
    if (Py_TYPE(object) != &switch_type) {
        PyErr_Format(PyExc_TypeError, "expected a Switch, not %s", Py_TYPE(object)->tp_name);
        return NULL;
    }
    return ((switch_object *)object)->sw;
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
