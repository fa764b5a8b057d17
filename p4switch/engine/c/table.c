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

/* --- hash slots ------------------------------------------------------------------------------------------------------ */

static uint32_t entry_hash(const p4_table *t, const p4_entry *e)
{
    return p4_hash(e->key, t->info->key_words, e->prefix);
}

static p4_entry *entry_at(const p4_table *t, uint32_t index) { return p4_entry_at(t, index, t->info->stride); }

static void slot_insert(p4_table *t, uint32_t index)
{
    uint32_t h = entry_hash(t, entry_at(t, index));
    uint32_t at = h >> t->slot_shift;
    while (t->slots[at])
        at = (at + 1) & t->slot_mask;
    t->slots[at] = (uint64_t)h << 32 | (index + 1);
}

static void slot_remove(p4_table *t, uint32_t index)
{
    uint32_t hole = entry_hash(t, entry_at(t, index)) >> t->slot_shift;
    while ((uint32_t)t->slots[hole] != index + 1)
        hole = (hole + 1) & t->slot_mask;
    for (uint32_t at = hole;;) { /* moves back whatever probing would no longer reach */
        at = (at + 1) & t->slot_mask;
        uint64_t slot = t->slots[at];
        if (!slot)
            break;
        uint32_t home = (uint32_t)(slot >> 32) >> t->slot_shift;
        if (((at - home) & t->slot_mask) >= ((at - hole) & t->slot_mask)) {
            t->slots[hole] = slot;
            hole = at;
        }
    }
    t->slots[hole] = 0;
}

static int slots_resize(p4_switch *sw, p4_table *t, uint32_t bits)
{
    uint64_t *slots = calloc((size_t)1 << bits, sizeof *slots);
    if (!slots)
        return p4_fail(sw, P4_MEMORY, "table %s: out of memory", t->info->name);
    free(t->slots);
    t->slots = slots;
    t->slot_mask = (uint32_t)((1ull << bits) - 1);
    t->slot_shift = 32 - bits;
    for (uint32_t i = 0; i < t->top; i++)
        if (entry_at(t, i)->used)
            slot_insert(t, i);
    return P4_OK;
}

static int is_hashed(const p4_table *t) { return t->info->kind == P4_TABLE_EXACT || t->info->kind == P4_TABLE_LPM; }

/* --- prefix lengths ---------------------------------------------------------------------------------------------------- */

static size_t prefix_stride(const p4_table *t)
{
    return sizeof(p4_prefix) + t->info->key_words * sizeof(uint64_t);
}

static p4_prefix *prefix_at(const p4_table *t, uint32_t i)
{
    return (p4_prefix *)(void *)(t->prefixes + i * prefix_stride(t));
}

static int prefix_use(p4_switch *sw, p4_table *t, uint32_t length, const uint64_t *mask)
{
    size_t stride = prefix_stride(t);
    uint32_t i = 0;
    while (i < t->n_prefixes && prefix_at(t, i)->length > length)
        i++;
    if (i == t->n_prefixes || prefix_at(t, i)->length != length) {
        uint8_t *grown = realloc(t->prefixes, (t->n_prefixes + 1) * stride);
        if (!grown)
            return p4_fail(sw, P4_MEMORY, "table %s: out of memory", t->info->name);
        t->prefixes = grown;
        memmove(grown + (i + 1) * stride, grown + i * stride, (t->n_prefixes - i) * stride);
        t->n_prefixes++;
        p4_prefix *p = prefix_at(t, i);
        p->length = length;
        p->count = 0;
        memcpy(p->mask, mask, t->info->key_words * sizeof *mask);
    }
    prefix_at(t, i)->count++;
    return P4_OK;
}

static void prefix_release(p4_table *t, uint32_t length)
{
    size_t stride = prefix_stride(t);
    uint32_t i = 0;
    while (prefix_at(t, i)->length != length)
        i++;
    if (--prefix_at(t, i)->count == 0) {
        memmove(t->prefixes + i * stride, t->prefixes + (i + 1) * stride, (t->n_prefixes - i - 1) * stride);
        t->n_prefixes--;
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

static int check_aim(p4_switch *sw, const p4_table *t, const p4_aim *aim, uint32_t *action)
{
    const p4_table_info *info = t->info;
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

static uint8_t *entry_data(const p4_table *t, p4_entry *e) { return (uint8_t *)e + t->info->data_offset; }

static void target_count(p4_switch *sw, const p4_table *t, const p4_target *target, int by)
{
    p4_profile *profile = &sw->profiles[t->info->profile];
    if (target->group)
        profile->groups[target->index].references += (uint32_t)by;
    else
        p4_member_at(profile, target->index, profile->info->stride)->references += (uint32_t)by;
}

/* Writes a checked aim into an entry whose previous target, if any, has been released. */
static void apply_aim(p4_switch *sw, const p4_table *t, p4_entry *e, const p4_aim *aim, uint32_t action)
{
    e->action = action;
    if (t->info->profile < 0) {
        store_args(sw, entry_data(t, e), action, aim->args);
    } else {
        p4_target target = {aim->kind == P4_TO_GROUP, aim->index};
        memcpy(entry_data(t, e), &target, sizeof target);
        target_count(sw, t, &target, 1);
    }
}

static void release_aim(p4_switch *sw, const p4_table *t, p4_entry *e)
{
    if (t->info->profile >= 0) {
        p4_target target;
        memcpy(&target, entry_data(t, e), sizeof target);
        target_count(sw, t, &target, -1);
    }
}

/* --- entries ------------------------------------------------------------------------------------------------------------------ */

static int grow(p4_switch *sw, p4_table *t)
{
    uint32_t capacity = t->capacity ? 2 * t->capacity : 8;
    uint8_t *entries = realloc(t->entries, (size_t)capacity * t->info->stride);
    if (!entries)
        return p4_fail(sw, P4_MEMORY, "table %s: out of memory", t->info->name);
    t->entries = entries;
    if (t->info->kind == P4_TABLE_ORDERED) {
        uint32_t *order = realloc(t->order, capacity * sizeof *order);
        if (!order)
            return p4_fail(sw, P4_MEMORY, "table %s: out of memory", t->info->name);
        t->order = order;
    }
    if (t->info->meter >= 0) {
        p4_meter *meters = realloc(sw->meters[t->info->meter], capacity * sizeof *meters);
        if (!meters)
            return p4_fail(sw, P4_MEMORY, "table %s: out of memory", t->info->name);
        sw->meters[t->info->meter] = meters;
    }
    t->capacity = capacity;
    return P4_OK;
}

/* The place of an entry in the order: by priority, then by handle. */
static uint32_t order_place(const p4_table *t, int32_t priority, uint32_t handle)
{
    uint32_t low = 0, high = t->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const p4_entry *e = entry_at(t, t->order[middle]);
        if (e->priority > priority || (e->priority == priority && t->order[middle] < handle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int exists(const p4_table *t, const uint64_t *words, const uint64_t *masks, uint32_t prefix, int32_t priority)
{
    int n = t->info->key_words;
    if (is_hashed(t))
        return p4_find_hashed(t, words, n, t->info->stride, prefix) != NULL;
    for (uint32_t i = 0; i < t->count; i++) {
        const p4_entry *e = entry_at(t, t->order[i]);
        if (e->priority == priority && p4_words_equal(e->key, words, n) && p4_words_equal(e->key + n, masks, n))
            return 1;
    }
    return 0;
}

static int add(p4_switch *sw, uint32_t table, const p4_match *key, size_t n_keys, int32_t priority, const p4_aim *aim,
               uint32_t *handle)
{
    p4_table *t = &sw->tables[table];
    const p4_table_info *info = t->info;
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
    if ((status = check_aim(sw, t, aim, &action)))
        return status;
    if (exists(t, words, masks, prefix, priority))
        return p4_fail(sw, P4_INVALID, "table %s: there is an entry with this key already", info->name);
    if (t->count >= info->max_size)
        return p4_fail(sw, P4_FULL, "table %s is full (%u entries)", info->name, info->max_size);
    if (t->free == UINT32_MAX && t->top == t->capacity && (status = grow(sw, t)))
        return status;
    if (is_hashed(t) && 2 * (uint64_t)(t->count + 1) > (uint64_t)t->slot_mask + 1) {
        if (t->slot_shift < 2)
            return p4_fail(sw, P4_FULL, "table %s is full", info->name);
        if ((status = slots_resize(sw, t, 34 - t->slot_shift)))
            return status;
    }
    if (info->kind == P4_TABLE_LPM && (status = prefix_use(sw, t, prefix, masks)))
        return status;

    uint32_t index = t->free != UINT32_MAX ? t->free : t->top++;
    p4_entry *e = entry_at(t, index);
    if (index == t->free)
        t->free = e->action;
    memset(e, 0, info->stride);
    e->priority = priority;
    e->prefix = prefix;
    e->used = 1;
    memcpy(e->key, words, info->key_words * sizeof *words);
    if (info->kind == P4_TABLE_ORDERED)
        memcpy(e->key + info->key_words, masks, info->key_words * sizeof *masks);
    apply_aim(sw, t, e, aim, action);
    if (info->meter >= 0)
        memset(&sw->meters[info->meter][index], 0, sizeof(p4_meter));
    if (is_hashed(t)) {
        slot_insert(t, index);
    } else {
        uint32_t place = order_place(t, priority, index);
        memmove(t->order + place + 1, t->order + place, (t->count - place) * sizeof *t->order);
        t->order[place] = index;
    }
    t->count++;
    *handle = index;
    return P4_OK;
}

int p4_table_add(p4_switch *sw, uint32_t table, const p4_match *key, size_t n_keys, int32_t priority, const p4_aim *aim,
                 uint32_t *handle)
{
    return add(sw, table, key, n_keys, priority, aim, handle);
}

p4_entry *p4_table_entry(p4_switch *sw, uint32_t table, uint32_t handle)
{
    p4_table *t = &sw->tables[table];
    if (handle < t->top && entry_at(t, handle)->used)
        return entry_at(t, handle);
    p4_fail(sw, P4_INVALID, "table %s: no entry %u", t->info->name, handle);
    return NULL;
}

int p4_table_modify(p4_switch *sw, uint32_t table, uint32_t handle, const p4_aim *aim)
{
    p4_table *t = &sw->tables[table];
    uint32_t action;
    p4_entry *e = p4_table_entry(sw, table, handle);
    if (!e)
        return P4_INVALID;
    int status = check_aim(sw, t, aim, &action);
    if (status)
        return status;
    release_aim(sw, t, e);
    apply_aim(sw, t, e, aim, action);
    return P4_OK;
}

static void delete_entry(p4_switch *sw, p4_table *t, uint32_t handle)
{
    p4_entry *e = entry_at(t, handle);
    release_aim(sw, t, e);
    if (is_hashed(t)) {
        slot_remove(t, handle);
        if (t->info->kind == P4_TABLE_LPM)
            prefix_release(t, e->prefix);
    } else {
        uint32_t place = order_place(t, e->priority, handle);
        memmove(t->order + place, t->order + place + 1, (t->count - place - 1) * sizeof *t->order);
    }
    e->used = 0;
    e->action = t->free;
    t->free = handle;
    t->count--;
}

int p4_table_delete(p4_switch *sw, uint32_t table, uint32_t handle)
{
    if (!p4_table_entry(sw, table, handle))
        return P4_INVALID;
    delete_entry(sw, &sw->tables[table], handle);
    return P4_OK;
}

static void clear(p4_switch *sw, p4_table *t)
{
    for (uint32_t i = 0; i < t->top; i++)
        if (entry_at(t, i)->used)
            delete_entry(sw, t, i);
    t->top = 0;
    t->free = UINT32_MAX;
}

int p4_table_clear(p4_switch *sw, uint32_t table)
{
    clear(sw, &sw->tables[table]);
    return P4_OK;
}

/* --- default entries ------------------------------------------------------------------------------------------------------------- */

static void program_default(p4_switch *sw, p4_table *t)
{
    const p4_table_info *info = t->info;
    if (t->default_target_set)
        target_count(sw, t, &t->default_target, -1);
    t->default_target_set = 0;
    t->fallback->action = info->default_action;
    if (info->default_action != P4_NO_ACTION) {
        const p4_action_info *action = &sw->program->actions[info->default_action];
        const uint8_t *arg = info->default_args;
        for (uint32_t p = 0; p < action->n_params; p++) {
            p4_store(entry_data(t, t->fallback) + action->params[p].offset, action->params[p].width, arg);
            arg += byte_width(action->params[p].width);
        }
    }
}

int p4_table_set_default(p4_switch *sw, uint32_t table, const p4_aim *aim)
{
    p4_table *t = &sw->tables[table];
    const p4_table_info *info = t->info;
    uint32_t action;
    int status;
    if (!aim) {
        program_default(sw, t);
        return P4_OK;
    }
    if ((status = check_aim(sw, t, aim, &action)))
        return status;
    if (info->default_constant == 2 || (info->default_constant == 1 && action != info->default_action))
        return p4_fail(sw, P4_INVALID, "table %s: its default action is a constant of the program", info->name);
    if (info->profile < 0) {
        t->fallback->action = action;
        store_args(sw, entry_data(t, t->fallback), action, aim->args);
        return P4_OK;
    }
    p4_target target = {aim->kind == P4_TO_GROUP, aim->index};
    target_count(sw, t, &target, 1);
    if (t->default_target_set)
        target_count(sw, t, &t->default_target, -1);
    t->default_target = target;
    t->default_target_set = 1;
    return P4_OK;
}

/* --- life of a table ----------------------------------------------------------------------------------------------------------------- */

/* The entries the program itself has. */
static int add_own(p4_switch *sw, uint32_t table)
{
    const p4_table_info *info = sw->tables[table].info;
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
        int status = add(sw, table, key, info->n_keys, own->priority, &aim, &handle);
        if (status)
            return status;
    }
    return P4_OK;
}

int p4_table_init(p4_switch *sw, uint32_t table)
{
    p4_table *t = &sw->tables[table];
    const p4_table_info *info = &sw->program->tables[table];
    t->info = info;
    t->free = UINT32_MAX;
    if (!t->fallback)
        t->fallback = calloc(1, info->data_offset + info->action_size + 8);
    if (!t->fallback)
        return p4_fail(sw, P4_MEMORY, "table %s: out of memory", info->name);
    program_default(sw, t);
    if (is_hashed(t) && !t->slots) {
        int status = slots_resize(sw, t, 2);
        if (status)
            return status;
    }
    clear(sw, t);
    return add_own(sw, table);
}

void p4_table_destroy(p4_table *t)
{
    free(t->entries);
    free(t->slots);
    free(t->order);
    free(t->prefixes);
    free(t->fallback);
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
        uint8_t *members = realloc(profile->members, (size_t)n * info->stride);
        if (!members)
            return p4_fail(sw, P4_MEMORY, "%s: out of memory", info->name);
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
        p4_members *groups = realloc(profile->groups, n * sizeof *groups);
        if (!groups)
            return p4_fail(sw, P4_MEMORY, "%s: out of memory", profile->info->name);
        profile->groups = groups;
        memset(groups + at, 0, (n - at) * sizeof *groups);
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

static void members_count(p4_profile *profile, const p4_members *group, int by)
{
    for (uint32_t i = 0; i < group->count; i++)
        p4_member_at(profile, group->list[i], profile->info->stride)->references += (uint32_t)by;
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
    uint32_t *list = malloc((count + 1) * sizeof *list);
    if (!list)
        return p4_fail(sw, P4_MEMORY, "%s: out of memory", profile->info->name);
    if (count)
        memcpy(list, members, count * sizeof *list);
    qsort(list, count, sizeof *list, by_handle);
    p4_members *group = &profile->groups[handle];
    members_count(profile, group, -1);
    free(group->list);
    group->list = list;
    group->count = (uint32_t)count;
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
    free(group->list);
    memset(group, 0, sizeof *group);
    return P4_OK;
}

void p4_profile_destroy(p4_profile *profile)
{
    for (uint32_t i = 0; i < profile->n_groups; i++)
        free(profile->groups[i].list);
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
