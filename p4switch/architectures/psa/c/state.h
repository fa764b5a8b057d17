/* What externs of PSA ask for a packet, done at the end of ingress or egress: 0 is not asked for. */
#define P4_STATE uint16_t digest;
