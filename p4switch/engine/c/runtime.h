/* Structures shared by generated pipelines and the control plane: tables, profiles, stateful objects, the switch
 * itself.
 *
 * A generated library exports one `p4_program`, a set of constant tables that describe it. The control plane (table.c,
 * switch.c) interprets this description. The pipeline works on the same memory, with everything in the description
 * known at its compilation.
 */
#ifndef P4CC_RUNTIME_H
#define P4CC_RUNTIME_H

#include "allocate.h"
#include "switch.h"
#include "wide.h"

#define P4_LIKELY(x) __builtin_expect(!!(x), 1)
#define P4_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define P4_UNUSED __attribute__((unused))

#define P4_PROGRAM_SYMBOL "p4_program_description"
#define P4_NO_ACTION 0xffffu /* actions are numbered below */
#define P4_FREE 0xffffu
#define P4_CACHE_LINE 64

/* --- description of a program ----------------------------------------------------------------------------------- */

typedef enum p4_match_kind { P4_EXACT, P4_LPM, P4_TERNARY, P4_RANGE, P4_OPTIONAL, P4_VALID } p4_match_kind;

typedef enum p4_table_kind {
    P4_TABLE_KEYLESS,
    P4_TABLE_EXACT,
    P4_TABLE_LPM,
    P4_TABLE_ORDERED, /* ternary, range, optional: scanned by priority */
} p4_table_kind;

/* Key fields are packed into 64-bit words. A field of more than 64 bits takes whole words, the first the highest. */
typedef struct p4_key_info {
    const char *name;
    uint16_t width;
    uint8_t kind;       /* p4_match_kind */
    uint8_t word;
    uint8_t shift;      /* within the word; 0 for wide fields */
    const uint8_t *mask; /* static mask, as a value; NULL: none */
} p4_key_info;

/* Values of up to 64 bits are stored as the smallest native integer; wider ones as limbs. */
typedef struct p4_param_info {
    const char *name;
    uint16_t width;
    uint16_t offset;
} p4_param_info;

typedef struct p4_action_info {
    const char *name;
    uint32_t id; /* of the JSON */
    uint16_t n_params;
    uint16_t size;
    const p4_param_info *params;
} p4_action_info;

/* An entry defined by the program. Values are big-endian and byte-padded, one field after the other. */
typedef struct p4_entry_info {
    const uint8_t *values;
    const uint8_t *masks;    /* or upper bounds; bytes of fields without a mask are ignored */
    const int32_t *prefixes; /* of each field; -1: none */
    const uint8_t *args;
    int32_t priority;
    uint32_t action;
} p4_entry_info;

/* A register or an extern object with a cell for each entry, indexed by the entry's handle. */
typedef struct p4_cells_info { uint8_t in_register; uint16_t number; } p4_cells_info;

typedef struct p4_table_info {
    const char *name;
    uint8_t kind;          /* p4_table_kind */
    uint8_t key_words;
    uint8_t default_constant; /* 1: the default action; 2: its data too */
    uint16_t n_keys;
    uint16_t n_actions;
    uint32_t n_entries;
    int16_t profile;       /* of an indirect table; -1 otherwise */
    uint8_t with_counters;
    uint8_t with_last_hit;
    int16_t meter;         /* direct; -1: none */
    uint16_t n_cells;
    const p4_cells_info *cells;
    uint32_t max_size;
    uint32_t data_offset;  /* offset of the action's data within an entry */
    uint32_t stride;       /* bytes of an entry */
    uint32_t fallback_offset;
    const p4_key_info *keys;
    const uint32_t *actions; /* that its entries may have */
    const p4_entry_info *entries;
    uint32_t default_action; /* P4_NO_ACTION: none */
    const uint8_t *default_args;
} p4_table_info;

typedef struct p4_profile_info {
    const char *name;
    uint8_t with_selector;
    uint16_t n_actions;
    const uint32_t *actions;
    uint32_t stride;
    uint32_t max_size;
} p4_profile_info;

typedef struct p4_counter_info { const char *name; uint32_t size; } p4_counter_info;
typedef struct p4_meter_info { const char *name; uint32_t size; uint8_t packets; uint8_t rates; } p4_meter_info;
typedef struct p4_bank_info { uint32_t size; uint32_t stride; } p4_bank_info; /* registers of one size, side by side */
typedef struct p4_register_info {
    const char *name;
    uint32_t size;
    uint32_t width;
    uint32_t bank;
    uint32_t offset; /* in a row of the bank */
    const uint8_t *initial; /* initial value of the cells, big-endian; NULL: zeros */
} p4_register_info;
typedef struct p4_object_info { const char *name; uint32_t size; uint32_t stride; } p4_object_info; /* of an extern */
typedef struct p4_vset_info { const char *name; uint16_t n_keys; uint8_t key_words; const p4_key_info *keys; } p4_vset_info;

typedef struct p4_program {
    uint64_t abi;
    uint32_t packet_size;
    uint32_t fallbacks_size;
    uint32_t drop_port; /* of the architecture */
    uint16_t n_actions, n_tables, n_profiles, n_counters, n_meters, n_banks, n_registers, n_objects, n_vsets;
    uint32_t n_points; /* counted points; 0 unless it was built for tracing */
    const p4_action_info *actions;
    const p4_table_info *tables;
    const p4_profile_info *profiles;
    const p4_counter_info *counters;
    const p4_meter_info *meters;
    const p4_bank_info *banks;
    const p4_register_info *registers;
    const p4_object_info *objects;
    const p4_vset_info *vsets;
    void (*receive)(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now);
    p4_frame *(*transmit)(p4_switch *sw, p4_packet *packet, p4_tick now);
    int (*deflect)(p4_switch *sw, p4_packet *packet); /* NULL: the architecture drops packets that find no room */
    /* NULL: no part of the program runs when a queue changes */
    void (*queue_changed)(p4_switch *sw, const p4_packet *packet, uint32_t queue, uint32_t cells, p4_tick now);
    /* See p4_switch_timer and p4_switch_state_changed. NULL: the architecture has no timers. */
    void (*timer)(p4_switch *sw, p4_tick now);
    void (*state_changed)(p4_switch *sw);
    void (*free_packet)(p4_switch *sw, p4_packet *packet);
    /* Returns a packet of this program that takes the place of one of another program of the architecture, in front of
     * egress; that one is then to be released. */
    p4_packet *(*take_over)(p4_switch *sw, const p4_packet *packet);
    void (*release)(p4_packet *packet);
} p4_program;

/* Changes whenever a structure here changes: a library and the extension must have been built from the same headers. */
#ifndef P4_ABI
#define P4_ABI 0
#endif

/* --- tables ------------------------------------------------------------------------------------------------------ */

/* An entry consists of this head, key words, mask words (or upper bounds), and, if the table has them, counter, last
 * hit and data. The data of an entry of an indirect table is a p4_target, and there is no action. */
typedef struct p4_entry {
    uint16_t action; /* P4_FREE: there is no entry here */
    uint16_t prefix; /* LPM: significant bits of the prefix field */
    uint32_t handle;
    uint64_t key[];
} p4_entry;

typedef struct p4_counter { uint64_t packets, bytes; } p4_counter;

typedef struct p4_target { uint32_t group; uint32_t index; } p4_target; /* group: 1, or 0 for a member */

/* Data needed by a lookup; two of these fit into a cache line. A network has hundreds of switches, and each packet
 * goes on to another one; so the data that a pipeline uses are rarely in the cache, and are kept small and close
 * together.
 *
 * Entries of hashed tables (exact, LPM) are stored directly in an open-addressing hash table with linear probing.
 * Entries of ordered tables are stored in order, and the first match wins. Entries move; handles give their present
 * places (p4_table_control).
 */
typedef struct p4_table {
    uint8_t *entries;     /* NULL: none yet */
    uint64_t lengths;     /* LPM over up to 63 bits: bit n is set if there are prefixes of n bits */
    uint32_t count;
    uint32_t slot_mask;   /* hashed: places - 1 */
    uint32_t slot_shift;  /* hashed: shift from a hash to its first place */
    uint32_t default_target_set; /* of an indirect table */
} p4_table;

typedef struct p4_prefix { /* one prefix length in use */
    uint32_t length;
    uint32_t count;
    uint64_t mask[];
} p4_prefix;

typedef struct p4_handle {
    uint32_t place;   /* place of the entry; P4_NOWHERE: the handle is free */
    int32_t priority; /* priority in an ordered table; for a free handle the next free one, -1: none */
} p4_handle;

#define P4_NOWHERE UINT32_MAX

/* Data that only the control plane needs. */
typedef struct p4_table_control {
    const p4_table_info *info;
    p4_handle *handles;
    uint32_t n_handles;  /* ever used */
    uint32_t handle_room; /* allocated */
    int32_t free_handle; /* -1: none */
    uint32_t capacity;   /* places for entries */
    uint8_t *prefixes;   /* p4_prefix, longest first */
    uint32_t n_prefixes;
    p4_target default_target;
} p4_table_control;

/* The default action of a table, followed by its arguments. */
typedef struct p4_fallback { uint32_t action; uint32_t pad; uint64_t data[]; } p4_fallback;

typedef struct p4_member {
    uint32_t action; /* P4_NO_ACTION: free */
    uint32_t references;
    uint8_t data[];
} p4_member;

#define P4_FEW 11

typedef struct p4_members { /* members of a group; one cache line */
    uint32_t count;
    uint32_t used;
    uint32_t references;
    uint32_t few[P4_FEW]; /* if there are not more */
    uint32_t *many;       /* else */
} p4_members;

typedef struct p4_profile {
    uint8_t *members;
    p4_members *groups;
    const p4_profile_info *info;
    uint32_t n_members, n_groups; /* allocated; handles are below */
} p4_profile;

/* Two-rate three-color marker, colour-blind, as in BMv2: tokens accumulate from time 0. */
typedef struct p4_rate { uint64_t per_second, burst, tokens, accrued; } p4_rate;
typedef struct p4_meter { uint64_t configured; p4_rate rates[2]; /* peak, committed */ } p4_meter;

/* Further state of an array of meters: bytes that are added to the length of each packet, and the cell of a table's
 * default action. */
typedef struct p4_meter_more { int64_t adjust; p4_meter fallback; } p4_meter_more;

/* A copy of a packet. If `of` is not 0, the replica is one of that many, from which a hash chooses one; lag_of works
 * likewise with another hash. If `xid` is not 0, packets that exclude xid - 1 are not copied. Only some
 * architectures use these members. */
typedef struct p4_replica { uint32_t port, instance, xid; uint16_t of, at, lag_of, lag_at; } p4_replica;

typedef struct p4_group { /* multicast group or clone session */
    uint32_t id;
    uint32_t truncate; /* bytes; 0: whole */
    uint32_t count;
    p4_replica replicas[];
} p4_group;

typedef struct p4_groups { p4_group **list; uint32_t count; } p4_groups; /* sorted by id */

typedef struct p4_vset { const p4_vset_info *info; uint64_t *words; uint32_t count; } p4_vset; /* key, mask, key, ... */

typedef struct p4_pipes { uint32_t count, port_bits; p4_switch *list[]; } p4_pipes;

/* Members are in the order of use: data that every packet uses come first. Tables, profiles, the arrays of pointers
 * and the default actions follow in the same block. */
struct p4_switch {
    const p4_program *program;
    p4_table *tables;
    p4_profile *profiles;
    uint8_t *fallbacks;      /* p4_fallback of each table, at its fallback_offset */
    p4_counter **counters;
    p4_meter **meters;       /* indexed by handle for direct ones, grown with the table */
    uint8_t **banks;         /* of registers */
    uint64_t random;         /* state of splitmix64 */

    p4_pipes *pipes;         /* of the switch; NULL: this is the only one */
    p4_env env;
    uint32_t drop_port;
    uint32_t device_id;
    uint32_t pipe;           /* its number */
    uint64_t timed;          /* packets that timers have made */

    p4_switch_counts counts;
    p4_groups multicast, clones;

    p4_table_control *controls;
    p4_vset *vsets;
    uint8_t **objects;       /* cells of extern objects */
    p4_meter_more *meters_more;
    uint64_t seed;
    uint64_t tick_ns;
    uint64_t failed_asserts; /* also assumes */
    const char *failed_assert; /* the first of them, a text in the program's library */
    uint8_t *scratch;        /* for checksums over payload */
    size_t scratch_size;
    struct p4_fifo *fifo;    /* the env of Switch.process */
    uint64_t *passed;        /* how often each point was passed */
    char error[256];
};

/* --- pipes ------------------------------------------------------------------------------------------------------- */

/* The pipe of a port; packets for a port that no pipe has are those of the first one. */
P4_INLINE p4_switch *p4_pipe_of(const p4_switch *sw, uint32_t port)
{
    if (P4_LIKELY(!sw->pipes))
        return (p4_switch *)(uintptr_t)sw;
    uint32_t pipe = port >> sw->pipes->port_bits;
    return sw->pipes->list[pipe < sw->pipes->count ? pipe : 0];
}

/* Hands a packet from the pipe `from` over to the pipe of its egress port. */
static P4_UNUSED p4_packet *p4_cross(p4_switch *from, p4_packet *packet)
{
    p4_switch *to = p4_pipe_of(from, packet->egress_port);
    if (to->program == from->program)
        return packet;
    p4_packet *taken = to->program->take_over(to, packet);
    from->program->release(packet);
    return taken;
}

/* --- messages of a program
 * ------------------------------------------------------------------------------------------ */

P4_INLINE void p4_log(const p4_switch *sw, const char *text)
{
    if (sw->env.log)
        sw->env.log(sw->env.ctx, 0, text);
}

/* `text` lives as long as the program. */
static __attribute__((unused, cold, noinline)) void p4_assert_failed(p4_switch *sw, const char *text)
{
    if (!sw->failed_asserts++)
        sw->failed_assert = text;
    if (sw->env.log)
        sw->env.log(sw->env.ctx, 1, text);
}

/* --- lookups ----------------------------------------------------------------------------------------------------- */

P4_INLINE uint32_t p4_hash(const uint64_t *key, int words, uint32_t salt)
{
    uint64_t h = (key[0] ^ key[0] >> 32 ^ salt) * 0x9e3779b97f4a7c15ull;
    for (int i = 1; i < words; i++)
        h = ((h ^ h >> 32) + (key[i] ^ key[i] >> 32)) * 0xd6e8feb86659fd93ull;
    return (uint32_t)(h >> 32); /* the highest bits are the most random: they choose the slot */
}

/* Whether entries are found by their hash, so that places may be free; else entries are stored in order. */
P4_INLINE int p4_is_hashed(const p4_table_info *info)
{
    return info->kind == P4_TABLE_EXACT || info->kind == P4_TABLE_LPM;
}

P4_INLINE p4_entry *p4_entry_at(const p4_table *t, uint32_t index, uint32_t stride)
{
    return (p4_entry *)(void *)(t->entries + (size_t)index * stride);
}

P4_INLINE int p4_words_equal(const uint64_t *a, const uint64_t *b, int words)
{
    uint64_t differ = 0;
    for (int i = 0; i < words; i++)
        differ |= a[i] ^ b[i];
    return !differ;
}

P4_INLINE p4_entry *p4_find_hashed(const p4_table *t, const uint64_t *key, int words, uint32_t stride, uint32_t prefix)
{
    uint32_t at = p4_hash(key, words, prefix) >> t->slot_shift;
    for (;; at = (at + 1) & t->slot_mask) {
        p4_entry *e = p4_entry_at(t, at, stride);
        if (e->action == P4_FREE)
            return NULL;
        if (P4_LIKELY(e->prefix == prefix && p4_words_equal(e->key, key, words)))
            return e;
    }
}

P4_INLINE p4_entry *p4_find_exact(const p4_table *t, const uint64_t *key, int words, uint32_t stride)
{
    return t->count ? p4_find_hashed(t, key, words, stride, 0) : NULL;
}

/* LPM where the prefix field has at most 63 bits and is at `shift` of a word. */
P4_INLINE p4_entry *p4_find_lpm(const p4_table *t, const uint64_t *key, int words, uint32_t stride, int word,
                                uint32_t shift, uint32_t width)
{
    for (uint64_t left = t->lengths; left;) {
        uint32_t length = 63 - (uint32_t)__builtin_clzll(left);
        uint64_t masked[words];
        left ^= 1ull << length;
        for (int i = 0; i < words; i++)
            masked[i] = key[i];
        masked[word] &= ~(p4_mask64(width - length) << shift);
        p4_entry *e = p4_find_hashed(t, masked, words, stride, length);
        if (e)
            return e;
    }
    return NULL;
}

/* LPM with a prefix field of any width. */
P4_INLINE p4_entry *p4_find_lpm_wide(const p4_table *t, const uint64_t *key, int words, uint32_t stride,
                                     const p4_table_control *control)
{
    const uint8_t *at = control->prefixes;
    for (uint32_t n = control->n_prefixes; n > 0; n--) {
        const p4_prefix *prefix = (const p4_prefix *)(const void *)at;
        uint64_t masked[words];
        for (int i = 0; i < words; i++)
            masked[i] = key[i] & prefix->mask[i];
        p4_entry *e = p4_find_hashed(t, masked, words, stride, prefix->length);
        if (e)
            return e;
        at += sizeof(p4_prefix) + (size_t)words * sizeof(uint64_t);
    }
    return NULL;
}

P4_INLINE p4_entry *p4_find_ternary(const p4_table *t, const uint64_t *key, int words, uint32_t stride)
{
    for (uint32_t i = 0; i < t->count; i++) {
        p4_entry *e = p4_entry_at(t, i, stride);
        uint64_t differ = 0;
        for (int w = 0; w < words; w++)
            differ |= (key[w] & e->key[words + w]) ^ e->key[w];
        if (!differ)
            return e;
    }
    return NULL;
}

P4_INLINE uint64_t p4_key_field(const uint64_t *words, const p4_key_info *k, int part)
{
    return words[k->word + part] >> k->shift & p4_mask64(k->width > 64 ? 64 : k->width);
}

/* For tables with a range field. Fields of other kinds hold a value and a mask, range fields low and high. */
P4_INLINE p4_entry *p4_find_range(const p4_table *t, const uint64_t *key, int words, uint32_t stride,
                                  const p4_key_info *keys, int n_keys)
{
    for (uint32_t i = 0; i < t->count; i++) {
        p4_entry *e = p4_entry_at(t, i, stride);
        int matches = 1;
        for (int k = 0; k < n_keys && matches; k++) {
            int parts = keys[k].width > 64 ? (keys[k].width + 63) / 64 : 1, above = 0, below = 0;
            for (int part = 0; part < parts; part++) {
                uint64_t v = p4_key_field(key, &keys[k], part);
                uint64_t low = p4_key_field(e->key, &keys[k], part);
                uint64_t high = p4_key_field(e->key + words, &keys[k], part);
                if (keys[k].kind != P4_RANGE) {
                    if ((v & high) != low)
                        matches = 0;
                    continue;
                }
                if (!above && v < low)
                    matches = 0;
                if (!below && v > high)
                    matches = 0;
                above |= v > low;
                below |= v < high;
            }
        }
        if (matches)
            return e;
    }
    return NULL;
}

P4_INLINE int p4_vset_contains(const p4_vset *set, const uint64_t *key, int words)
{
    const uint64_t *member = set->words;
    for (uint32_t i = 0; i < set->count; i++, member += 2 * words) {
        uint64_t differ = 0;
        for (int w = 0; w < words; w++)
            differ |= (key[w] & member[words + w]) ^ member[w];
        if (!differ)
            return 1;
    }
    return 0;
}

/* The number of members is often a power of two, and a division takes 20 times as long. */
P4_INLINE uint32_t p4_modulo(uint32_t a, uint32_t b)
{
    return P4_LIKELY(!(b & (b - 1))) ? a & (b - 1) : a % b;
}

P4_INLINE uint32_t p4_member_of(const p4_members *group, uint32_t hash)
{
    uint32_t at = p4_modulo(hash, group->count);
    return group->count <= P4_FEW ? group->few[at] : group->many[at];
}

P4_INLINE p4_member *p4_member_at(const p4_profile *profile, uint32_t index, uint32_t stride)
{
    return (p4_member *)(void *)(profile->members + (size_t)index * stride);
}

P4_INLINE const p4_group *p4_group_find(const p4_groups *groups, uint32_t id)
{
    uint32_t low = 0, high = groups->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (groups->list[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < groups->count && groups->list[low]->id == id ? groups->list[low] : NULL;
}

/* --- frames --------------------------------------------------------------------------------------------------------- */

/* n bytes from `at` on; bytes that are not present are zeros. */
P4_FUNCTION void p4_copy_padded(uint8_t *to, const p4_frame *frame, uint32_t at, uint32_t n)
{
    uint32_t present = at < frame->data_len ? frame->data_len - at : 0;
    if (present > n)
        present = n;
    memcpy(to, frame->data + (present ? at : 0), present);
    memset(to + present, 0, n - present);
}

/* The same for a packet with `front_len` bytes in front of its frame. */
P4_FUNCTION void p4_copy_behind(uint8_t *to, const uint8_t *front, uint32_t front_len, const p4_frame *frame, uint32_t at,
                                uint32_t n)
{
    uint32_t before = at < front_len ? front_len - at : 0;
    if (before > n)
        before = n;
    if (before)
        memcpy(to, front + at, before);
    if (before < n)
        p4_copy_padded(to + before, frame, at + before - front_len, n - before);
}

/* --- stateful objects --------------------------------------------------------------------------------------------- */

P4_INLINE void p4_count(p4_switch *sw, uint32_t array, uint64_t size, uint64_t index, uint32_t bytes)
{
    if (index < size) {
        sw->counters[array][index].packets++;
        sw->counters[array][index].bytes += bytes;
    }
}

/* The bytes that a meter counts for a packet. */
P4_INLINE uint32_t p4_metered_bytes(const p4_switch *sw, uint32_t meter, uint32_t bytes)
{
    int64_t sum = (int64_t)bytes + sw->meters_more[meter].adjust;
    return sum > 0 ? (uint32_t)sum : 0;
}

/* The new colour of a packet that arrives with `colour`: 0 green, 1 yellow, 2 red. */
P4_FUNCTION uint32_t p4_meter_execute(const p4_switch *sw, p4_meter *m, int rates, int packets, uint32_t bytes,
                                      p4_tick now, uint32_t colour)
{
    if (!m->configured || colour > 1)
        return colour;
    uint64_t need = packets ? 1 : bytes;
    for (int i = 2 - rates; i < 2; i++) {
        p4_rate *r = &m->rates[i];
        uint64_t accrued = (uint64_t)((p4_u128)now * sw->tick_ns * r->per_second / 1000000000u);
        if (accrued > r->accrued) {
            p4_u128 tokens = (p4_u128)r->tokens + (accrued - r->accrued);
            r->tokens = tokens < r->burst ? (uint64_t)tokens : r->burst;
            r->accrued = accrued;
        }
        if (r->tokens < need || (i && colour))
            return 2 - (uint32_t)i;
        r->tokens -= need;
    }
    return 0;
}

P4_INLINE uint64_t p4_random64(p4_switch *sw)
{
    uint64_t z = sw->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* A uniformly distributed number in low..high. */
P4_INLINE uint64_t p4_random(p4_switch *sw, uint64_t low, uint64_t high)
{
    uint64_t span = high - low + 1; /* 0: all 2^64 values */
    uint64_t random = p4_random64(sw);
    return span ? low + (uint64_t)((p4_u128)random * span >> 64) : random;
}

/* Room for checksums over payload; NULL if there is no memory. */
P4_FUNCTION uint8_t *p4_scratch(p4_switch *sw, size_t size)
{
    if (size > sw->scratch_size) {
        uint8_t *scratch = realloc(sw->scratch, size);
        if (!scratch)
            return NULL;
        sw->scratch = scratch;
        sw->scratch_size = size;
    }
    return sw->scratch;
}

/* --- control plane (table.c, switch.c): returns 0, or a negative p4_status with sw->error set and nothing changed
 * ----- */

typedef enum p4_status { P4_OK = 0, P4_INVALID = -1, P4_FULL = -2, P4_MEMORY = -3 } p4_status;

typedef struct p4_bytes { const uint8_t *data; size_t len; } p4_bytes;

typedef struct p4_match {
    p4_bytes value;   /* data NULL: don't care */
    p4_bytes mask;    /* mask, or upper bound of a range */
    int32_t prefix;   /* -1: none given */
} p4_match;

typedef enum p4_target_kind { P4_TO_ACTION, P4_TO_MEMBER, P4_TO_GROUP } p4_target_kind;

typedef struct p4_aim { /* target of an entry */
    p4_target_kind kind;
    const char *action;
    uint32_t index;  /* of the member or group */
    const p4_bytes *args;
    size_t n_args;
} p4_aim;

p4_switch *p4_switch_new(const p4_program *program, uint32_t device_id, uint64_t seed, uint64_t tick_ns, char error[256]);
void p4_switch_delete(p4_switch *sw);
int p4_switch_reset(p4_switch *sw);

int p4_find_table(p4_switch *sw, const char *name);
int p4_find_profile(p4_switch *sw, const char *name);
int p4_find_counter(p4_switch *sw, const char *name);
int p4_find_meter(p4_switch *sw, const char *name);
int p4_find_register(p4_switch *sw, const char *name);
int p4_find_vset(p4_switch *sw, const char *name);
int p4_find_object(p4_switch *sw, const char *name);

int p4_table_init(p4_switch *sw, uint32_t table);
void p4_table_destroy(p4_switch *sw, uint32_t table);
int p4_table_add(p4_switch *sw, uint32_t table, const p4_match *key, size_t n_keys, int32_t priority, const p4_aim *aim,
                 uint32_t *handle);
int p4_table_modify(p4_switch *sw, uint32_t table, uint32_t handle, const p4_aim *aim);
int p4_table_delete(p4_switch *sw, uint32_t table, uint32_t handle);
int p4_table_set_default(p4_switch *sw, uint32_t table, const p4_aim *aim); /* NULL: restores the program's own */
int p4_table_clear(p4_switch *sw, uint32_t table);
p4_entry *p4_table_entry(p4_switch *sw, uint32_t table, uint32_t handle); /* NULL with sw->error set */
p4_counter *p4_entry_counter(const p4_table_info *info, p4_entry *e);
p4_tick *p4_entry_last_hit(const p4_table_info *info, p4_entry *e);

int p4_member_add(p4_switch *sw, uint32_t profile, const p4_aim *aim, uint32_t *handle);
int p4_member_modify(p4_switch *sw, uint32_t profile, uint32_t handle, const p4_aim *aim);
int p4_member_delete(p4_switch *sw, uint32_t profile, uint32_t handle);
int p4_group_add(p4_switch *sw, uint32_t profile, uint32_t *handle);
int p4_group_set(p4_switch *sw, uint32_t profile, uint32_t handle, const uint32_t *members, size_t count);
int p4_group_delete(p4_switch *sw, uint32_t profile, uint32_t handle);
void p4_profile_destroy(p4_profile *profile);

int p4_meter_set(p4_switch *sw, p4_meter *meter, const uint64_t config[4]); /* CIR, CBS, PIR, PBS, or NULL */
int p4_register_get(p4_switch *sw, uint32_t array, uint32_t index, uint8_t *value, size_t len);
int p4_register_set(p4_switch *sw, uint32_t array, uint32_t index, const uint8_t *value, size_t len);
uint8_t *p4_object_cell(p4_switch *sw, uint32_t object, uint32_t index); /* NULL with sw->error set */
int p4_replicas_set(p4_switch *sw, p4_groups *groups, uint32_t id, const p4_replica *replicas, size_t count,
                    uint32_t truncate, int remove);
int p4_vset_set(p4_switch *sw, uint32_t set, const p4_match *keys, size_t n_members);

int p4_fail(p4_switch *sw, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The number of bytes of a value of this many bits in entries and registers, and conversions to and from this form. */
P4_INLINE uint32_t p4_storage(uint32_t width)
{
    return width <= 8 ? 1 : width <= 16 ? 2 : width <= 32 ? 4 : (width + 63) / 64 * 8;
}
void p4_store(uint8_t *to, uint32_t width, const uint8_t *value);
void p4_load(const uint8_t *from, uint32_t width, uint8_t *value);

#endif
