/* Priority flow control, IEEE 802.1Qbb: the frames, and what they do to a port. Whoever drives the port carries the frames
 * and comes back at the times that these functions tell it.
 */
#ifndef P4CC_PFC_H
#define P4CC_PFC_H

#include "tm.h"

#define PFC_BYTES 60 /* without FCS */
#define PFC_NEVER UINT64_MAX

bool pfc_is_frame(const uint8_t *data, size_t len);
/* A pause of so many quanta (512 bit times) at a rate, ns, rounded up; 0 without a rate. */
uint64_t pfc_quanta_ns(uint32_t quanta, uint64_t rate_bps);

/* What the peer should be told now, as a frame of PFC_BYTES. */
void pfc_write(const tm_port *port, const uint8_t source[6], uint8_t *data);
/* That frame is on its way. The peer measures pauses at `rate_bps`. When pfc_refresh is due; PFC_NEVER: no sooner than
 * was said before. */
uint64_t pfc_sent(tm_port *port, uint64_t now, uint64_t rate_bps);
/* Pauses that last are to be renewed. */
void pfc_refresh(tm_port *port);

/* The peer's frame has come in, and its reaction time is over: the first of its pauses ends then; PFC_NEVER: it has none,
 * or there is no memory to obey it. The port has a rate. */
uint64_t pfc_apply(tm_port *port, const uint8_t *data, uint64_t now);
/* Ends the pauses whose time is over. */
void pfc_expire(tm_port *port, uint64_t now);
/* When the first pause will end by itself. */
uint64_t pfc_first_end(const tm_port *port);
/* The link is down: neither end knows of the other's pauses. */
void pfc_forget(tm_port *port, uint64_t now);

#endif
