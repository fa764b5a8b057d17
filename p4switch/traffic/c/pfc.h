/* Priority flow control, IEEE 802.1Qbb: its frames and their effects on a port. The driver of the port transports the
 * frames and calls again at the times that these functions return.
 */
#ifndef P4CC_PFC_H
#define P4CC_PFC_H

#include "tm.h"

#define PFC_BYTES 60 /* without FCS */
#define PFC_NEVER UINT64_MAX

bool pfc_is_frame(const uint8_t *data, size_t len);
/* Duration of a pause of this many quanta (512 bit times) at a rate, in ns, rounded up; 0 without a rate. */
uint64_t pfc_quanta_ns(uint32_t quanta, uint64_t rate_bps);

/* Writes the present state for the peer, as a frame of PFC_BYTES. */
void pfc_write(const tm_port *port, const uint8_t source[6], uint8_t *data);
/* Notes that this frame is on its way. The peer measures pauses at `rate_bps`. Returns the time when pfc_refresh is
 * due; PFC_NEVER: no earlier than the time returned before. */
uint64_t pfc_sent(tm_port *port, uint64_t now, uint64_t rate_bps);
/* Renews the pauses that last. */
void pfc_refresh(tm_port *port);

/* Processes a frame of the peer after the reaction time. Returns the end of its first pause; PFC_NEVER: there is
 * none, or there is no memory to obey it. The port has a rate. */
uint64_t pfc_apply(tm_port *port, const uint8_t *data, uint64_t now);
/* Ends the pauses whose time is over. */
void pfc_expire(tm_port *port, uint64_t now);
/* The time at which the first pause ends by itself. */
uint64_t pfc_first_end(const tm_port *port);
/* Handles a link that is down: both ends forget the other's pauses. */
void pfc_forget(tm_port *port, uint64_t now);

#endif
