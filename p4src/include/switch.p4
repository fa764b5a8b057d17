// The switch around a program's own stages, which is the last include of a program.
//
//   parser     include/parser.p4, or the program's own, which starts with it
//   ingress    include/forwarding.p4 with the load balancer, then the program's stage
//   egress     the program's stage, at dequeue
//
// A program may define PARSER, FORWARDING (not Ipv4Forwarding), INGRESS_STAGE, EGRESS_STAGE, and
// for a load balancer LOAD_BALANCER_ENQUEUE and LOAD_BALANCER_DEQUEUE, stages at the end of ingress
// and at the start of egress. With LOSS_PPM, a switch loses that many of a million packets randomly
// on ingress, but none that its chip generates, and again of the copies on egress.
#ifndef P4CC_SWITCH_P4
#define P4CC_SWITCH_P4

#include "parser.p4"
#include "forwarding.p4"

#ifndef PARSER
#define PARSER RoceParser
#endif

#ifndef FORWARDING
#define FORWARDING Ipv4Forwarding
#endif

#ifdef LOSS_PPM
@dropped["ingress", "lost_in"]
PACKET_COUNTER(1) lost_in;
@dropped["egress", "lost_out"]
PACKET_COUNTER(1) lost_out;
#endif

control SwitchIngress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    FORWARDING() forwarding;
#ifdef LOSS_PPM
    LossLottery() loss;
#endif
#ifdef INGRESS_STAGE
    INGRESS_STAGE() stage;
#endif
#ifdef LOAD_BALANCER_ENQUEUE
    LOAD_BALANCER_ENQUEUE() enqueue;
#endif

    apply {
#ifdef LOSS_PPM
        bool lost;
        loss.apply(lost);
        if (lost && !IS_GENERATED) {
            lost_in.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
#endif
        forwarding.apply(hdr, meta, standard_metadata);
#ifdef INGRESS_STAGE
        stage.apply(hdr, meta, standard_metadata);
#endif
#ifdef LOAD_BALANCER_ENQUEUE
        enqueue.apply(hdr, meta, standard_metadata);
#endif
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
#ifdef LOAD_BALANCER_DEQUEUE
    LOAD_BALANCER_DEQUEUE() dequeue;
#endif
#ifdef EGRESS_STAGE
    EGRESS_STAGE() stage;
#endif
#ifdef LOSS_PPM
    LossLottery() loss;
#endif

    apply {
#ifdef LOAD_BALANCER_DEQUEUE
        dequeue.apply(hdr, meta, standard_metadata);
#endif
#ifdef EGRESS_STAGE
        stage.apply(hdr, meta, standard_metadata);
#endif
#ifdef LOSS_PPM
        if (standard_metadata.egress_spec != DROP_PORT) {
            bool lost;
            loss.apply(lost);
            if (lost) {
                lost_out.count(0);
                mark_to_drop(standard_metadata);
            }
        }
#endif
    }
}

#ifdef __TARGET_TOFINO__
#include "tofino/pipeline.p4"
#else
#include "v1model/pipeline.p4"
#endif

#endif
