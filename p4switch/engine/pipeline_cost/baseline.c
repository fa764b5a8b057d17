/* The processing of ecn.p4 and int.p4 written by hand, as a reference for the cost of generated pipelines.
 *
 * It parses, checks, looks up and rewrites the same headers, in place, behind the same seam. Lookups use a hash per
 * prefix length and arrays by index; the routes are the same as in the P4 programs.
 */
#include "hash.h"
#include "runtime.h"

#include <stdlib.h>

typedef struct packet {
    p4_packet base;
    uint32_t tx_length;
} packet;

typedef struct route {
    uint32_t prefix, length, group, port;
} route;

#define SLOTS 128
#define GROUP 4
#define KMIN 100
#define KMAX 400
#define SPAN 3000
#define MULTIPLIER 0x9e3779b1u
#define SALT 0x12345678u
#define MAX_HOPS 8

static route routes[SLOTS];
static uint32_t lengths[] = {32, 24, 8};
static uint32_t crc_table[8][256], crc16_table[8][256];
static uint8_t priorities[64];
static uint32_t tx_bytes[512];
static packet *pool;

static uint32_t slot_of(uint32_t prefix, uint32_t length)
{
    return (uint32_t)((prefix + length) * 0x9e3779b97f4a7c15ull >> 57) % SLOTS;
}

static void add_route(uint32_t prefix, uint32_t length, uint32_t group, uint32_t port)
{
    uint32_t at = slot_of(prefix, length);
    while (routes[at].length)
        at = (at + 1) % SLOTS;
    routes[at] = (route){prefix, length, group, port};
}

static void crc_tables(uint32_t table[8][256], uint32_t polynomial)
{
    for (uint32_t b = 0; b < 256; b++) {
        table[0][b] = b;
        for (int i = 0; i < 8; i++)
            table[0][b] = table[0][b] >> 1 ^ (table[0][b] & 1 ? polynomial : 0);
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++)
            table[k][b] = table[0][table[k - 1][b] & 255] ^ table[k - 1][b] >> 8;
}

__attribute__((constructor)) static void set_up(void)
{
    crc_tables(crc_table, 0xedb88320);
    crc_tables(crc16_table, 0xa001);
    add_route(0x0a000000, 8, 1, 0);
    for (uint32_t i = 0; i < 16; i++) {
        add_route(0x0a010000 | i << 8, 24, 0, 1);
        add_route(0x0a010000 | i, 32, 0, 1);
    }
    for (uint32_t i = 0; i < 64; i++)
        priorities[i] = (uint8_t)(i / 8);
}

static const route *find_route(uint32_t address)
{
    for (int i = 0; i < 3; i++) {
        uint32_t length = lengths[i], prefix = address & (uint32_t)(~0ull << (32 - length));
        for (uint32_t at = slot_of(prefix, length); routes[at].length; at = (at + 1) % SLOTS)
            if (routes[at].prefix == prefix && routes[at].length == length)
                return &routes[at];
    }
    return NULL;
}

static void lose(p4_switch *sw, p4_frame *frame, uint32_t port, p4_drop_reason reason)
{
    sw->counts.dropped++;
    sw->env.drop(sw->env.ctx, port, frame->tag, frame->wire_len, reason);
    sw->env.frame_free(sw->env.ctx, frame);
}

static void receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    const uint8_t *ip = frame->data + 14;
    (void)now;
    sw->counts.received++;
    if (frame->data_len < 34 || p4_ld16(frame->data + 12) != 0x0800 || ip[0] != 0x45 || p4_csum16(ip, 20) ||
        p4_ld16(ip + 2) + 14 > frame->wire_len || ip[8] <= 1) {
        lose(sw, frame, port, P4_DROP_PROGRAM_INGRESS);
        return;
    }
    const route *r = find_route((uint32_t)p4_ld32(ip + 16));
    if (!r) {
        lose(sw, frame, port, P4_DROP_PROGRAM_INGRESS);
        return;
    }
    uint32_t out = r->port;
    if (r->group) {
        uint8_t tuple[13];
        memcpy(tuple, ip + 12, 8);
        tuple[8] = ip[9];
        memset(tuple + 9, 0, 4);
        if (ip[9] == 17 && frame->data_len >= 42 && !(p4_ld16(ip + 6) & 0x1fff))
            memcpy(tuple + 9, ip + 20, 4);
        uint32_t hash = ~p4_crc_reflected32(crc_table, tuple, 13, 0xffffffff);
        uint8_t key[4];
        p4_st32(key, (hash ^ SALT) * MULTIPLIER);
        out = 1 + p4_crc_reflected32(crc16_table, key, 4, 0) % GROUP;
    }
    packet *p = pool;
    if (p)
        pool = (packet *)(void *)p->base.next;
    else
        p = must_alloc(sizeof *p);
    p->base.frame = frame;
    p->base.tag = frame->tag;
    p->base.len = frame->wire_len;
    p->base.ingress_port = port;
    p->base.egress_port = out;
    p->base.priority = priorities[ip[1] >> 2];
    sw->env.enqueue(sw->env.ctx, &p->base);
}

static void mark(p4_switch *sw, const p4_packet *packet, uint8_t *ip)
{
    if (!(ip[1] & 3) || (ip[1] & 3) == 3)
        return;
    if (packet->deq_depth > KMAX ||
        (packet->deq_depth > KMIN && p4_random(sw, 0, SPAN - 1) < packet->deq_depth - KMIN))
        ip[1] |= 3;
}

static void append_record(p4_switch *sw, packet *p, uint8_t *ip, p4_tick now, uint32_t bytes)
{
    uint8_t *udp = ip + 20, *shim = udp + 20;
    if (ip[9] != 17 || p4_ld16(udp + 2) != 4791 || (udp[8] & 0xe0) != 0xc0 || udp[8] == 0xd1)
        return;
    uint32_t hops = shim[0] >> 4, headers = 14 + 20 + 8 + 12 + 2 + 8 * hops;
    if (hops >= MAX_HOPS || p->base.frame->data_len < headers)
        return;
    p4_frame *frame = p->base.frame;
    uint32_t present = frame->data_len - headers;
    if (frame->data_len + 8 > frame->cap) {
        p4_frame *larger = sw->env.frame_new(sw->env.ctx, frame->data_len + 8);
        memcpy(larger->data, frame->data, headers);
        memcpy(larger->data + headers + 8, frame->data + headers, present);
        larger->tag = frame->tag;
        larger->wire_len = frame->wire_len;
        larger->data_len = frame->data_len;
        sw->env.frame_free(sw->env.ctx, frame);
        p->base.frame = frame = larger;
    } else {
        memmove(frame->data + headers + 8, frame->data + headers, present);
    }
    ip = frame->data + 14, udp = ip + 20, shim = udp + 20;
    uint32_t cells = p->base.deq_depth < 0xffff ? p->base.deq_depth : 0xffff;
    p4_st64(frame->data + headers, 1ull << 60 | (now & 0xffffff) << 36 | (uint64_t)(bytes >> 7 & 0xfffff) << 16 | cells);
    p4_st16(shim, (p4_ld16(shim) + 0x1000) ^ 1);
    p4_st16(ip + 2, p4_ld16(ip + 2) + 8);
    p4_st16(udp + 4, p4_ld16(udp + 4) + 8);
    p4_st16(udp + 6, 0);
    frame->wire_len += 8;
    frame->data_len += 8;
}

static p4_frame *transmit(p4_switch *sw, p4_packet *base, p4_tick now)
{
    packet *p = (packet *)(void *)base;
    uint8_t *ip = p->base.frame->data + 14;
    ip[8]--;
#ifdef BASELINE_INT
    uint32_t *sent = &tx_bytes[base->egress_port];
    append_record(sw, p, ip, now, *sent);
    ip = p->base.frame->data + 14;
    *sent += (uint32_t)p4_ld16(ip + 2) + 14;
    (void)mark;
#else
    mark(sw, base, ip);
    (void)now, (void)append_record;
#endif
    p4_st16(ip + 10, 0);
    p4_st16(ip + 10, p4_csum16(ip, 20));
    p4_frame *frame = p->base.frame;
    p->base.next = (p4_packet *)(void *)pool;
    pool = p;
    sw->counts.transmitted++;
    return frame;
}

static void free_packet(p4_switch *sw, p4_packet *base)
{
    packet *p = (packet *)(void *)base;
    sw->env.frame_free(sw->env.ctx, p->base.frame);
    p->base.next = (p4_packet *)(void *)pool;
    pool = p;
}

const p4_program p4_program_description = {
    .abi = P4_ABI,
    .packet_size = sizeof(packet),
    .receive = receive,
    .transmit = transmit,
    .free_packet = free_packet,
};
