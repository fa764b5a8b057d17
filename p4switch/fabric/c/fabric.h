/* The Python type Fabric: declarations shared by its parts. */
#ifndef P4CC_FABRIC_H
#define P4CC_FABRIC_H

#include "python.h"

#include "net.h"
#include "transport.h"

typedef struct fabric {
    PyObject_HEAD
    net *net;
    PyObject *calls; /* dict: number to the callable of an EV_CALL that is pending */
    uint64_t next_call;
    uint64_t now_value;
    PyObject *now; /* the int now_value, or NULL */
    bool running, settling;
    PyObject *settle; /* settles hosts that are held; NULL: no host is ever held */
    PyObject *deliver, *waiting, *exchange; /* of a worker, see fabric_workers.c; the last two may be NULL */
    Py_buffer memory;                      /* that it shares with others; memory.obj is NULL: none */
    uint32_t pauses;
} fabric;

typedef struct host {
    PyObject *receive, *next_frame, *next_wakeup; /* bound methods, ... */
    PyObject *may_report; /* ... this one is optional; NULL: every frame may cause a report */
    bool busy; /* one of the methods is being called */
} host;

/* Read arguments. NULL: ValueError is set. */
node *fabric_node(fabric *self, long index);
node *fabric_switch(fabric *self, long index);
net_port *fabric_port(fabric *self, long index, long number);
/* A frame from Python; NULL: an exception is set. */
p4_frame *fabric_frame(fabric *self, PyObject *data);

/* Called before the network is changed or read: it must not be inside a window. -1: RuntimeError is set. */
int check_framing(long framing_bytes);
int fabric_sync(fabric *self, const char *what);

#define FABRIC_METHOD(name) PyObject *fabric_##name(fabric *self, PyObject *args, PyObject *kwargs)

FABRIC_METHOD(add_host); /* fabric_build.c */
FABRIC_METHOD(add_switch);
FABRIC_METHOD(set_queue);
FABRIC_METHOD(set_port);
FABRIC_METHOD(set_trimming);
FABRIC_METHOD(set_pfc);
FABRIC_METHOD(connect);
FABRIC_METHOD(set_link_up);
FABRIC_METHOD(set_link_rate);
FABRIC_METHOD(set_link_delay);
FABRIC_METHOD(set_link_loss);
FABRIC_METHOD(watch_pfc);

FABRIC_METHOD(port_stats); /* fabric_stats.c */
FABRIC_METHOD(queue_stats);
FABRIC_METHOD(pfc_stats);
FABRIC_METHOD(link_counters);
FABRIC_METHOD(buffer_stats);
FABRIC_METHOD(port_counts);
FABRIC_METHOD(flow);
FABRIC_METHOD(flow_stats);
FABRIC_METHOD(conservation);

FABRIC_METHOD(pfc_events); /* fabric_record.c */
FABRIC_METHOD(probe);
FABRIC_METHOD(sample);
FABRIC_METHOD(samples);
FABRIC_METHOD(trace);
FABRIC_METHOD(trace_records);
FABRIC_METHOD(capture);
FABRIC_METHOD(captured);

FABRIC_METHOD(join); /* fabric_workers.c */
FABRIC_METHOD(broadcast);
FABRIC_METHOD(gather);
FABRIC_METHOD(take_records);
FABRIC_METHOD(add_records);
PyObject *fabric_shared_bytes(PyObject *unused, PyObject *arg);
PyObject *fabric_on_crash(PyObject *unused, PyObject *arguments);
int fabric_deliver(net *n);
transport *fabric_exchange_open(fabric *owner, uint32_t rank, uint32_t count); /* fabric_exchange.c; NULL: no memory */

extern const char *const fabric_drop_names[P4_DROP_REASONS];

#endif
