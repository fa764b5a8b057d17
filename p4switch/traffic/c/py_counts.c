#include "py_counts.h"

#define FCS_BYTES 4

static PyObject *counts_tuple(tm_counts counts)
{
    return Py_BuildValue("(KKK)", (unsigned long long)counts.dropped_packets, (unsigned long long)counts.waiting_cells,
                         (unsigned long long)counts.most_cells);
}

static PyObject *queues_list(const tm_port *port)
{
    PyObject *list = PyList_New(P4_SCHEDULED);
    for (uint32_t i = 0; list && i < P4_SCHEDULED; i++) {
        PyObject *counts = counts_tuple(tm_count_queue(port, i));
        if (counts)
            PyList_SET_ITEM(list, (Py_ssize_t)i, counts);
        else
            Py_CLEAR(list);
    }
    return list;
}

int counts_put(PyObject *dict, const tm_port *port, const frame_counts *frames)
{
    PyObject *number = PyLong_FromUnsignedLong(port->number);
    PyObject *row = Py_BuildValue(
        "{sKsKsKsKsKsKsNsN}", "frames_received", (unsigned long long)frames->received,
        "octets_received", (unsigned long long)(frames->received_bytes + FCS_BYTES * frames->received),
        "pfc_received", (unsigned long long)frames->pfc_received, "frames_sent", (unsigned long long)frames->sent,
        "octets_sent", (unsigned long long)(frames->sent_bytes + FCS_BYTES * frames->sent),
        "pfc_sent", (unsigned long long)frames->pfc_sent, "waiting", counts_tuple(tm_count_port(port)),
        "queues", queues_list(port));
    int failed = number && row ? PyDict_SetItem(dict, number, row) : -1;
    Py_XDECREF(number);
    Py_XDECREF(row);
    return failed;
}
