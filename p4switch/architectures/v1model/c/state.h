/* Requests of v1model's externs for a packet, carried out at the end of its current pipeline. 0: not requested. */
#define P4_STATE uint16_t clone_session, clone_list, digest, resubmit, recirculate;
