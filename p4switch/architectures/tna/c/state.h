/* Requests of externs for a packet (a digest; 0: none), and what is known about the packet before its parser. */
#define P4_STATE uint16_t digest; uint16_t rid; uint8_t bypass, rid_first, resubmitted, qid, color, cos, deflect, deflected;
