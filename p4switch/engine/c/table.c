/* Entries and default actions of tables, and the creation and removal of tables. */
#include "control.h"

#include <stdlib.h>

/* The position of an entry in the order of priority, then handle. */
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

/* Makes room at a place of an ordered table (by 1), or removes a place (by -1). */
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
    if ((status = p4_pack_key(sw, info->name, info->keys, info->n_keys, info->key_words, key, n_keys, words, masks,
                           &prefix)))
        return status;
    if (info->kind != P4_TABLE_LPM)
        prefix = 0;
    if (info->kind != P4_TABLE_ORDERED)
        priority = 0;
    if ((status = p4_check_aim(sw, info, aim, &action)))
        return status;
    if (exists(t, c, words, masks, prefix, priority))
        return p4_fail(sw, P4_INVALID, "table %s: there is an entry with this key already", info->name);
    if (t->count >= info->max_size)
        return p4_fail(sw, P4_FULL, "table %s is full (%u entries)", info->name, info->max_size);
    /* Half of a hash table stays empty, so that probe sequences are short. */
    if ((p4_is_hashed(info) ? 2 * (uint64_t)(t->count + 1) : (uint64_t)t->count + 1) > c->capacity &&
        (status = p4_table_grow(sw, t)))
        return status;
    if ((status = p4_handle_new(sw, c, handle)))
        return status;
    if (info->kind == P4_TABLE_LPM && (status = p4_prefix_use(sw, t, prefix, masks))) {
        p4_handle_free(c, *handle);
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
    p4_apply_aim(sw, info, e, aim, action);
    uint32_t place;
    if (p4_is_hashed(info)) {
        place = p4_free_place(t, info, e);
    } else {
        place = order_place(t, c, priority, *handle);
        shift_order(t, c, place, 1);
    }
    c->handles[*handle].priority = priority;
    p4_put_entry(t, c, place, e);
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
    int status = p4_check_aim(sw, info, aim, &action);
    if (status)
        return status;
    p4_release_aim(sw, info, e);
    p4_apply_aim(sw, info, e, aim, action);
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
    p4_release_aim(sw, c->info, e);
    if (p4_is_hashed(c->info)) {
        p4_close_hole(t, c, place);
        if (c->info->kind == P4_TABLE_LPM)
            p4_prefix_release(t, c, prefix);
    } else {
        shift_order(t, c, place, -1);
    }
    p4_handle_free(c, handle);
    t->count--;
    return P4_OK;
}

int p4_table_clear(p4_switch *sw, uint32_t table)
{
    p4_table *t = &sw->tables[table];
    p4_table_control *c = &sw->controls[table];
    for (uint32_t i = 0; i < c->n_handles; i++)
        if (c->handles[i].place != P4_NOWHERE)
            p4_release_aim(sw, c->info, p4_entry_at(t, c->handles[i].place, c->info->stride));
    if (p4_is_hashed(c->info) && t->entries)
        p4_mark_free(t->entries, c->info->stride, 0, c->capacity);
    t->count = 0;
    t->lengths = 0;
    c->n_prefixes = 0;
    c->n_handles = 0;
    c->free_handle = -1;
    return P4_OK;
}

/* --- default entries ------------------------------------------------------------------------------------------------ */

static p4_fallback *fallback_of(p4_switch *sw, const p4_table_info *info)
{
    return (p4_fallback *)(void *)(sw->fallbacks + info->fallback_offset);
}

static void program_default(p4_switch *sw, uint32_t table)
{
    const p4_table_info *info = sw->controls[table].info;
    p4_fallback *fallback = fallback_of(sw, info);
    if (sw->tables[table].default_target_set)
        p4_target_count(sw, info, &sw->controls[table].default_target, -1);
    sw->tables[table].default_target_set = 0;
    fallback->action = info->default_action;
    if (info->default_action != P4_NO_ACTION) {
        const p4_action_info *action = &sw->program->actions[info->default_action];
        const uint8_t *arg = info->default_args;
        for (uint32_t p = 0; p < action->n_params; p++) {
            p4_store((uint8_t *)fallback->data + action->params[p].offset, action->params[p].width, arg);
            arg += p4_byte_width(action->params[p].width);
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
    if ((status = p4_check_aim(sw, info, aim, &action)))
        return status;
    if (info->default_constant == 2 || (info->default_constant == 1 && action != info->default_action))
        return p4_fail(sw, P4_INVALID, "table %s: its default action is a constant of the program", info->name);
    if (info->profile < 0) {
        p4_fallback *fallback = fallback_of(sw, info);
        fallback->action = action;
        p4_store_args(sw, (uint8_t *)fallback->data, action, aim->args);
        return P4_OK;
    }
    p4_target target = {aim->kind == P4_TO_GROUP, aim->index};
    p4_target_count(sw, info, &target, 1);
    if (t->default_target_set)
        p4_target_count(sw, info, &c->default_target, -1);
    c->default_target = target;
    t->default_target_set = 1;
    return P4_OK;
}

/* --- life of a table ------------------------------------------------------------------------------------------------ */

/* The entries that the program itself defines. */
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
            uint32_t n = p4_byte_width(info->keys[k].width);
            key[k].value = (p4_bytes){value, n};
            key[k].mask = (p4_bytes){mask, n};
            key[k].prefix = own->prefixes[k];
            value += n;
            mask += n;
        }
        for (uint32_t p = 0; p < action->n_params; p++) {
            uint32_t n = p4_byte_width(action->params[p].width);
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
