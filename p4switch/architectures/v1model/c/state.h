/* What externs of v1model ask for a packet, done at the end of the pipeline that it is in: 0 is not asked for. */
#define P4_STATE uint16_t clone_session, clone_list, digest, resubmit, recirculate;
