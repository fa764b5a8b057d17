/* What externs ask for a packet: a digest, 0 is not asked for; and what is known of it before its parser. */
#define P4_STATE uint16_t digest; uint16_t rid; uint8_t bypass, rid_first, resubmitted, qid, color, cos, deflect, deflected;
