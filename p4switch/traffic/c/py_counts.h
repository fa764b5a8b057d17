/* Counts of a switch's port for Python, from the fabric and from the switch process. */
#ifndef P4CC_PY_COUNTS_H
#define P4CC_PY_COUNTS_H

#include "python.h"

#include "tm.h"

/* Frames of a port, those of PFC among them. Bytes are without the frame check sequence. */
typedef struct frame_counts {
    uint64_t received, received_bytes, pfc_received, sent, sent_bytes, pfc_sent;
} frame_counts;

/* Adds to `dict`, by the port's number, the keyword arguments of `port_counts` in p4switch/p4runtime/ports.py. -1: an
 * exception is set. */
int counts_put(PyObject *dict, const tm_port *port, const frame_counts *frames);

#endif
