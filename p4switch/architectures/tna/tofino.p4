// Declarations that TNA and T2NA share; P4CC_TOFINO (1 or 2) selects where they differ.
//
// Names, widths and orders follow the public architecture description. Externs that no public program uses are not
// declared.

#include <core.p4>

#if P4CC_TOFINO == 1
#define P4CC_QUEUE_BITS 5
#define P4CC_MIRROR_TYPE_BITS 3
#define P4CC_MIRROR_ID_BITS 10
#define P4CC_PORT_METADATA_BITS 64
#define P4CC_QUEUE_TIME_BITS 18
#define P4CC_APP_BITS 3
#define P4CC_COUNTER_MASK_BITS 3
// Marks a parameter of a block that a program may omit in TNA only.
#define P4CC_OMISSIBLE @optional
#else
#define P4CC_QUEUE_BITS 7
#define P4CC_MIRROR_TYPE_BITS 4
#define P4CC_MIRROR_ID_BITS 8
#define P4CC_PORT_METADATA_BITS 192
#define P4CC_QUEUE_TIME_BITS 32
#define P4CC_APP_BITS 4
#define P4CC_COUNTER_MASK_BITS 8
#define P4CC_OMISSIBLE
#endif

#define PORT_ID_WIDTH 9
#define MULTICAST_GROUP_ID_WIDTH 16
#define QUEUE_ID_WIDTH P4CC_QUEUE_BITS
#define MIRROR_TYPE_WIDTH P4CC_MIRROR_TYPE_BITS
#define MIRROR_ID_WIDTH P4CC_MIRROR_ID_BITS
#define RESUBMIT_TYPE_WIDTH 3
#define DIGEST_TYPE_WIDTH 3
#define REPLICATION_ID_WIDTH 16
#define L1_EXCLUSION_ID_WIDTH 16
#define L2_EXCLUSION_ID_WIDTH 9

typedef bit<PORT_ID_WIDTH> PortId_t;
typedef bit<MULTICAST_GROUP_ID_WIDTH> MulticastGroupId_t;
typedef bit<QUEUE_ID_WIDTH> QueueId_t;
typedef bit<MIRROR_TYPE_WIDTH> MirrorType_t;
typedef bit<MIRROR_ID_WIDTH> MirrorId_t;
typedef bit<RESUBMIT_TYPE_WIDTH> ResubmitType_t;
typedef bit<DIGEST_TYPE_WIDTH> DigestType_t;
typedef bit<REPLICATION_ID_WIDTH> ReplicationId_t;
typedef bit<L1_EXCLUSION_ID_WIDTH> L1ExclusionId_t;
typedef bit<L2_EXCLUSION_ID_WIDTH> L2ExclusionId_t;
typedef error ParserError_t;
#if P4CC_TOFINO == 2
typedef MirrorType_t CloneId_t;
#endif

const bit<32> PORT_METADATA_SIZE = P4CC_PORT_METADATA_BITS;

// The pipe of a device port, and the port's number within the pipe.
#define DEVPORT_PIPE_MASK 0x180
#define DEVPORT_PIPE(port) (port)[8:7]
#define DEVPORT_PORT_MASK 0x7f
#define DEVPORT_PORT(port) (port)[6:0]

// Bits of parser_err.
const bit<16> PARSER_ERROR_OK = 0;
const bit<16> PARSER_ERROR_NO_MATCH = 0x0001;
const bit<16> PARSER_ERROR_PARTIAL_HDR = 0x0002;
const bit<16> PARSER_ERROR_CTR_RANGE = 0x0004;
const bit<16> PARSER_ERROR_TIMEOUT_USER = 0x0008;
const bit<16> PARSER_ERROR_TIMEOUT_HW = 0x0010;
const bit<16> PARSER_ERROR_SRC_EXT = 0x0020;
#if P4CC_TOFINO == 1
const bit<16> PARSER_ERROR_DST_CONT = 0x0040;
#endif
const bit<16> PARSER_ERROR_PHV_OWNER = 0x0080;
const bit<16> PARSER_ERROR_MULTIWRITE = 0x0100;
const bit<16> PARSER_ERROR_ARAM_MBE = 0x0400;
const bit<16> PARSER_ERROR_FCS = 0x0800;
#if P4CC_TOFINO == 2
const bit<16> PARSER_ERROR_CSUM_MBE = 0x1000;
#endif

error {
    CounterRange,
    Timeout,
    PhvOwner,
    MultiWrite,
    IbufOverflow,
    IbufUnderflow
}

match_kind {
    range,
    selector,
#if P4CC_TOFINO == 2
    dleft_hash,
#endif
    atcam_partition_index
}

enum MeterType_t {
    PACKETS,
    BYTES
}

enum bit<8> MeterColor_t {
    GREEN = 0,
    YELLOW = 1,
    RED = 3
}

enum CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}

enum SelectorMode_t {
    FAIR,
    RESILIENT
}

enum HashAlgorithm_t {
    IDENTITY,
    RANDOM,
    XOR8,
    XOR16,
    XOR32,
    CRC8,
    CRC16,
    CRC32,
    CRC64,
    CUSTOM
}

// Intrinsic metadata. The parser extracts the two headers that come in front of the packet itself.

@__intrinsic_metadata
header ingress_intrinsic_metadata_t {
    bit<1> resubmit_flag;
    @padding bit<1> _pad1;
    bit<2> packet_version;
    @padding bit<(4 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t ingress_port;
    bit<48> ingress_mac_tstamp;
}

@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t ucast_egress_port;
    bit<1> bypass_egress;
    bit<1> deflect_on_drop;
    bit<3> ingress_cos;
    QueueId_t qid;
    bit<3> icos_for_copy_to_cpu;
    bit<1> copy_to_cpu;
    bit<2> packet_color;
    bit<1> disable_ucast_cutthru;
    bit<1> enable_mcast_cutthru;
    MulticastGroupId_t mcast_grp_a;
    MulticastGroupId_t mcast_grp_b;
    bit<13> level1_mcast_hash;
    bit<13> level2_mcast_hash;
    L1ExclusionId_t level1_exclusion_id;
    L2ExclusionId_t level2_exclusion_id;
    bit<16> rid;
}

@__intrinsic_metadata
struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<32> global_ver;
    bit<16> parser_err;
}

#define P4CC_MIRROR_FIELDS \
    bit<1> mirror_io_select; \
    bit<13> mirror_hash; \
    bit<3> mirror_ingress_cos; \
    bit<1> mirror_deflect_on_drop; \
    bit<1> mirror_multicast_ctrl; \
    PortId_t mirror_egress_port; \
    QueueId_t mirror_qid; \
    bit<8> mirror_coalesce_length; \
    bit<32> adv_flow_ctl; \
    bit<14> mtu_trunc_len; \
    bit<1> mtu_trunc_err_f;

@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    DigestType_t digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t mirror_type;
#if P4CC_TOFINO == 2
    P4CC_MIRROR_FIELDS
    bit<1> pktgen;
    bit<14> pktgen_address;
    bit<10> pktgen_length;
#endif
}

#if P4CC_TOFINO == 2
@__intrinsic_metadata
@__ghost_metadata
header ghost_intrinsic_metadata_t {
    bit<1> ping_pong;
    bit<18> qlength;
    bit<11> qid;
    bit<2> pipe_id;
}
#endif

@__intrinsic_metadata
header egress_intrinsic_metadata_t {
    @padding bit<(8 - PORT_ID_WIDTH % 8)> _pad0;
    PortId_t egress_port;
    @padding bit<5> _pad1;
    bit<19> enq_qdepth;
    @padding bit<6> _pad2;
    bit<2> enq_congest_stat;
#if P4CC_TOFINO == 1
    @padding bit<14> _pad3;
#endif
    bit<P4CC_QUEUE_TIME_BITS> enq_tstamp;
    @padding bit<5> _pad4;
    bit<19> deq_qdepth;
    @padding bit<6> _pad5;
    bit<2> deq_congest_stat;
    bit<8> app_pool_congest_stat;
#if P4CC_TOFINO == 1
    @padding bit<14> _pad6;
#endif
    bit<P4CC_QUEUE_TIME_BITS> deq_timedelta;
    bit<16> egress_rid;
    @padding bit<7> _pad7;
    bit<1> egress_rid_first;
    @padding bit<(8 - QUEUE_ID_WIDTH % 8)> _pad8;
    QueueId_t egress_qid;
    @padding bit<5> _pad9;
    bit<3> egress_cos;
    @padding bit<7> _pad10;
    bit<1> deflection_flag;
    bit<16> pkt_length;
#if P4CC_TOFINO == 2
    @padding bit<8> _pad11;
#endif
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<32> global_ver;
    bit<16> parser_err;
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    MirrorType_t mirror_type;
    bit<1> coalesce_flush;
    bit<7> coalesce_length;
#if P4CC_TOFINO == 2
    P4CC_MIRROR_FIELDS
#endif
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> capture_tstamp_on_tx;
    bit<1> update_delay_on_tx;
}

// Headers of the packet generator, and of the time that a port writes into packets.

header pktgen_timer_header_t {
    @padding bit<(6 - P4CC_APP_BITS)> _pad1;
    bit<2> pipe_id;
    bit<P4CC_APP_BITS> app_id;
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_port_down_header_t {
    @padding bit<(6 - P4CC_APP_BITS)> _pad1;
    bit<2> pipe_id;
    bit<P4CC_APP_BITS> app_id;
    @padding bit<(16 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t port_num;
    bit<16> packet_id;
}

header pktgen_recirc_header_t {
    @padding bit<(6 - P4CC_APP_BITS)> _pad1;
    bit<2> pipe_id;
    bit<P4CC_APP_BITS> app_id;
#if P4CC_TOFINO == 1
    bit<24> key;
#else
    @padding bit<8> _pad2;
    bit<16> batch_id;
#endif
    bit<16> packet_id;
}

#if P4CC_TOFINO == 2
header pktgen_deparser_header_t {
    @padding bit<2> _pad1;
    bit<2> pipe_id;
    bit<4> app_id;
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_pfc_header_t {
    @padding bit<2> _pad1;
    bit<2> pipe_id;
    bit<4> app_id;
    @padding bit<40> _pad2;
}
#endif

header ptp_metadata_t {
    bit<8> udp_cksum_byte_offset;
    bit<8> cf_byte_offset;
    bit<48> updated_cf;
}

// Functions

extern T max<T>(in T t1, in T t2);
extern T min<T>(in T t1, in T t2);
#if P4CC_TOFINO == 1
extern void funnel_shift_right<T>(inout T dst, in T src1, in T src2, int shift_amount);
#else
extern void funnel_shift_right<T>(out T dst, in T src1, in T src2, int shift_amount);
#endif
extern void invalidate<T>(in T field);
extern bool is_validated<T>(in T field);
extern T port_metadata_unpack<T>(packet_in pkt);
extern bit<32> sizeInBits<H>(in H h);
extern bit<32> sizeInBytes<H>(in H h);

// Checksums and hashes

extern Checksum {
    Checksum();
    void add<T>(in T data);
    void subtract<T>(in T data);
    bool verify();
    void subtract_all_and_deposit<T>(out T residual);
    bit<16> get();
    bit<16> update<T>(in T data, @optional in bool zeros_as_ones);
}

extern CRCPolynomial<T> {
    CRCPolynomial(T coeff, bool reversed, bool msb, bool extended, T init, T xor);
}

extern Hash<W> {
    Hash(HashAlgorithm_t algo);
    Hash(HashAlgorithm_t algo, CRCPolynomial<_> poly);
    W get<D>(in D data);
}

extern Random<W> {
    Random();
    W get();
}

// Parsers

extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<P4CC_COUNTER_MASK_BITS> mask, in bit<8> add);
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

extern ParserPriority {
    ParserPriority();
    void set(in bit<3> prio);
}

// Counters and meters. T2NA can count the bytes that leave instead of those that entered egress.

#if P4CC_TOFINO == 1
#define P4CC_TRUE_EGRESS
#else
#define P4CC_TRUE_EGRESS , @optional bool true_egress_accounting
#endif

@noWarn("unused")
extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type P4CC_TRUE_EGRESS);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(CounterType_t type P4CC_TRUE_EGRESS);
    void count(@optional in bit<32> adjust_byte_count);
}

extern Meter<I> {
    Meter(bit<32> size, MeterType_t type P4CC_TRUE_EGRESS);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green P4CC_TRUE_EGRESS);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type P4CC_TRUE_EGRESS);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green P4CC_TRUE_EGRESS);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}

extern Lpf<T, I> {
    Lpf(bit<32> size);
    T execute(in T val, in I index);
}

extern DirectLpf<T> {
    DirectLpf();
    T execute(in T val);
}

extern Wred<T, I> {
    Wred(bit<32> size, bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val, in I index);
}

extern DirectWred<T> {
    DirectWred(bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val);
}

// Registers. An action runs atomically for each packet; outputs that it does not assign are 0.

extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in I index);
    T write(in I index, in T value);
#if P4CC_TOFINO == 2
    void clear(in T value, @optional in T busy);
#endif
}

extern DirectRegister<T> {
    DirectRegister();
    DirectRegister(T initial_value);
    T read();
    T write(in T value);
#if P4CC_TOFINO == 2
    void clear(in T value, @optional in T busy);
#endif
}

extern RegisterParam<T> {
    RegisterParam(T initial_value);
    T read();
}

#if P4CC_TOFINO == 1
@noWarn("unused")
extern RegisterAction<T, I, U> {
    RegisterAction(Register<_, _> reg);
    U execute(in I index);
    U execute_log();
    @synchronous(execute, execute_log)
    abstract void apply(inout T value, @optional out U rv);
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute();
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv);
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}
#else
#define P4CC_MORE_RESULTS @optional out U rv2, @optional out U rv3, @optional out U rv4
#define P4CC_CELL_FUNCTIONS \
    U address(@optional bit<1> subword); \
    U predicate(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3); \
    bit<8> min8<V>(in V val, in bit<16> mask, @optional out bit<4> index); \
    bit<8> max8<V>(in V val, in bit<16> mask, @optional out bit<4> index); \
    bit<16> min16<V>(in V val, in bit<8> mask, @optional out bit<3> index); \
    bit<16> max16<V>(in V val, in bit<8> mask, @optional out bit<3> index);

@noWarn("unused")
extern RegisterAction<T, I, U> {
    RegisterAction(Register<_, _> reg);
    U execute(@optional in I index, P4CC_MORE_RESULTS);
    U execute_log(P4CC_MORE_RESULTS);
    U enqueue(P4CC_MORE_RESULTS);
    U dequeue(P4CC_MORE_RESULTS);
    U push(P4CC_MORE_RESULTS);
    U pop(P4CC_MORE_RESULTS);
    void sweep(@optional in U busy);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop, sweep)
    abstract void apply(inout T value, @optional out U rv1, P4CC_MORE_RESULTS);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, @optional out U rv1, P4CC_MORE_RESULTS);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, @optional out U rv1, P4CC_MORE_RESULTS);
    P4CC_CELL_FUNCTIONS
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute(P4CC_MORE_RESULTS);
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv, P4CC_MORE_RESULTS);
    P4CC_CELL_FUNCTIONS
}
#endif

// Implementations of tables

extern ActionProfile {
    ActionProfile(bit<32> size);
}

extern ActionSelector {
    ActionSelector(
        ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode, bit<32> max_group_size, bit<32> num_groups);
    ActionSelector(
        ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg,
        bit<32> max_group_size, bit<32> num_groups);
    @deprecated("Please give the selector an ActionProfile.")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode);
    @deprecated("Please give the selector an ActionProfile.")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg);
}

extern Atcam {
    Atcam(@optional bit<32> number_partitions);
}

extern Alpm {
    Alpm(@optional bit<32> number_partitions, @optional bit<32> subtrees_per_partition,
         @optional bit<32> atcam_subset_width, @optional bit<32> shift_granularity);
}

#if P4CC_TOFINO == 2
extern IdleTimeout {
    IdleTimeout();
}
#endif

// Copies and digests that deparsers send besides the packet

extern Mirror {
    @deprecated("Please give the mirror its mirror_type.")
    Mirror();
    Mirror(MirrorType_t mirror_type);
    void emit(in MirrorId_t session_id);
    void emit<T>(in MirrorId_t session_id, in T hdr);
}

extern Resubmit {
    @deprecated("Please give the resubmission its resubmit_type.")
    Resubmit();
    Resubmit(ResubmitType_t resubmit_type);
    void emit();
    void emit<T>(in T hdr);
}

extern Digest<T> {
    @deprecated("Please give the digest its digest_type.")
    Digest();
    Digest(DigestType_t digest_type);
    void pack(in T data);
}

#if P4CC_TOFINO == 2
extern Pktgen {
    Pktgen();
    void emit<T>(in T hdr);
}
#endif

// Blocks. H: headers; M: metadata of the program.

parser IngressParserT<H, M>(
    packet_in pkt, out H hdr, out M ig_md,
    P4CC_OMISSIBLE out ingress_intrinsic_metadata_t ig_intr_md,
    @optional out ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm,
    @optional out ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr);

control IngressT<H, M>(
    inout H hdr, inout M ig_md,
    P4CC_OMISSIBLE in ingress_intrinsic_metadata_t ig_intr_md,
    P4CC_OMISSIBLE in ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr,
    P4CC_OMISSIBLE inout ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    P4CC_OMISSIBLE inout ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm
#if P4CC_TOFINO == 2
    , @optional in ghost_intrinsic_metadata_t gh_intr_md
#endif
    );

control IngressDeparserT<H, M>(
    packet_out pkt, inout H hdr, in M metadata,
    P4CC_OMISSIBLE in ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    @optional in ingress_intrinsic_metadata_t ig_intr_md);

parser EgressParserT<H, M>(
    packet_in pkt, out H hdr, out M eg_md,
    P4CC_OMISSIBLE out egress_intrinsic_metadata_t eg_intr_md,
    @optional out egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    @optional out egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr);

control EgressT<H, M>(
    inout H hdr, inout M eg_md,
    P4CC_OMISSIBLE in egress_intrinsic_metadata_t eg_intr_md,
    P4CC_OMISSIBLE in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    P4CC_OMISSIBLE inout egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    P4CC_OMISSIBLE inout egress_intrinsic_metadata_for_output_port_t eg_intr_md_for_oport);

control EgressDeparserT<H, M>(
    packet_out pkt, inout H hdr, in M metadata,
    P4CC_OMISSIBLE in egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    @optional in egress_intrinsic_metadata_t eg_intr_md,
    @optional in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr);

#if P4CC_TOFINO == 2
control GhostT(in ghost_intrinsic_metadata_t gh_intr_md);
#endif

package Pipeline<IH, IM, EH, EM>(
    IngressParserT<IH, IM> ingress_parser, IngressT<IH, IM> ingress, IngressDeparserT<IH, IM> ingress_deparser,
    EgressParserT<EH, EM> egress_parser, EgressT<EH, EM> egress, EgressDeparserT<EH, EM> egress_deparser
#if P4CC_TOFINO == 2
    , @optional GhostT ghost
#endif
    );

#if P4CC_TOFINO == 1
@pkginfo(arch="TNA", version="2.0.1")
#else
@pkginfo(arch="T2NA", version="1.0.1")
#endif
@noWarn("unused")
package Switch<IH0, IM0, EH0, EM0, IH1, IM1, EH1, EM1, IH2, IM2, EH2, EM2, IH3, IM3, EH3, EM3>(
    Pipeline<IH0, IM0, EH0, EM0> pipe0, @optional Pipeline<IH1, IM1, EH1, EM1> pipe1,
    @optional Pipeline<IH2, IM2, EH2, EM2> pipe2, @optional Pipeline<IH3, IM3, EH3, EM3> pipe3);
