/* Processing of a packet by parser, tables and deparser that is the same for every program.
 *
 * Every generated pipeline includes it once, after its packet struct and the tables that describe it, so that their
 * contents are constants to the compiler.
 */

/* The result of a table lookup: the matching entry, or NULL, and what is to be done. */
typedef struct p4_applied {
    p4_entry *entry;
    const void *data; /* arguments of the action */
    uint32_t action;  /* P4_NO_ACTION: there is none */
    int64_t member;   /* member of the action profile; -1: none */
} p4_applied;

P4_INLINE p4_applied p4_default(const p4_switch *sw, uint32_t table, p4_entry *entry)
{
    const p4_fallback *fallback = (const p4_fallback *)(const void *)(sw->fallbacks + tables[table].fallback_offset);
    return (p4_applied){entry, fallback->data, fallback->action, -1};
}

P4_INLINE p4_applied p4_apply(const p4_switch *sw, uint32_t table, p4_entry *entry)
{
    if (P4_LIKELY(entry != NULL))
        return (p4_applied){entry, (const uint8_t *)entry + tables[table].data_offset, entry->action, -1};
    return p4_default(sw, table, NULL);
}

/* Lookup in a table with an action profile. `select` hashes the packet if an entry has a group; NULL: there are
 * none. */
P4_INLINE p4_applied p4_apply_member(p4_switch *sw, phv *p, uint32_t table, p4_entry *entry,
                                     uint64_t (*select)(p4_switch *, phv *))
{
    const p4_table_info *info = &tables[table];
    p4_target target;
    if (P4_LIKELY(entry != NULL))
        memcpy(&target, (const uint8_t *)entry + info->data_offset, sizeof target);
    else if (sw->tables[table].default_target_set)
        target = sw->controls[table].default_target;
    else
        return p4_default(sw, table, NULL);
    const p4_profile *profile = &sw->profiles[info->profile];
    uint32_t index = target.index;
    if (select && target.group) {
        const p4_members *group = &profile->groups[index];
        if (!group->count)
            return p4_default(sw, table, entry);
        index = p4_member_of(group, (uint32_t)select(sw, p));
    }
    const p4_member *member = p4_member_at(profile, index, profiles[info->profile].stride);
    return (p4_applied){entry, member->data, member->action, index};
}

P4_INLINE p4_counter *p4_count_entry(p4_entry *entry, uint32_t offset, uint32_t bytes)
{
    p4_counter *counter = (p4_counter *)(void *)((uint8_t *)entry + offset);
    counter->packets++;
    counter->bytes += bytes;
    return counter;
}

P4_INLINE void p4_note_hit(p4_entry *entry, uint32_t offset, p4_tick now)
{
    *(p4_tick *)(void *)((uint8_t *)entry + offset) = now;
}

/* --- parser and deparser ------------------------------------------------------------------------------------------- */

/* Moves `size` bytes of the packet to a header; returns 0 if the packet is too short. `have` of its `len` bytes are
 * present. */
P4_INLINE int p4_extract(uint8_t *to, const p4_frame *frame, uint32_t *at, uint32_t len, uint32_t have, uint32_t size)
{
    if (P4_LIKELY((uint64_t)*at + size <= have))
        memcpy(to, frame->data + *at, size);
    else if (size <= len - *at)
        p4_copy_padded(to, frame, *at, size);
    else
        return 0;
    *at += size;
    return 1;
}

/* The same for a packet with `front_len` bytes in front of its frame. */
P4_INLINE int p4_extract_behind(uint8_t *to, const uint8_t *front, uint32_t front_len, const p4_frame *frame, uint32_t *at,
                                uint32_t len, uint32_t have, uint32_t size)
{
    if (*at + size <= front_len)
        memcpy(to, front + *at, size);
    else if (P4_LIKELY(*at >= front_len && (uint64_t)*at - front_len + size <= have))
        memcpy(to, frame->data + (*at - front_len), size);
    else if (size <= len - *at)
        p4_copy_behind(to, front, front_len, frame, *at, size);
    else
        return 0;
    *at += size;
    return 1;
}

/* How far a parser has advanced in the frame when it is at `at` of a packet with bytes in front. */
P4_INLINE uint32_t p4_taken(uint32_t at, uint32_t front_len) { return at > front_len ? at - front_len : 0; }

static __attribute__((noinline, cold, unused)) void parser_error(P4_UNUSED p4_switch *sw, phv *p, uint32_t at, uint32_t error)
{
    p->error = error;
    TRACE(P4_TRACE_PARSER_ERROR, P4_NO_POINT, error, 0, NULL, 0);
    p->parsed = at;
}

/* Appends a header of fixed size if it is valid; returns the position of the next one. */
P4_INLINE uint8_t *p4_emit(const phv *p, uint8_t *to, uint32_t slot, uint32_t at, uint32_t size)
{
    if (!p->valid[slot])
        return to;
    memcpy(to, p->H + at, size);
    return to + size;
}
