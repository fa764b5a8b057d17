/* Throughput of a pair of veth links and two raw sockets without a switch in between, the limit for the switch.
 *
 *   veth generate INTERFACE SECONDS PACKETS_PER_SECOND BYTES DESTINATION     0 packets per second: as many as possible
 *   veth forward INTERFACE INTERFACE SECONDS                                 both ways, without looking at the frames
 *
 * Prints one line of JSON. Sockets are the switch's own (live_io.c); frames are sent by AF_PACKET.
 */
#include "live.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* live_io.c is built for the switch; this is all that it needs from one. */
p4_frame *live_frame_new(live *l, uint32_t cap)
{
    (void)l;
    static p4_frame *frame;
    if (!frame && !(frame = malloc(sizeof *frame + 65536)))
        abort();
    (void)cap;
    return frame;
}
void live_frame_free(live *l, p4_frame *frame) { (void)l, (void)frame; }
void live_arrive(live *l, live_port *port, p4_frame *frame) { (void)l, (void)port, (void)frame; }
uint64_t live_clock(const live *l) { (void)l; return nanoseconds(CLOCK_MONOTONIC); }
bool pfc_is_frame(const uint8_t *data, size_t len) { (void)data; (void)len; return false; }
void live_pfc_arrive(live *l, live_port *port, const uint8_t *data) { (void)l, (void)port, (void)data; }
bool live_xdp_takes(const live_xdp *x, const p4_frame *frame) { (void)x, (void)frame; return false; }
uint32_t live_xdp_send(live_port *port, p4_frame *const *frames, uint32_t count) { (void)port, (void)frames, (void)count; return 0; }

static int generate(const char *interface, double seconds, double rate, uint32_t bytes, const char *destination)
{
    live_port port = {.socket = {.fd = -1}};
    if (bytes < 60 || bytes > 9000 || live_open(&port.socket, interface, 8) < 0) {
        perror(interface);
        return 1;
    }
    p4_frame *frame = calloc(1, sizeof *frame + bytes);
    if (!frame)
        return 1;
    static const uint8_t head[] = {0x02, 0, 10, 0, 0, 2, 0x02, 0, 10, 0, 0, 1, 0x08, 0, 0x45, 0};
    uint8_t *d = frame->data;
    memcpy(d, head, sizeof head);
    d[16] = (bytes - 14) >> 8 & 255;
    d[17] = (bytes - 14) & 255;
    d[22] = 64;
    d[23] = 17;
    d[26] = 10;
    d[29] = 9;
    inet_pton(AF_INET, destination, d + 30);
    uint32_t sum = 0;
    for (int i = 14; i < 34; i += 2)
        sum += (uint32_t)d[i] << 8 | d[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16)) & 0xffff;
    d[24] = sum >> 8 & 255;
    d[25] = sum & 255;
    d[36] = 4791 >> 8;
    d[37] = 4791 & 255;
    d[38] = (bytes - 34) >> 8 & 255;
    d[39] = (bytes - 34) & 255;
    d[42] = 0x04; /* opcode of RC SEND Only */
    frame->data_len = bytes;
    uint64_t start = nanoseconds(CLOCK_MONOTONIC), now = start, sent = 0;
    while (now < start + (uint64_t)(seconds * 1e9)) {
        uint64_t due = rate ? (uint64_t)((double)(now - start) * rate / 1e9) : sent + LIVE_BATCH;
        uint32_t count = due - sent < LIVE_BATCH ? (uint32_t)(due - sent) : LIVE_BATCH;
        if (count) {
            for (uint32_t i = 0; i < count; i++)
                port.batch[i] = frame;
            port.batched = count;
            live_flush(NULL, &port);
            sent += count;
        } else {
            nanosleep(&(struct timespec){0, 20000}, NULL);
        }
        now = nanoseconds(CLOCK_MONOTONIC);
    }
    printf("{\"sent\": %llu, \"failed\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n", (unsigned long long)sent,
           (unsigned long long)port.tx_failed, (double)(now - start) / 1e9, (double)nanoseconds(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
    return 0;
}

/* Sends the frames in the ring out of the other port, directly from the ring. */
static uint32_t pass(live_socket *in, live_socket *out)
{
    struct mmsghdr messages[LIVE_BATCH] = {0};
    struct iovec parts[LIVE_BATCH];
    uint32_t count = 0, first = in->next;
    for (; count < LIVE_BATCH; count++) {
        struct tpacket2_hdr *slot = (struct tpacket2_hdr *)(in->ring + (size_t)in->next * in->slot_bytes);
        if (!(__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
            break;
        parts[count] = (struct iovec){(uint8_t *)slot + slot->tp_mac, slot->tp_snaplen};
        messages[count].msg_hdr = (struct msghdr){.msg_iov = &parts[count], .msg_iovlen = 1};
        in->next = in->next + 1 == in->slots ? 0 : in->next + 1;
    }
    for (uint32_t sent = 0; sent < count;) {
        int done = sendmmsg(out->fd, messages + sent, count - sent, 0);
        sent += done > 0 ? (uint32_t)done : 1;
    }
    for (uint32_t i = 0; i < count; i++, first = first + 1 == in->slots ? 0 : first + 1) {
        struct tpacket2_hdr *slot = (struct tpacket2_hdr *)(in->ring + (size_t)first * in->slot_bytes);
        __atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    }
    return count;
}

static int forward(const char *a, const char *b, double seconds)
{
    live_socket sockets[2];
    if (live_open(&sockets[0], a, 512) < 0 || live_open(&sockets[1], b, 512) < 0) {
        perror("forward");
        return 1;
    }
    puts("ready");
    fflush(stdout);
    uint64_t start = nanoseconds(CLOCK_MONOTONIC), passed = 0;
    while (nanoseconds(CLOCK_MONOTONIC) < start + (uint64_t)(seconds * 1e9)) {
        uint32_t count = pass(&sockets[0], &sockets[1]) + pass(&sockets[1], &sockets[0]);
        passed += count;
        struct pollfd fds[2] = {{sockets[0].fd, POLLIN, 0}, {sockets[1].fd, POLLIN, 0}};
        if (!count)
            poll(fds, 2, 100);
    }
    printf("{\"passed\": %llu, \"cpu_seconds\": %.6f}\n", (unsigned long long)passed,
           (double)nanoseconds(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 7 && !strcmp(argv[1], "generate"))
        return generate(argv[2], atof(argv[3]), atof(argv[4]), (uint32_t)atoi(argv[5]), argv[6]);
    if (argc == 5 && !strcmp(argv[1], "forward"))
        return forward(argv[2], argv[3], atof(argv[4]));
    fprintf(stderr, "usage: veth generate INTERFACE SECONDS RATE BYTES DESTINATION | veth forward INTERFACE INTERFACE SECONDS\n");
    return 2;
}
