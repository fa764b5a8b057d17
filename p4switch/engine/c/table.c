/* Control plane of tables, action profiles and parser value sets. */
#include "runtime.h"

#include <stdlib.h>

/* --- values ------------------------------------------------------------------------------------------------------ */

static uint32_t byte_width(uint32_t width) { return (width + 7) / 8; }

void p4_store(uint8_t *to, uint32_t width, const uint8_t *value)
{
    uint32_t size = p4_storage(width), bytes = byte_width(width);
    for (uint32_t i = 0; i < size; i += 8) {
        uint64_t limb = 0;
        for (uint32_t b = 0; b < 8 && i + b < bytes; b++)
            limb |= (uint64_t)value[bytes - 1 - i - b] << (8 * b);
        memcpy(to + i, &limb, size < 8 ? size : 8); /* little-endian hosts only, see switch.c */
    }
}

void p4_load(const uint8_t *from, uint32_t width, uint8_t *value)
{
    uint32_t bytes = byte_width(width);
    for (uint32_t i = 0; i < bytes; i++)
        value[bytes - 1 - i] = from[i];
}

static int check_value(p4_switch *sw, const char *where, const char *name, uint32_t width, p4_bytes v)
{
    if (v.len != byte_width(width))
        return p4_fail(sw, P4_INVALID, "%s: %s has %u bits: expected %u bytes, got %zu", where, name, width,
                       byte_width(width), v.len);
    if (width % 8 && v.data[0] >> (width % 8))
        return p4_fail(sw, P4_INVALID, "%s: the value of %s does not fit in %u bits", where, name, width);
    return P4_OK;
}

/* --- keys ---------------------------------------------------------------------------------------------------------- */

/* ORs `bytes` into the words of a field. */
static void pack(uint64_t *words, const p4_key_info *k, const uint8_t *bytes)
{
    uint32_t n = byte_width(k->width);
    uint32_t parts = k->width > 64 ? (k->width + 63) / 64 : 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bit = 8 * (n - 1 - i); /* of the byte's lowest bit within the value */
        words[k->word + parts - 1 - bit / 64] |= (uint64_t)bytes[i] << (bit % 64 + k->shift);
    }
}

static void prefix_mask(uint8_t *mask, uint32_t width, uint32_t length)
{
    memset(mask, 0, byte_width(width));
    uint32_t pad = 8 * byte_width(width) - width;
    for (uint32_t i = 0; i < length; i++)
        mask[(pad + i) / 8] |= (uint8_t)(0x80 >> ((pad + i) % 8));
}

#define MAX_BYTES 256 /* of a key field: the schema limits widths to 2048 bits */

/* Key fields to words, masks (or bounds), and the length of the LPM field. words and masks have key_words each. */
static int pack_key(p4_switch *sw, const char *where, const p4_key_info *infos, uint32_t n_infos, uint32_t key_words,
                    const p4_match *key, size_t n_keys, uint64_t *words, uint64_t *masks, uint32_t *prefix)
{
    if (n_keys != n_infos)
        return p4_fail(sw, P4_INVALID, "%s: expected %u key fields, got %zu", where, n_infos, n_keys);
    memset(words, 0, key_words * sizeof *words);
    memset(masks, 0, key_words * sizeof *masks);
    *prefix = 0;
    for (uint32_t i = 0; i < n_infos; i++) {
        const p4_key_info *k = &infos[i];
        const p4_match *m = &key[i];
        uint32_t n = byte_width(k->width);
        uint8_t value[MAX_BYTES] = {0}, mask[MAX_BYTES];
        int status;

        prefix_mask(mask, k->width, k->width);
        if (!m->value.data) {
            if (k->kind == P4_EXACT || k->kind == P4_VALID)
                return p4_fail(sw, P4_INVALID, "%s: exact field %s needs a value", where, k->name);
            if (k->kind != P4_RANGE)
                memset(mask, 0, n);
        } else {
            if ((status = check_value(sw, where, k->name, k->width, m->value)))
                return status;
            memcpy(value, m->value.data, n);
            int masked = k->kind == P4_TERNARY || k->kind == P4_OPTIONAL;
            if (k->kind == P4_RANGE || (masked && m->mask.len)) {
                if ((status = check_value(sw, where, k->name, k->width, m->mask)))
                    return status;
                memcpy(mask, m->mask.data, n);
                if (k->kind == P4_RANGE && memcmp(value, mask, n) > 0)
                    return p4_fail(sw, P4_INVALID, "%s: range of %s is empty: low is above high", where, k->name);
            } else if (m->prefix >= 0) {
                if ((uint32_t)m->prefix > k->width)
                    return p4_fail(sw, P4_INVALID, "%s: prefix of %d bits is longer than %s (%u bits)", where,
                                   m->prefix, k->name, k->width);
                prefix_mask(mask, k->width, (uint32_t)m->prefix);
            }
        }
        if (k->kind == P4_LPM)
            *prefix = m->value.data ? m->prefix >= 0 ? (uint32_t)m->prefix : k->width : 0;
        for (uint32_t b = 0; b < n; b++) {
            if (k->mask)
                value[b] &= k->mask[b];
            if (k->kind != P4_RANGE)
                value[b] &= mask[b];
        }
        pack(words, k, value);
        pack(masks, k, mask);
    }
    return P4_OK;
}

/* --- where entries are ------------------------------------------------------------------------------------------------- */

/* Memory that begins at a cache line; freed with free(). */
static void *allocate_lines(size_t size)
{
    return aligned_alloc(P4_CACHE_LINE, (size + P4_CACHE_LINE - 1) / P4_CACHE_LINE * P4_CACHE_LINE);
}

static p4_table_control *control_of(p4_switch *sw, const p4_table *t) { return &sw->controls[t - sw->tables]; }

static void mark_free(uint8_t *entries, uint32_t stride, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        ((p4_entry *)(void *)(entries + (size_t)i * stride))->action = P4_FREE;
}

/* Puts a copy of an entry where it is to be in the table and tells its handle. */
static void put(const p4_table *t, const p4_table_control *c, uint32_t place, const p4_entry *e)
{
    memmove(p4_entry_at(t, place, c->info->stride), e, c->info->stride);
    c->handles[e->handle].place = place;
}

/* The place where an entry with this key would go. */
static uint32_t free_place(const p4_table *t, const p4_table_info *info, const p4_entry *e)
{
    uint32_t at = p4_hash(e->key, info->key_words, e->prefix) >> t->slot_shift;
    while (p4_entry_at(t, at, info->stride)->action != P4_FREE)
        at = (at + 1) & t->slot_mask;
    return at;
}

/* Moves a table to 2^bits places (hashed) or to that many more places (ordered). */
static int grow(p4_switch *sw, p4_table *t)
{
    p4_table_control *c = control_of(sw, t);
    const p4_table_info *info = c->info;
    uint32_t capacity = c->capacity ? 2 * c->capacity : 4;
    uint8_t *entries = capacity > 1u << 30 ? NULL : allocate_lines((size_t)capacity * info->stride);
    if (!entries)
        return p4_fail(sw, P4_MEMORY, "table %s: out of memory", info->name);
    p4_table old = *t;
    t->entries = entries;
    if (!p4_is_hashed(info)) {
        if (t->count)
            memcpy(entries, old.entries, (size_t)t->count * info->stride);
    } else {
        mark_free(entries, info->stride, 0, capacity);
        t->slot_mask = capacity - 1;
        t->slot_shift = (uint32_t)__builtin_clz(capacity) + 1;
        for (uint32_t i = 0; i < c->capacity; i++) {
            const p4_entry *e = p4_entry_at(&old, i, info->stride);
            if (e->action != P4_FREE)
                put(t, c, free_place(t, info, e), e);
        }
    }
    free(old.entries);
    c->capacity = capacity;
    return P4_OK;
}

/* Closes the hole of an entry that is gone: moves back whatever probing would no longer reach. */
static void close_hole(p4_table *t, const p4_table_control *c, uint32_t hole)
{
    const p4_table_info *info = c->info;
    for (uint32_t at = hole;;) {
        at = (at + 1) & t->slot_mask;
        const p4_entry *e = p4_entry_at(t, at, info->stride);
        if (e->action == P4_FREE)
            break;
        uint32_t home = p4_hash(e->key, info->key_words, e->prefix) >> t->slot_shift;
        if (((at - home) & t->slot_mask) >= ((at - hole) & t->slot_mask)) {
            put(t, c, hole, e);
            hole = at;
        }
    }
    p4_entry_at(t, hole, info->stride)->action = P4_FREE;
}

/* --- handles --------------------------------------------------------------------------------------------------------------- */

static int handle_new(p4_switch *sw, p4_table_control *c, uint32_t *handle)
{
    const p4_table_info *info = c->info;
    if (c->free_handle < 0 && c->n_handles == c->handle_room) {
        uint32_t room = c->handle_room ? 2 * c->handle_room : 8;
        p4_handle *handles = realloc(c->handles, room * sizeof *handles);
        if (!handles)
            return p4_fail(sw, P4_MEMORY, "table %s: out of memory", info->name);
        c->handles = handles;
        if (info->meter >= 0) {
            p4_meter *meters = realloc(sw->meters[info->meter], room * sizeof *meters);
            if (!meters)
                return p4_fail(sw, P4_MEMORY, "table %s: out of memory", info->name);
            sw->meters[info->meter] = meters;
        }
        c->handle_room = room;
    }
    if (c->free_handle >= 0) {
        *handle = (uint32_t)c->free_handle;
        c->free_handle = c->handles[*handle].priority;
    } else {
        *handle = c->n_handles++;
    }
    if (info->meter >= 0)
        memset(&sw->meters[info->meter][*handle], 0, sizeof(p4_meter));
    return P4_OK;
}

static void handle_free(p4_table_control *c, uint32_t handle)
{
    c->handles[handle] = (p4_handle){P4_NOWHERE, c->free_handle};
    c->free_handle = (int32_t)handle;
}

/* --- prefix lengths ---------------------------------------------------------------------------------------------------- */

static size_t prefix_stride(const p4_table_control *c)
{
    return sizeof(p4_prefix) + c->info->key_words * sizeof(uint64_t);
}

static p4_prefix *prefix_at(const p4_table_control *c, uint32_t i)
{
    return (p4_prefix *)(void *)(c->prefixes + i * prefix_stride(c));
}

static int prefix_use(p4_switch *sw, p4_table *t, uint32_t length, const uint64_t *mask)
{
    p4_table_control *c = control_of(sw, t);
    size_t stride = prefix_stride(c);
    uint32_t i = 0;
    while (i < c->n_prefixes && prefix_at(c, i)->length > length)
        i++;
    if (i == c->n_prefixes || prefix_at(c, i)->length != length) {
        uint8_t *grown = realloc(c->prefixes, (c->n_prefixes + 1) * stride);
        if (!grown)
            return p4_fail(sw, P4_MEMORY, "table %s: out of memory", c->info->name);
        c->prefixes = grown;
        memmove(grown + (i + 1) * stride, grown + i * stride, (c->n_prefixes - i) * stride);
        c->n_prefixes++;
        p4_prefix *p = prefix_at(c, i);
        p->length = length;
        p->count = 0;
        memcpy(p->mask, mask, c->info->key_words * sizeof *mask);
        if (length < 64)
            t->lengths |= 1ull << length;
    }
    prefix_at(c, i)->count++;
    return P4_OK;
}

static void prefix_release(p4_table *t, p4_table_control *c, uint32_t length)
{
    size_t stride = prefix_stride(c);
    uint32_t i = 0;
    while (prefix_at(c, i)->length != length)
        i++;
    if (--prefix_at(c, i)->count == 0) {
        memmove(c->prefixes + i * stride, c->prefixes + (i + 1) * stride, (c->n_prefixes - i - 1) * stride);
        c->n_prefixes--;
        if (length < 64)
            t->lengths &= ~(1ull << length);
    }
}

/* --- what an entry does -------------------------------------------------------------------------------------------------- */

static int action_of(p4_switch *sw, const char *where, const uint32_t *allowed, uint32_t n, const p4_aim *aim,
                     uint32_t *action)
{
    for (uint32_t i = 0; i < n; i++) {
        const p4_action_info *info = &sw->program->actions[allowed[i]];
        if (strcmp(info->name, aim->action))
            continue;
        if (aim->n_args != info->n_params)
            return p4_fail(sw, P4_INVALID, "%s: action %s takes %u arguments, got %zu", where, info->name,
                           info->n_params, aim->n_args);
        for (uint32_t p = 0; p < info->n_params; p++) {
            int status = check_value(sw, info->name, info->params[p].name, info->params[p].width, aim->args[p]);
            if (status)
                return status;
        }
        *action = allowed[i];
        return P4_OK;
    }
    return p4_fail(sw, P4_INVALID, "%s: no action %s there", where, aim->action);
}

static void store_args(p4_switch *sw, uint8_t *data, uint32_t action, const p4_bytes *args)
{
    const p4_action_info *info = &sw->program->actions[action];
    for (uint32_t p = 0; p < info->n_params; p++)
        p4_store(data + info->params[p].offset, info->params[p].width, args[p].data);
}

static int member_valid(const p4_profile *profile, uint32_t handle)
{
    return handle < profile->n_members && p4_member_at(profile, handle, profile->info->stride)->action != P4_NO_ACTION;
}

static int group_valid(const p4_profile *profile, uint32_t handle)
{
    return handle < profile->n_groups && profile->groups[handle].used;
}

static int check_aim(p4_switch *sw, const p4_table_info *info, const p4_aim *aim, uint32_t *action)
{
    if (info->profile < 0) {
        if (aim->kind != P4_TO_ACTION)
            return p4_fail(sw, P4_INVALID, "table %s: has no action profile; expected an action", info->name);
        return action_of(sw, info->name, info->actions, info->n_actions, aim, action);
    }
    const p4_profile *profile = &sw->profiles[info->profile];
    *action = 0;
    if (aim->kind == P4_TO_ACTION)
        return p4_fail(sw, P4_INVALID, "table %s: expected a member or group of %s", info->name, profile->info->name);
    if (aim->kind == P4_TO_GROUP && !profile->info->with_selector)
        return p4_fail(sw, P4_INVALID, "%s has no selector: expected a member", profile->info->name);
    if (aim->kind == P4_TO_MEMBER ? !member_valid(profile, aim->index) : !group_valid(profile, aim->index))
        return p4_fail(sw, P4_INVALID, "%s: no %s %u", profile->info->name,
                       aim->kind == P4_TO_MEMBER ? "member" : "group", aim->index);
    return P4_OK;
}

static uint8_t *entry_data(const p4_table_info *info, p4_entry *e) { return (uint8_t *)e + info->data_offset; }

static void target_count(p4_switch *sw, const p4_table_info *info, const p4_target *target, int by)
{
    p4_profile *profile = &sw->profiles[info->profile];
    if (target->group)
        profile->groups[target->index].references += (uint32_t)by;
    else
        p4_member_at(profile, target->index, profile->info->stride)->references += (uint32_t)by;
}

/* Writes a checked aim into an entry whose previous target, if any, has been released. */
static void apply_aim(p4_switch *sw, const p4_table_info *info, p4_entry *e, const p4_aim *aim, uint32_t action)
{
    e->action = (uint16_t)action;
    if (info->profile < 0) {
        store_args(sw, entry_data(info, e), action, aim->args);
    } else {
        p4_target target = {aim->kind == P4_TO_GROUP, aim->index};
        memcpy(entry_data(info, e), &target, sizeof target);
        target_count(sw, info, &target, 1);
    }
}

static void release_aim(p4_switch *sw, const p4_table_info *info, p4_entry *e)
{
    if (info->profile >= 0) {
        p4_target target;
        memcpy(&target, entry_data(info, e), sizeof target);
        target_count(sw, info, &target, -1);
    }
}

/* --- entries ------------------------------------------------------------------------------------------------------------------ */

/* The place of an entry in the order: by priority, then by handle. */
static uint32_t order_place(const p4_table *t, const p4_table_control *c, int32_t priority, uint32_t handle)
{
    uint32_t low = 0, high = t->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        uint32_t other = p4_entry_at(t, middle, c->info->stride)->handle;
        if (c->handles[other].priority > priority || (c->handles[other].priority == priority && other < handle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes room at a place of an ordered table (by 1), or closes it (by -1). */
static void shift_order(p4_table *t, p4_table_control *c, uint32_t place, int by)
{
    uint32_t stride = c->info->stride, from = by > 0 ? place : place + 1;
    memmove(t->entries + (size_t)(from + (uint32_t)by) * stride, t->entries + (size_t)from * stride,
            (size_t)(t->count - from) * stride);
    for (uint32_t i = from; i < t->count; i++)
        c->handles[p4_entry_at(t, i + (uint32_t)by, stride)->handle].place = i + (uint32_t)by;
}

static int exists(const p4_table *t, const p4_table_control *c, const uint64_t *words, const uint64_t *masks,
                  uint32_t prefix, int32_t priority)
{
    int n = c->info->key_words;
    if (!t->count)
        return 0;
    if (p4_is_hashed(c->info))
        return p4_find_hashed(t, words, n, c->info->stride, prefix) != NULL;
    for (uint32_t i = 0; i < t->count; i++) {
        const p4_entry *e = p4_entry_at(t, i, c->info->stride);
        if (c->handles[e->handle].priority == priority && p4_words_equal(e->key, words, n) &&
            p4_words_equal(e->key + n, masks, n))
            return 1;
    }
    return 0;
}

int p4_table_add(p4_switch *sw, uint32_t table, const p4_match *key, size_t n_keys, int32_t priority, const p4_aim *aim,
                 uint32_t *handle)
{
    p4_table *t = &sw->tables[table];
    p4_table_control *c = &sw->controls[table];
    const p4_table_info *info = c->info;
    uint64_t words[info->key_words + 1], masks[info->key_words + 1];
    uint32_t prefix, action;
    int status;

    if (info->kind == P4_TABLE_KEYLESS)
        return p4_fail(sw, P4_INVALID, "table %s has no key, so it takes no entries", info->name);
    if ((status = pack_key(sw, info->name, info->keys, info->n_keys, info->key_words, key, n_keys, words, masks,
                           &prefix)))
        return status;
    if (info->kind != P4_TABLE_LPM)
        prefix = 0;
    if (info->kind != P4_TABLE_ORDERED)
        priority = 0;
    if ((status = check_aim(sw, info, aim, &action)))
        return status;
    if (exists(t, c, words, masks, prefix, priority))
        return p4_fail(sw, P4_INVALID, "table %s: there is an entry with this key already", info->name);
    if (t->count >= info->max_size)
        return p4_fail(sw, P4_FULL, "table %s is full (%u entries)", info->name, info->max_size);
    /* Half of a hash table stays empty: probes are short. */
    if ((p4_is_hashed(info) ? 2 * (uint64_t)(t->count + 1) : (uint64_t)t->count + 1) > c->capacity &&
        (status = grow(sw, t)))
        return status;
    if ((status = handle_new(sw, c, handle)))
        return status;
    if (info->kind == P4_TABLE_LPM && (status = prefix_use(sw, t, prefix, masks))) {
        handle_free(c, *handle);
        return status;
    }

    uint64_t room[info->stride / sizeof(uint64_t)];
    p4_entry *e = (p4_entry *)room;
    memset(room, 0, info->stride);
    e->prefix = (uint16_t)prefix;
    e->handle = *handle;
    memcpy(e->key, words, info->key_words * sizeof *words);
    if (info->kind == P4_TABLE_ORDERED)
        memcpy(e->key + info->key_words, masks, info->key_words * sizeof *masks);
    apply_aim(sw, info, e, aim, action);
    uint32_t place;
    if (p4_is_hashed(info)) {
        place = free_place(t, info, e);
    } else {
        place = order_place(t, c, priority, *handle);
        shift_order(t, c, place, 1);
    }
    c->handles[*handle].priority = priority;
    put(t, c, place, e);
    t->count++;
    return P4_OK;
}

p4_entry *p4_table_entry(p4_switch *sw, uint32_t table, uint32_t handle)
{
    const p4_table_control *c = &sw->controls[table];
    if (handle < c->n_handles && c->handles[handle].place != P4_NOWHERE)
        return p4_entry_at(&sw->tables[table], c->handles[handle].place, c->info->stride);
    p4_fail(sw, P4_INVALID, "table %s: no entry %u", c->info->name, handle);
    return NULL;
}

int p4_table_modify(p4_switch *sw, uint32_t table, uint32_t handle, const p4_aim *aim)
{
    const p4_table_info *info = sw->controls[table].info;
    uint32_t action;
    p4_entry *e = p4_table_entry(sw, table, handle);
    if (!e)
        return P4_INVALID;
    int status = check_aim(sw, info, aim, &action);
    if (status)
        return status;
    release_aim(sw, info, e);
    apply_aim(sw, info, e, aim, action);
    return P4_OK;
}

int p4_table_delete(p4_switch *sw, uint32_t table, uint32_t handle)
{
    p4_table *t = &sw->tables[table];
    p4_table_control *c = &sw->controls[table];
    p4_entry *e = p4_table_entry(sw, table, handle);
    if (!e)
        return P4_INVALID;
    uint32_t place = c->handles[handle].place, prefix = e->prefix;
    release_aim(sw, c->info, e);
    if (p4_is_hashed(c->info)) {
        close_hole(t, c, place);
        if (c->info->kind == P4_TABLE_LPM)
            prefix_release(t, c, prefix);
    } else {
        shift_order(t, c, place, -1);
    }
    handle_free(c, handle);
    t->count--;
    return P4_OK;
}

int p4_table_clear(p4_switch *sw, uint32_t table)
{
    p4_table *t = &sw->tables[table];
    p4_table_control *c = &sw->controls[table];
    for (uint32_t i = 0; i < c->n_handles; i++)
        if (c->handles[i].place != P4_NOWHERE)
            release_aim(sw, c->info, p4_entry_at(t, c->handles[i].place, c->info->stride));
    if (p4_is_hashed(c->info) && t->entries)
        mark_free(t->entries, c->info->stride, 0, c->capacity);
    t->count = 0;
    t->lengths = 0;
    c->n_prefixes = 0;
    c->n_handles = 0;
    c->free_handle = -1;
    return P4_OK;
}

/* --- default entries ------------------------------------------------------------------------------------------------------------- */

static p4_fallback *fallback_of(p4_switch *sw, const p4_table_info *info)
{
    return (p4_fallback *)(void *)(sw->fallbacks + info->fallback_offset);
}

static void program_default(p4_switch *sw, uint32_t table)
{
    const p4_table_info *info = sw->controls[table].info;
    p4_fallback *fallback = fallback_of(sw, info);
    if (sw->tables[table].default_target_set)
        target_count(sw, info, &sw->controls[table].default_target, -1);
    sw->tables[table].default_target_set = 0;
    fallback->action = info->default_action;
    if (info->default_action != P4_NO_ACTION) {
        const p4_action_info *action = &sw->program->actions[info->default_action];
        const uint8_t *arg = info->default_args;
        for (uint32_t p = 0; p < action->n_params; p++) {
            p4_store((uint8_t *)fallback->data + action->params[p].offset, action->params[p].width, arg);
            arg += byte_width(action->params[p].width);
        }
    }
}

int p4_table_set_default(p4_switch *sw, uint32_t table, const p4_aim *aim)
{
    p4_table *t = &sw->tables[table];
    p4_table_control *c = &sw->controls[table];
    const p4_table_info *info = c->info;
    uint32_t action;
    int status;
    if (!aim) {
        program_default(sw, table);
        return P4_OK;
    }
    if ((status = check_aim(sw, info, aim, &action)))
        return status;
    if (info->default_constant == 2 || (info->default_constant == 1 && action != info->default_action))
        return p4_fail(sw, P4_INVALID, "table %s: its default action is a constant of the program", info->name);
    if (info->profile < 0) {
        p4_fallback *fallback = fallback_of(sw, info);
        fallback->action = action;
        store_args(sw, (uint8_t *)fallback->data, action, aim->args);
        return P4_OK;
    }
    p4_target target = {aim->kind == P4_TO_GROUP, aim->index};
    target_count(sw, info, &target, 1);
    if (t->default_target_set)
        target_count(sw, info, &c->default_target, -1);
    c->default_target = target;
    t->default_target_set = 1;
    return P4_OK;
}

/* --- life of a table ----------------------------------------------------------------------------------------------------------------- */

/* The entries the program itself has. */
static int add_own(p4_switch *sw, uint32_t table)
{
    const p4_table_info *info = sw->controls[table].info;
    for (uint32_t i = 0; i < info->n_entries; i++) {
        const p4_entry_info *own = &info->entries[i];
        const p4_action_info *action = &sw->program->actions[own->action];
        p4_match key[info->n_keys + 1];
        p4_bytes args[action->n_params + 1];
        const uint8_t *value = own->values, *mask = own->masks, *arg = own->args;
        for (uint32_t k = 0; k < info->n_keys; k++) {
            uint32_t n = byte_width(info->keys[k].width);
            key[k].value = (p4_bytes){value, n};
            key[k].mask = (p4_bytes){mask, n};
            key[k].prefix = own->prefixes[k];
            value += n;
            mask += n;
        }
        for (uint32_t p = 0; p < action->n_params; p++) {
            uint32_t n = byte_width(action->params[p].width);
            args[p] = (p4_bytes){arg, n};
            arg += n;
        }
        p4_aim aim = {P4_TO_ACTION, action->name, 0, args, action->n_params};
        uint32_t handle;
        int status = p4_table_add(sw, table, key, info->n_keys, own->priority, &aim, &handle);
        if (status)
            return status;
    }
    return P4_OK;
}

int p4_table_init(p4_switch *sw, uint32_t table)
{
    sw->controls[table].info = &sw->program->tables[table];
    program_default(sw, table);
    p4_table_clear(sw, table);
    return add_own(sw, table);
}

void p4_table_destroy(p4_switch *sw, uint32_t table)
{
    free(sw->tables[table].entries);
    free(sw->controls[table].handles);
    free(sw->controls[table].prefixes);
}

p4_counter *p4_entry_counter(const p4_table_info *info, p4_entry *e)
{
    return (p4_counter *)(void *)((uint8_t *)e + info->data_offset - (info->with_last_hit ? sizeof(p4_tick) : 0) -
                                  sizeof(p4_counter));
}

p4_tick *p4_entry_last_hit(const p4_table_info *info, p4_entry *e)
{
    return (p4_tick *)(void *)((uint8_t *)e + info->data_offset - sizeof(p4_tick));
}

/* --- action profiles --------------------------------------------------------------------------------------------------------------------- */

int p4_member_add(p4_switch *sw, uint32_t index, const p4_aim *aim, uint32_t *handle)
{
    p4_profile *profile = &sw->profiles[index];
    const p4_profile_info *info = profile->info;
    uint32_t action, at = 0;
    int status = action_of(sw, info->name, info->actions, info->n_actions, aim, &action);
    if (status)
        return status;
    while (at < profile->n_members && member_valid(profile, at))
        at++;
    if (info->max_size && at >= info->max_size)
        return p4_fail(sw, P4_FULL, "%s is full (%u members)", info->name, info->max_size);
    if (at == profile->n_members) {
        uint32_t n = at ? 2 * at : 8;
        uint8_t *members = allocate_lines((size_t)n * info->stride);
        if (!members)
            return p4_fail(sw, P4_MEMORY, "%s: out of memory", info->name);
        if (at)
            memcpy(members, profile->members, (size_t)at * info->stride);
        free(profile->members);
        profile->members = members;
        for (uint32_t i = at; i < n; i++)
            p4_member_at(profile, i, info->stride)->action = P4_NO_ACTION;
        profile->n_members = n;
    }
    p4_member *m = p4_member_at(profile, at, info->stride);
    memset(m, 0, info->stride);
    m->action = action;
    store_args(sw, m->data, action, aim->args);
    *handle = at;
    return P4_OK;
}

int p4_member_modify(p4_switch *sw, uint32_t index, uint32_t handle, const p4_aim *aim)
{
    p4_profile *profile = &sw->profiles[index];
    uint32_t action;
    if (!member_valid(profile, handle))
        return p4_fail(sw, P4_INVALID, "%s: no member %u", profile->info->name, handle);
    int status = action_of(sw, profile->info->name, profile->info->actions, profile->info->n_actions, aim, &action);
    if (status)
        return status;
    p4_member *m = p4_member_at(profile, handle, profile->info->stride);
    m->action = action;
    store_args(sw, m->data, action, aim->args);
    return P4_OK;
}

int p4_member_delete(p4_switch *sw, uint32_t index, uint32_t handle)
{
    p4_profile *profile = &sw->profiles[index];
    if (!member_valid(profile, handle))
        return p4_fail(sw, P4_INVALID, "%s: no member %u", profile->info->name, handle);
    p4_member *m = p4_member_at(profile, handle, profile->info->stride);
    if (m->references)
        return p4_fail(sw, P4_INVALID, "%s: member %u is in use", profile->info->name, handle);
    m->action = P4_NO_ACTION;
    return P4_OK;
}

int p4_group_add(p4_switch *sw, uint32_t index, uint32_t *handle)
{
    p4_profile *profile = &sw->profiles[index];
    uint32_t at = 0;
    if (!profile->info->with_selector)
        return p4_fail(sw, P4_INVALID, "%s has no selector, so it has no groups", profile->info->name);
    while (at < profile->n_groups && profile->groups[at].used)
        at++;
    if (at == profile->n_groups) {
        uint32_t n = at ? 2 * at : 8;
        p4_members *groups = allocate_lines(n * sizeof *groups);
        if (!groups)
            return p4_fail(sw, P4_MEMORY, "%s: out of memory", profile->info->name);
        if (at)
            memcpy(groups, profile->groups, at * sizeof *groups);
        memset(groups + at, 0, (n - at) * sizeof *groups);
        free(profile->groups);
        profile->groups = groups;
        profile->n_groups = n;
    }
    profile->groups[at].used = 1;
    *handle = at;
    return P4_OK;
}

static int by_handle(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static const uint32_t *members_of(const p4_members *group)
{
    return group->count <= P4_FEW ? group->few : group->many;
}

static void members_count(p4_profile *profile, const p4_members *group, int by)
{
    for (uint32_t i = 0; i < group->count; i++)
        p4_member_at(profile, members_of(group)[i], profile->info->stride)->references += (uint32_t)by;
}

/* BMv2 numbers the members of a group by ascending handle: the hash picks the same one here. */
int p4_group_set(p4_switch *sw, uint32_t index, uint32_t handle, const uint32_t *members, size_t count)
{
    p4_profile *profile = &sw->profiles[index];
    if (!group_valid(profile, handle))
        return p4_fail(sw, P4_INVALID, "%s: no group %u", profile->info->name, handle);
    if (count > UINT16_MAX)
        return p4_fail(sw, P4_FULL, "%s: a group has at most %u members", profile->info->name, UINT16_MAX);
    for (size_t i = 0; i < count; i++)
        if (!member_valid(profile, members[i]))
            return p4_fail(sw, P4_INVALID, "%s: no member %u", profile->info->name, members[i]);
    p4_members *group = &profile->groups[handle];
    uint32_t *many = NULL;
    if (count > P4_FEW && !(many = malloc(count * sizeof *many)))
        return p4_fail(sw, P4_MEMORY, "%s: out of memory", profile->info->name);
    members_count(profile, group, -1);
    free(group->many);
    group->many = many;
    group->count = (uint32_t)count;
    uint32_t *list = many ? many : group->few;
    if (count)
        memcpy(list, members, count * sizeof *list);
    qsort(list, count, sizeof *list, by_handle);
    members_count(profile, group, 1);
    return P4_OK;
}

int p4_group_delete(p4_switch *sw, uint32_t index, uint32_t handle)
{
    p4_profile *profile = &sw->profiles[index];
    if (!group_valid(profile, handle))
        return p4_fail(sw, P4_INVALID, "%s: no group %u", profile->info->name, handle);
    p4_members *group = &profile->groups[handle];
    if (group->references)
        return p4_fail(sw, P4_INVALID, "%s: group %u is in use", profile->info->name, handle);
    members_count(profile, group, -1);
    free(group->many);
    memset(group, 0, sizeof *group);
    return P4_OK;
}

void p4_profile_destroy(p4_profile *profile)
{
    for (uint32_t i = 0; i < profile->n_groups; i++)
        free(profile->groups[i].many);
    free(profile->groups);
    free(profile->members);
    profile->groups = NULL;
    profile->members = NULL;
    profile->n_groups = profile->n_members = 0;
}

/* --- parser value sets ----------------------------------------------------------------------------------------------------------------------- */

int p4_vset_set(p4_switch *sw, uint32_t index, const p4_match *keys, size_t n_members)
{
    p4_vset *set = &sw->vsets[index];
    const p4_vset_info *info = set->info;
    uint32_t n = info->key_words, prefix;
    uint64_t *words = calloc(n_members * 2 * n + 1, sizeof *words);
    if (!words)
        return p4_fail(sw, P4_MEMORY, "%s: out of memory", info->name);
    for (size_t i = 0; i < n_members; i++) {
        int status = pack_key(sw, info->name, info->keys, info->n_keys, n, keys + i * info->n_keys, info->n_keys,
                              words + i * 2 * n, words + i * 2 * n + n, &prefix);
        if (status) {
            free(words);
            return status;
        }
    }
    free(set->words);
    set->words = words;
    set->count = (uint32_t)n_members;
    return P4_OK;
}
