/* The packet struct of a generated pipeline: members of every program, and members that depend on the program. */
#ifndef P4CC_PACKET_H
#define P4CC_PACKET_H

#include "runtime.h"

typedef struct phv phv;
typedef struct family family;

#ifdef P4_TRACE
#define P4_NUMBERS uint32_t number, copy;
#define P4_SEEN(slots, bytes)                                                                                         \
    struct { metadata m; uint8_t valid[slots]; uint16_t varbytes[slots]; uint8_t H[bytes]; } seen;
#define P4_VARBYTES(slots, varbytes) slots
#else
#define P4_NUMBERS
#define P4_SEEN(slots, bytes)
#define P4_VARBYTES(slots, varbytes) varbytes
#endif

/* Defines struct phv for a program's `metadata`, with room for the validity of `slots` headers, `nexts` indices of
 * stacks, `varbytes` lengths of headers of variable length, and `bytes` bytes of headers. P4_STATE in the
 * architecture's state.h lists its own members. The members before `m` are the same in all programs of an
 * architecture. */
#define P4_PACKET(slots, nexts, varbytes_, bytes)                                                                     \
    struct phv {                                                                                                      \
        p4_packet base;                                                                                               \
        family *family;                                                                                               \
        p4_tick now;                                                                                                  \
        p4_entry *entry; /* that was found in the table whose action runs, where the action asks for it */            \
        uint32_t ingress_port, parsed, ingress_len, length, truncate, error;                                          \
        P4_STATE                                                                                                      \
        uint8_t exit, endless, checksum_error;                                                                        \
        uint32_t steps;                                                                                               \
        P4_NUMBERS                                                                                                    \
        metadata m;                                                                                                   \
        uint8_t valid[slots];                                                                                         \
        uint8_t next[nexts];                                                                                          \
        uint16_t varbytes[P4_VARBYTES(slots, varbytes_)];                                                             \
        uint8_t H[bytes];                                                                                             \
        P4_SEEN(slots, bytes)                                                                                         \
    };

/* The arguments of an action, in the form in which entries store them. */
#define P4_ARGS(name, bytes, members)                                                                                 \
    typedef struct { members } name;                                                                                  \
    _Static_assert(sizeof(name) == (bytes), "as the control plane writes them");

/* A field of intrinsic metadata of `width` bits: set_NAME writes its low bits, or its largest value if that is
 * exceeded. */
#define P4_INTRINSIC(name, width, member, value)                                                                      \
    enum { has_##name = 1 };                                                                                          \
    P4_INLINE void set_##name(phv *p, uint64_t v) { p->m.member = (__typeof__(p->m.member))(value & p4_mask64(width)); } \
    P4_INLINE uint64_t get_##name(const phv *p) { return p->m.member; }
#define INTRINSIC(name, width, member) P4_INTRINSIC(name, width, member, v)
#define INTRINSIC_SATURATING(name, width, member)                                                                     \
    P4_INTRINSIC(name, width, member, (v < p4_mask64(width) ? v : p4_mask64(width)))
/* A field that the program does not have: it is not stored, and reads as 0. */
#define NO_INTRINSIC(name)                                                                                            \
    enum { has_##name = 0 };                                                                                          \
    P4_INLINE void set_##name(phv *p, uint64_t v) { (void)p, (void)v; }                                               \
    P4_INLINE uint64_t get_##name(const phv *p) { return (void)p, 0; }

/* Variables whose changes are traced. */
#ifdef P4_TRACE
typedef struct trace_cell { uint32_t now, before, size; int32_t slot; } trace_cell;
#define METADATA_CELL(member) {offsetof(phv, m.member), offsetof(phv, seen.m.member), sizeof ((phv *)0)->m.member, -1}
#define HEADER_CELL(at, bytes, slot) {offsetof(phv, H) + (at), offsetof(phv, seen.H) + (at), bytes, slot}
#endif

#endif
