/* The extension module `_engine`: the types Switch and, where it is built in, Fabric. */
#include "python.h"

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_engine",
    .m_doc = "P4 pipelines and networks of them, in C.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__engine(void)
{
    PyObject *self = PyModule_Create(&module);
    if (!self)
        return NULL;
    if (p4_engine_register(self) < 0)
        goto failed;
#ifdef P4_WITH_FABRIC
    if (p4_fabric_register(self) < 0)
        goto failed;
#endif
    return self;
failed:
    Py_DECREF(self);
    return NULL;
}
