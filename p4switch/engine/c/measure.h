/* Time that a pipeline takes for a packet, with nothing around it. */
#ifndef P4CC_MEASURE_H
#define P4CC_MEASURE_H

#include "runtime.h"

/* Returns the CPU seconds for passing all frames `rounds` times through ingress and egress, each through the next
 * switch. *sent: frames that left. Replaces the switches' environments. */
double p4_measure(p4_switch **switches, size_t n_switches, uint32_t port, const p4_bytes *frames, size_t n,
                  uint32_t rounds, uint64_t *sent);

#endif
