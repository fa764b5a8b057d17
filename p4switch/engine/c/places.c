/* Places of a table's entries, the handles that name them, and the prefix lengths in use. */
#include "control.h"

#include <stdlib.h>

void *p4_allocate_lines(size_t size)
{
    return aligned_alloc(P4_CACHE_LINE, (size + P4_CACHE_LINE - 1) / P4_CACHE_LINE * P4_CACHE_LINE);
}

void p4_mark_free(uint8_t *entries, uint32_t stride, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        ((p4_entry *)(void *)(entries + (size_t)i * stride))->action = P4_FREE;
}

void p4_put_entry(const p4_table *t, const p4_table_control *c, uint32_t place, const p4_entry *e)
{
    memmove(p4_entry_at(t, place, c->info->stride), e, c->info->stride);
    c->handles[e->handle].place = place;
}

uint32_t p4_free_place(const p4_table *t, const p4_table_info *info, const p4_entry *e)
{
    uint32_t at = p4_hash(e->key, info->key_words, e->prefix) >> t->slot_shift;
    while (p4_entry_at(t, at, info->stride)->action != P4_FREE)
        at = (at + 1) & t->slot_mask;
    return at;
}

int p4_table_grow(p4_switch *sw, p4_table *t)
{
    p4_table_control *c = p4_control_of(sw, t);
    const p4_table_info *info = c->info;
    uint32_t capacity = c->capacity ? 2 * c->capacity : 4;
    uint8_t *entries = capacity > 1u << 30 ? NULL : p4_allocate_lines((size_t)capacity * info->stride);
    if (!entries)
        return p4_fail(sw, P4_MEMORY, "table %s: out of memory", info->name);
    p4_table old = *t;
    t->entries = entries;
    if (!p4_is_hashed(info)) {
        if (t->count)
            memcpy(entries, old.entries, (size_t)t->count * info->stride);
    } else {
        p4_mark_free(entries, info->stride, 0, capacity);
        t->slot_mask = capacity - 1;
        t->slot_shift = (uint32_t)__builtin_clz(capacity) + 1;
        for (uint32_t i = 0; i < c->capacity; i++) {
            const p4_entry *e = p4_entry_at(&old, i, info->stride);
            if (e->action != P4_FREE)
                p4_put_entry(t, c, p4_free_place(t, info, e), e);
        }
    }
    free(old.entries);
    c->capacity = capacity;
    return P4_OK;
}

void p4_close_hole(p4_table *t, const p4_table_control *c, uint32_t hole)
{
    const p4_table_info *info = c->info;
    for (uint32_t at = hole;;) {
        at = (at + 1) & t->slot_mask;
        const p4_entry *e = p4_entry_at(t, at, info->stride);
        if (e->action == P4_FREE)
            break;
        uint32_t home = p4_hash(e->key, info->key_words, e->prefix) >> t->slot_shift;
        if (((at - home) & t->slot_mask) >= ((at - hole) & t->slot_mask)) {
            p4_put_entry(t, c, hole, e);
            hole = at;
        }
    }
    p4_entry_at(t, hole, info->stride)->action = P4_FREE;
}

/* --- handles ------------------------------------------------------------------------------------------------------- */

int p4_handle_new(p4_switch *sw, p4_table_control *c, uint32_t *handle)
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
    for (uint32_t i = 0; i < info->n_cells; i++)
        p4_cell_begin(sw, &info->cells[i], *handle);
    return P4_OK;
}

void p4_handle_free(p4_table_control *c, uint32_t handle)
{
    c->handles[handle] = (p4_handle){P4_NOWHERE, c->free_handle};
    c->free_handle = (int32_t)handle;
}

/* --- prefix lengths ------------------------------------------------------------------------------------------------ */

static size_t prefix_stride(const p4_table_control *c)
{
    return sizeof(p4_prefix) + c->info->key_words * sizeof(uint64_t);
}

static p4_prefix *prefix_at(const p4_table_control *c, uint32_t i)
{
    return (p4_prefix *)(void *)(c->prefixes + i * prefix_stride(c));
}

int p4_prefix_use(p4_switch *sw, p4_table *t, uint32_t length, const uint64_t *mask)
{
    p4_table_control *c = p4_control_of(sw, t);
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

void p4_prefix_release(p4_table *t, p4_table_control *c, uint32_t length)
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
