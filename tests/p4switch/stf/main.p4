control verify_sums(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { }
}

control update_sums(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control deparse(packet_out pkt, in headers_t hdr) {
    apply { pkt.emit(hdr); }
}

V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
