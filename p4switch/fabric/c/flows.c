#include "flows.h"

#include <stdlib.h>
#include <string.h>

#define ETHERNET_BYTES 14
#define UDP_ROCE 4791

static uint32_t be16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static uint32_t be24(const uint8_t *p) { return (uint32_t)p[0] << 16 | be16(p + 1); }
static uint32_t be32(const uint8_t *p) { return be16(p) << 16 | be16(p + 2); }

static void row_init(flow *row, flow_key key)
{
    memset(row, 0, sizeof *row);
    row->src_ip = key.src_ip;
    row->dst_ip = key.dst_ip;
    row->qp = key.qp;
    row->packet = key.packet;
    row->psn = -1;
    row->host = key.packet ? key.host : -1;
    row->first_sent_ns = row->last_sent_ns = row->first_delivered_ns = row->last_delivered_ns = -1;
}

int flows_init(flows *f)
{
    memset(f, 0, sizeof *f);
    f->cap = 64;
    f->slot_mask = 255;
    f->rows = calloc(f->cap, sizeof *f->rows);
    f->slots = calloc(f->slot_mask + 1, sizeof *f->slots);
    if (!f->rows || !f->slots)
        return -1;
    row_init(&f->rows[0], (flow_key){0});
    f->count = 1;
    return 0;
}

void flows_free(flows *f)
{
    free(f->rows);
    free(f->slots);
}

static bool grow(flows *f)
{
    flow *rows = realloc(f->rows, 2ull * f->cap * sizeof *rows);
    if (!rows)
        return false;
    f->rows = rows;
    uint32_t mask = 2 * f->slot_mask + 1;
    uint32_t *slots = calloc((size_t)mask + 1, sizeof *slots);
    if (!slots)
        return false;
    f->cap *= 2;
    for (uint32_t tag = 1; tag < f->count; tag++) {
        flow_key key = {rows[tag].src_ip, rows[tag].dst_ip, rows[tag].qp, rows[tag].packet, rows[tag].host};
        uint32_t i = flow_hash(key) & mask;
        while (slots[i])
            i = (i + 1) & mask;
        slots[i] = tag;
    }
    free(f->slots);
    f->slots = slots;
    f->slot_mask = mask;
    return true;
}

uint32_t flows_tag(flows *f, flow_key key)
{
    uint32_t of = key.packet ? flows_tag(f, (flow_key){key.src_ip, key.dst_ip, key.qp, 0, 0}) : 0;
    uint32_t i = flow_hash(key) & f->slot_mask;
    for (uint32_t tag; (tag = f->slots[i]); i = (i + 1) & f->slot_mask) {
        const flow *row = &f->rows[tag];
        if (row->src_ip == key.src_ip && row->dst_ip == key.dst_ip && row->qp == key.qp && row->packet == key.packet
            && (!key.packet || row->host == key.host))
            return tag;
    }
    if (f->count == f->cap) {
        if (f->cap > UINT32_MAX / 8 || !grow(f))
            return 0;
        i = flow_hash(key) & f->slot_mask;
        while (f->slots[i])
            i = (i + 1) & f->slot_mask;
    }
    row_init(&f->rows[f->count], key);
    f->rows[f->count].of = of;
    return f->slots[i] = f->count++;
}

/* The BTH of an IPv4 frame; NULL: it has none. */
static const uint8_t *bth_of(const p4_frame *frame)
{
    const uint8_t *ip = frame->data + ETHERNET_BYTES;
    uint32_t header = (ip[0] & 15) * 4u;
    bool first_fragment = !(be16(ip + 6) & 0x1fff);
    bool is_bth = ip[9] == 17 && first_fragment && frame->data_len >= ETHERNET_BYTES + header + 8 + 12
                  && be16(ip + header + 2) == UDP_ROCE;
    return is_bth ? ip + header + 8 : NULL;
}

int32_t flows_psn(const p4_frame *frame)
{
    const uint8_t *bth = bth_of(frame);
    return bth ? (int32_t)be24(bth + 9) : -1;
}

bool flows_parse(p4_frame *frame, flow_key *key)
{
    const uint8_t *d = frame->data;
    if (frame->data_len < ETHERNET_BYTES + 20 || be16(d + 12) != 0x0800)
        return false;
    const uint8_t *ip = d + ETHERNET_BYTES;
    uint32_t wire = be16(ip + 2) + ETHERNET_BYTES;
    if (wire > frame->wire_len)
        frame->wire_len = wire;
    const uint8_t *bth = bth_of(frame);
    *key = (flow_key){be32(ip + 12), be32(ip + 16), bth ? be24(bth + 5) : 0, 0, 0};
    return true;
}
