/* The traffic manager's settings from Python: keyword arguments of the fabric and of the switch process. */
#ifndef P4CC_PY_SETTINGS_H
#define P4CC_PY_SETTINGS_H

#include "python.h"

#include "tm.h"

#define SETTING_MAX (UINT64_MAX >> 2)

/* Each function reads one value, which is NULL if it is not given. -1: ValueError is set, with the name. */
int setting_number(PyObject *value, const char *name, uint64_t low, uint64_t high, uint64_t none, uint64_t *out);
int setting_bytes(PyObject *value, const char *name, uint64_t *out);      /* None: no limit */
int setting_packets(PyObject *value, const char *name, uint32_t *out);    /* None: no limit */
int setting_factor(PyObject *value, const char *name, double *out);       /* None: -1 */
int setting_scheduler(const char *scheduler, bool *round_robin);          /* fifo, round_robin */
int setting_priorities(PyObject *value, const char *name, uint8_t *mask);

/* All settings of a switch's traffic manager. `values`: a dict that contains nothing else. `t`: buffer, threshold,
 * cells and classes are set; `limits`: those of its ports. -1: TypeError or ValueError is set, and nothing has
 * changed. */
int settings_apply(PyObject *values, tm_switch *t, tm_limits *limits);

/* PFC of an ingress port: priorities and thresholds. -1 as above. */
int settings_pfc(PyObject *values, const tm_switch *t, tm_pfc *config, uint8_t *lossless);
/* Applies PFC's settings to a port that has room for them (tm_pfc_alloc). */
void settings_use_pfc(tm_port *port, const tm_pfc *config, uint8_t lossless);
/* Subtracts the headroom of all lossless (port, priority) pairs from the buffer; false: it does not fit, and nothing
 * has changed. */
bool settings_reserve_headroom(tm_switch *t);

/* Trimming at a port, and the limits of its queues. -1 as above. */
int settings_trimming(PyObject *values, tm_trimming *trimming, uint64_t *limit_bytes, uint64_t *into_limit_bytes);
/* Applies trimming to an empty port. -1: ValueError or MemoryError is set. */
int settings_use_trimming(tm_port *port, const tm_trimming *trimming, uint64_t limit_bytes, uint64_t into_limit_bytes);

#endif
