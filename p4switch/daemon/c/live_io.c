/* AF_PACKET: a receive ring shared with the kernel (TPACKET_V2), and frames sent in batches at ports without AF_XDP. */
#include "live.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define SEND_BUFFER_BYTES (8 << 20)
#define SLOT_HEAD 128 /* data that the kernel puts before a frame, and room for a VLAN tag */

static int option(int fd, int name, int value)
{
    return setsockopt(fd, SOL_PACKET, name, &value, sizeof value);
}

static int make_ring(live_socket *s, const char *interface, uint32_t slots)
{
    struct ifreq request = {0};
    strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
    if (ioctl(s->fd, SIOCGIFMTU, &request) < 0)
        return -1;
    s->mtu = (uint32_t)request.ifr_mtu;
    uint32_t slot_bytes = 2048, block_bytes = 1 << 16;
    while (slot_bytes < s->mtu + ETH_HLEN + SLOT_HEAD)
        slot_bytes *= 2;
    if (block_bytes < slot_bytes)
        block_bytes = slot_bytes;
    uint32_t blocks = (slots * slot_bytes + block_bytes - 1) / block_bytes;
    struct tpacket_req ring = {block_bytes, blocks, slot_bytes, blocks * (block_bytes / slot_bytes)};
    if (option(s->fd, PACKET_VERSION, TPACKET_V2) < 0
        || setsockopt(s->fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) < 0)
        return -1;
    s->ring_bytes = (size_t)blocks * block_bytes;
    s->slots = ring.tp_frame_nr;
    s->slot_bytes = slot_bytes;
    void *at = mmap(NULL, s->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (at == MAP_FAILED)
        return -1;
    s->ring = at;
    return 0;
}

int live_open(live_socket *s, const char *interface, uint32_t ring_slots)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    address.sll_ifindex = (int)if_nametoindex(interface);
    *s = (live_socket){.fd = -1};
    if (!address.sll_ifindex)
        return -1;
    /* No protocol is bound yet: nothing is received before the ring exists. */
    s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0)
        return -1;
    struct packet_mreq all = {.mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
    int bytes = SEND_BUFFER_BYTES;
    if (make_ring(s, interface, ring_slots) < 0 || option(s->fd, PACKET_IGNORE_OUTGOING, 1) < 0
        || setsockopt(s->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) < 0
        || bind(s->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        live_close(s);
        errno = error;
        return -1;
    }
    option(s->fd, PACKET_QDISC_BYPASS, 1); /* these two options make it faster where they are allowed */
    setsockopt(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
    return 0;
}

void live_close(live_socket *s)
{
    if (s->ring)
        munmap(s->ring, s->ring_bytes);
    if (s->fd >= 0)
        close(s->fd);
    *s = (live_socket){.fd = -1};
}

static void take(live *l, live_port *port, const struct tpacket2_hdr *slot)
{
    const uint8_t *data = (const uint8_t *)slot + slot->tp_mac;
    uint32_t len = slot->tp_snaplen, tag = slot->tp_status & TP_STATUS_VLAN_VALID && len >= 12 ? 4 : 0;
    if (slot->tp_snaplen < slot->tp_len) {
        port->rx_truncated++; /* the kernel has merged several frames; segmentation offload is on at the other end */
        return;
    }
    port->rx_packets++;
    port->rx_bytes += len + tag;
    if (pfc_is_frame(data, len)) {
        live_pfc_arrive(l, port, data);
        return;
    }
    p4_frame *frame = live_frame_new(l, len + tag);
    frame->wire_len = frame->data_len = len + tag;
    if (tag) { /* the kernel has removed it */
        uint16_t type = slot->tp_status & TP_STATUS_VLAN_TPID_VALID ? slot->tp_vlan_tpid : ETH_P_8021Q;
        uint8_t vlan[4] = {(uint8_t)(type >> 8), (uint8_t)type, (uint8_t)(slot->tp_vlan_tci >> 8),
                           (uint8_t)slot->tp_vlan_tci};
        memcpy(frame->data, data, 12);
        memcpy(frame->data + 12, vlan, 4);
        memcpy(frame->data + 16, data + 12, len - 12);
    } else {
        memcpy(frame->data, data, len);
    }
    live_arrive(l, port, frame);
}

static struct tpacket2_hdr *next_slot(const live_socket *s)
{
    return (struct tpacket2_hdr *)(s->ring + (size_t)s->next * s->slot_bytes);
}

void live_peek(live *l, live_port *port)
{
    const struct tpacket2_hdr *slot = next_slot(&port->socket);
    port->arrival = LIVE_NEVER;
    if (!(__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
        return;
    uint64_t stamp = (uint64_t)slot->tp_sec * 1000000000u + slot->tp_nsec;
    port->arrival = stamp > l->kernel_origin ? stamp - l->kernel_origin : 0;
    if (port->arrival > l->clocks_read && port->arrival > live_clock(l))
        port->arrival = l->clocks_read; /* the kernel's clock has been set back in the meantime */
}

/* Another core has written the slots, so the slot after the next one is prefetched while the next one is handled. */
FETCH void fetch(const live_socket *s, uint32_t bytes)
{
    const uint8_t *slot = s->ring + (size_t)((s->next + 2) % s->slots) * s->slot_bytes;
    for (uint32_t at = 0; at < SLOT_HEAD + bytes; at += 64)
        __builtin_prefetch(slot + at);
}

void live_receive(live *l, live_port *port)
{
    live_socket *s = &port->socket;
    struct tpacket2_hdr *slot = next_slot(s);
    fetch(s, slot->tp_snaplen);
    take(l, port, slot);
    __atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    s->next = s->next + 1 == s->slots ? 0 : s->next + 1;
    live_peek(l, port);
}

static void send_by_socket(live_port *port, p4_frame *const *frames, uint32_t count)
{
    struct mmsghdr messages[LIVE_BATCH];
    struct iovec parts[LIVE_BATCH];
    uint32_t sent = 0;
    memset(messages, 0, count * sizeof *messages);
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = (struct iovec){frames[i]->data, frames[i]->data_len};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    while (sent < count) {
        int done = sendmmsg(port->socket.fd, messages + sent, count - sent, 0);
        if (done > 0) {
            sent += (uint32_t)done;
        } else if (errno != EINTR) { /* the interface is down, or has no room: this frame is lost */
            port->tx_failed++;
            sent++;
        }
    }
}

static bool by_xdp(const live_port *port, const p4_frame *frame)
{
    return port->xdp && live_xdp_takes(port->xdp, frame);
}

void live_flush(live *l, live_port *port)
{
    p4_frame *const *frames = port->batch;
    uint32_t count = port->batched;
    for (uint32_t from = 0, to; from < count; from = to) {
        bool xdp = by_xdp(port, frames[from]);
        for (to = from + 1; to < count && by_xdp(port, frames[to]) == xdp;)
            to++;
        uint32_t done = xdp ? live_xdp_send(port, frames + from, to - from) : 0;
        send_by_socket(port, frames + from + done, to - from - done);
    }
    for (uint32_t i = 0; i < count; i++)
        live_frame_free(l, port->batch[i]);
    port->batched = 0;
}

void live_ring_drops(live_socket *s)
{
    struct tpacket_stats stats;
    socklen_t len = sizeof stats;
    if (s->fd >= 0 && !getsockopt(s->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
        s->ring_drops += stats.tp_drops; /* the kernel resets them at each read */
}
