/* Requests of PSA's externs for a packet, carried out at the end of ingress or egress. 0: not requested. */
#define P4_STATE uint16_t digest;
