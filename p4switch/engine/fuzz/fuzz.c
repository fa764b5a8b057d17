/* Feeds one pipeline random packets and random control-plane calls. It is linked with the pipeline and the engine's
 * runtime, all built with sanitizers, so that an error ends the program with a report.
 *
 * fuzz SEED PACKETS WORDS FRAMES: WORDS is a file of byte strings, each preceded by its length in two big-endian bytes.
 * They are occasionally put into packets and keys; the last FRAMES of them are whole frames. The program prints the
 * fate of the packets, and exits with 1 if packets were lost or appeared from nowhere.
 */
#include "process.h"
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>

extern const p4_program p4_program_description;

#define MAX_FRAME 2048
#define MAX_WORDS 4096
#define MAX_VALUE 256

static uint64_t state;
static p4_bytes words[MAX_WORDS];
static size_t n_words, n_frames;

static uint64_t next_random(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static uint32_t below(uint32_t n) { return n ? (uint32_t)(next_random() % n) : 0; }

static void read_words(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t head[2];
    while (file && n_words < MAX_WORDS && fread(head, 1, 2, file) == 2) {
        size_t len = (size_t)head[0] << 8 | head[1];
        uint8_t *data = malloc(len + 1);
        if (!data || fread(data, 1, len, file) != len) {
            free(data);
            break;
        }
        words[n_words++] = (p4_bytes){data, len};
    }
    if (file)
        fclose(file);
}

/* A value of this many bits: small, all ones, a word of the dictionary, or random. */
static p4_bytes random_value(uint8_t *buffer, uint32_t width)
{
    uint32_t n = (width + 7) / 8;
    uint32_t kind = below(8);
    for (uint32_t i = 0; i < n; i++)
        buffer[i] = kind < 3 ? 0 : kind == 3 ? 0xff : (uint8_t)next_random();
    if (kind < 3 && n)
        buffer[n - 1] = (uint8_t)below(8);
    if (kind > 5 && n_words) {
        p4_bytes w = words[below((uint32_t)n_words)];
        for (uint32_t i = 0; i < n && i < w.len; i++)
            buffer[n - 1 - i] = w.data[w.len - 1 - i];
    }
    if (width % 8 && below(50)) /* occasionally a value that does not fit */
        buffer[0] &= (uint8_t)((1u << width % 8) - 1);
    return (p4_bytes){buffer, below(100) ? n : n + 1};
}

static void random_key(p4_match *key, uint8_t (*values)[MAX_VALUE], uint8_t (*masks)[MAX_VALUE],
                       const p4_key_info *infos, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        key[i] = (p4_match){random_value(values[i], infos[i].width), random_value(masks[i], infos[i].width), -1};
        if (infos[i].kind == P4_LPM || !below(4))
            key[i].prefix = (int32_t)below(infos[i].width + 2);
        if (infos[i].kind == P4_RANGE && key[i].value.len == key[i].mask.len &&
            memcmp(values[i], masks[i], key[i].value.len) > 0 && below(10)) {
            p4_bytes low = key[i].mask;
            key[i].mask = key[i].value;
            key[i].value = low;
        }
        if (!below(10))
            key[i].value.data = NULL;
    }
}

static uint8_t arg_values[64][MAX_VALUE];
static p4_bytes args[64];

/* One of the allowed actions, with arguments. */
static p4_aim random_action(const p4_program *p, const uint32_t *actions, uint32_t n)
{
    if (!n)
        return (p4_aim){P4_TO_ACTION, "none", 0, args, 0};
    const p4_action_info *a = &p->actions[actions[below(n)]];
    for (uint32_t i = 0; i < a->n_params && i < 64; i++)
        args[i] = random_value(arg_values[i], a->params[i].width);
    return (p4_aim){P4_TO_ACTION, a->name, 0, args, a->n_params < 64 ? a->n_params : 64};
}

static p4_aim random_aim(const p4_program *p, const p4_table_info *t)
{
    if (t->profile < 0 || !below(20))
        return random_action(p, t->actions, t->n_actions);
    return (p4_aim){below(2) ? P4_TO_GROUP : P4_TO_MEMBER, NULL, below(8), NULL, 0};
}

static void change_table(p4_switch *sw)
{
    const p4_program *p = sw->program;
    uint32_t table = below(p->n_tables), handle;
    const p4_table_info *t = &p->tables[table];
    p4_match key[t->n_keys + 1];
    static uint8_t values[64][MAX_VALUE], masks[64][MAX_VALUE];
    if (t->n_keys > 64)
        return;
    p4_aim aim = random_aim(p, t);
    switch (below(16)) {
    case 0: p4_table_modify(sw, table, below(16), &aim); break;
    case 1: case 2: p4_table_delete(sw, table, below(16)); break;
    case 3: p4_table_set_default(sw, table, below(3) ? &aim : NULL); break;
    case 4:
        if (!below(20))
            p4_table_clear(sw, table);
        break;
    default:
        random_key(key, values, masks, t->keys, t->n_keys);
        p4_table_add(sw, table, key, t->n_keys, (int32_t)below(5), &aim, &handle);
    }
}

static void change_profile(p4_switch *sw)
{
    const p4_program *p = sw->program;
    uint32_t profile = below(p->n_profiles), handle, members[6];
    const p4_profile_info *info = &p->profiles[profile];
    p4_aim aim = random_action(p, info->actions, info->n_actions);
    for (int i = 0; i < 6; i++)
        members[i] = below(8);
    switch (below(8)) {
    case 0: case 1: p4_member_add(sw, profile, &aim, &handle); break;
    case 2: p4_member_modify(sw, profile, below(8), &aim); break;
    case 3: p4_member_delete(sw, profile, below(8)); break;
    case 4: p4_group_add(sw, profile, &handle); break;
    case 5: case 6: p4_group_set(sw, profile, below(8), members, below(7)); break;
    default: p4_group_delete(sw, profile, below(8));
    }
}

static void change_state(p4_switch *sw)
{
    const p4_program *p = sw->program;
    uint8_t value[MAX_VALUE];
    if (p->n_registers) {
        uint32_t r = below(p->n_registers);
        p4_bytes v = random_value(value, p->registers[r].width);
        p4_register_set(sw, r, below(p->registers[r].size + 2), v.data, v.len);
        p4_register_get(sw, r, below(p->registers[r].size + 2), value, v.len);
    }
    if (p->n_meters) {
        uint32_t m = below(p->n_meters);
        uint64_t config[4] = {below(1000), below(5000), below(100000), below(5000)};
        if (p->meters[m].size)
            p4_meter_set(sw, &sw->meters[m][below(p->meters[m].size)], below(5) ? config : NULL);
    }
    p4_replica replicas[5];
    for (int i = 0; i < 5; i++)
        replicas[i] = (p4_replica){below(8), below(4)};
    p4_replicas_set(sw, below(2) ? &sw->multicast : &sw->clones, below(12), replicas, below(6),
                    below(3) ? 0 : below(100), !below(8));
    if (p->n_vsets) {
        uint32_t v = below(p->n_vsets), n = p->vsets[v].n_keys;
        static uint8_t values[64][MAX_VALUE], masks[64][MAX_VALUE];
        p4_match key[64];
        if (n <= 16) {
            uint32_t members = below(4);
            random_key(key, values, masks, p->vsets[v].keys, n);
            for (uint32_t i = 1; i < members; i++)
                random_key(key + i * n, values + i * n, masks + i * n, p->vsets[v].keys, n);
            p4_vset_set(sw, v, key, members);
        }
    }
}

static uint32_t random_frame(uint8_t *data, uint32_t *wire_len)
{
    uint32_t len = below(4) ? below(160) : below(MAX_FRAME);
    for (uint32_t i = 0; i < len; i++)
        data[i] = below(3) ? 0 : (uint8_t)next_random();
    uint32_t splices = n_words ? below(6) : 0;
    for (uint32_t i = 0; i < splices && len; i++) {
        p4_bytes w = words[below((uint32_t)n_words)];
        uint32_t at = below(3) ? below(len < 64 ? len : 64) : 0;
        for (uint32_t b = 0; b < w.len && at + b < len; b++)
            data[at + b] = w.data[b];
    }
    if (n_frames && below(2)) { /* possibly an unchanged frame of a test */
        p4_bytes w = words[n_words - 1 - below((uint32_t)n_frames)];
        len = w.len < MAX_FRAME ? (uint32_t)w.len : MAX_FRAME;
        memcpy(data, w.data, len);
    }
    for (uint32_t i = below(2) ? 0 : below(4); i > 0 && len; i--)
        data[below(len)] ^= (uint8_t)(1u << below(8));
    *wire_len = len + (below(3) ? 0 : below(3000)); /* the rest are zeros that are not present */
    return len;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    state = strtoull(argv[1], NULL, 10);
    uint64_t packets = strtoull(argv[2], NULL, 10), kept = 0, transmitted = 0, dropped = 0;
    read_words(argv[3]);
    n_frames = strtoull(argv[4], NULL, 10);
    n_frames = n_frames < n_words ? n_frames : n_words;
    char error[256] = "out of memory";
    p4_switch *sw = p4_switch_new(&p4_program_description, 1, state, 1000, error);
    if (!sw) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    for (uint64_t i = 0; i < packets; i++) {
        uint8_t data[MAX_FRAME];
        uint32_t wire_len, port, len = random_frame(data, &wire_len);
        if (sw->program->n_tables && !below(3))
            change_table(sw);
        if (sw->program->n_profiles && !below(6))
            change_profile(sw);
        if (!below(10))
            change_state(sw);
        if (!below(2000)) {
            transmitted += p4_switch_get_counts(sw).transmitted;
            dropped += p4_switch_get_counts(sw).dropped;
            kept = p4_fifo_lost(sw->fifo);
            p4_switch_reset(sw);
        }
        if (p4_fifo_inject(sw->fifo, below(8), data, len, wire_len, i) < 0)
            return 1;
        uint64_t sum = 0;
        for (p4_frame *out; (out = p4_fifo_next(sw->fifo, &port, i)); free(out))
            for (uint32_t b = 0; b < out->data_len; b++) /* every byte must be accessible */
                sum += out->data[b];
        if (sum == UINT64_MAX)
            puts("");
        for (p4_digest *d = p4_fifo_digests(sw->fifo), *next; d; d = next) {
            next = d->next;
            free(d);
        }
        const p4_switch_counts c = p4_switch_get_counts(sw);
        if (c.received + c.cloned + c.multicast != c.transmitted + c.dropped + p4_fifo_lost(sw->fifo) - kept) {
            fprintf(stderr, "packet %llu: packets are not conserved\n", (unsigned long long)i);
            return 1;
        }
    }
    const p4_switch_counts c = p4_switch_get_counts(sw);
    printf("%llu packets: %llu frames left, %llu packets were dropped\n", (unsigned long long)packets,
           (unsigned long long)(transmitted + c.transmitted), (unsigned long long)(dropped + c.dropped));
    p4_switch_delete(sw);
    for (size_t i = 0; i < n_words; i++)
        free((void *)(uintptr_t)words[i].data);
    return 0;
}
