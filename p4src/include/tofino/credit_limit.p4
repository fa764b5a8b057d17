// ExpressPass's limit on credits for TNA and T2NA: a meter for each link.
//
// The cell of a port has the rate of credits in bytes, and their burst. A meter counts the bytes of
// a credit and its FCS, whatever else the link charges.
#ifndef P4CC_CREDIT_LIMIT_P4
#define P4CC_CREDIT_LIMIT_P4

const bit<8> METER_RED = 3;

// A stage of ingress.
control CreditLimit(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    bit<8> colour = 0;

    Meter<port_t>(MAX_PORTS, MeterType_t.BYTES) credit_rate;

    apply {
        if (meta.common.opcode == OPCODE_CREDIT) {
            colour = credit_rate.execute(standard_metadata.egress_spec);
            if (colour == METER_RED) {
                credit_drops.count(DROP_CREDIT);
                mark_to_drop(standard_metadata);
            }
        }
    }
}

#endif
