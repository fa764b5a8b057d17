// The fields that IPv4's header checksum covers, and v1model's blocks for it.
#ifndef P4CC_CHECKSUM_P4
#define P4CC_CHECKSUM_P4

#define IPV4_CHECKSUM_FIELDS {                                   \
    hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, \
    hdr.ipv4.total_len, hdr.ipv4.identification, hdr.ipv4.flags, \
    hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,       \
    hdr.ipv4.src_addr, hdr.ipv4.dst_addr }

#ifndef __TARGET_TOFINO__
control VerifyIpv4Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_FIELDS, hdr.ipv4.hdr_checksum,
                        HashAlgorithm.csum16);
    }
}

control UpdateIpv4Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_FIELDS, hdr.ipv4.hdr_checksum,
                        HashAlgorithm.csum16);
    }
}
#endif

#endif
