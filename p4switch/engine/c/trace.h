/* Events that a pipeline built with P4_TRACE reports about its packets, and its counts of passed points
 * (p4switch.engine.points).
 *
 * Every generated pipeline includes it once, after its packet struct and, if it is built for tracing, its cells: one
 * for each metadata field and packet header. Without P4_TRACE there are no cells, and all macros are empty.
 */
#ifdef P4_TRACE

#define HEARD(sw) ((sw)->env.log || (sw)->env.trace)

static void trace(p4_switch *sw, const phv *p, p4_trace_kind kind, uint32_t point, int64_t value, int64_t extra,
                  const void *data, size_t size)
{
    if (sw->env.trace)
        sw->env.trace(sw->env.ctx, &(p4_trace_event){sw->pipe, kind, p->base.tag, p->number, p->copy, point,
                                                     (uint32_t)size, p->now, value, extra, data});
}

/* The number of a frame that has just been received, or of a packet that a timer has just made: how many of both the
 * switch had before it. */
static uint32_t frame_number(const p4_switch *sw)
{
    uint64_t before = sw->counts.received + sw->timed;
    for (uint32_t i = 0; sw->pipes && i < sw->pipes->count; i++)
        before += i == sw->pipe ? 0 : sw->pipes->list[i]->counts.received + sw->pipes->list[i]->timed;
    return (uint32_t)before - 1;
}

/* Makes the present state of the packet the reference for later changes. */
static void note(phv *p)
{
    p->seen.m = p->m;
    memcpy(p->seen.valid, p->valid, sizeof p->valid);
    memcpy(p->seen.varbytes, p->varbytes, sizeof p->varbytes);
    memcpy(p->seen.H, p->H, sizeof p->H);
}

/* Reports the changes of the packet: for each cell a p4_trace_change, then its bytes before and after. */
static void trace_changes(p4_switch *sw, phv *p, p4_trace_kind kind, uint32_t point)
{
    static uint8_t changes[CHANGES_BYTES];
    size_t size = 0;
    if (!sw->env.trace)
        return;
    for (uint32_t i = 0; i < N_CELLS; i++) {
        const trace_cell *cell = &cells[i];
        const uint8_t *now = (const uint8_t *)p + cell->now, *before = (const uint8_t *)p + cell->before;
        p4_trace_change change = {.cell = i, .was_valid = 1, .is_valid = 1};
        if (cell->slot >= 0) {
            change.was_valid = p->seen.valid[cell->slot];
            change.is_valid = p->valid[cell->slot];
            change.varbytes_before = p->seen.varbytes[cell->slot];
            change.varbytes_now = p->varbytes[cell->slot];
        }
        if (change.was_valid == change.is_valid && !memcmp(now, before, cell->size))
            continue;
        memcpy(changes + size, &change, sizeof change);
        memcpy(changes + size + sizeof change, before, cell->size);
        memcpy(changes + size + sizeof change + cell->size, now, cell->size);
        size += sizeof change + 2 * cell->size;
    }
    note(p);
    trace(sw, p, kind, point, 0, 0, changes, size);
}

/* Reports the key that was looked up, then the key of the matching entry with its masks, if there is one. */
static __attribute__((unused)) void trace_table(p4_switch *sw, const phv *p, uint32_t point, uint32_t table,
                                                const uint64_t *key, int words, const p4_entry *e, int masks)
{
    uint64_t data[3 * 256];
    size_t size = (size_t)words * sizeof *key;
    if (!sw->env.trace)
        return;
    if (words)
        memcpy(data, key, size);
    if (e) {
        memcpy((uint8_t *)data + size, e->key, masks ? 2 * size : size);
        size += masks ? 2 * size : size;
    }
    int64_t order = !e ? 0 : masks ? sw->controls[table].handles[e->handle].priority : e->prefix;
    trace(sw, p, P4_TRACE_TABLE, point, e ? (int64_t)e->handle : -1, order, data, size);
}

#define TRACE(kind, point, value, extra, data, size) trace(sw, p, kind, point, value, extra, data, size)
#define TRACE_TABLE(point, table, key, words, e, masks) trace_table(sw, p, point, table, key, words, e, masks)
#define CHANGES(kind, point) trace_changes(sw, p, kind, point)
#define NOTE(packet) note(packet)
#define PASS(point) ((void)sw->passed[point]++)
#define PASS_ENTRY(e, count, first) ((e) && (e)->handle < (count) ? (void)PASS((first) + (e)->handle) : (void)0)
#define NUMBER(packet, number_, copy_) ((packet)->number = (number_), (packet)->copy = (copy_))
#define NEW_COPY(packet) ((packet)->copy = ++(packet)->family->copies)

#else

#define HEARD(sw) ((sw)->env.log)
#define TRACE(kind, point, value, extra, data, size) ((void)0)
#define NOTE(packet) ((void)0)
#define NUMBER(packet, number_, copy_) ((void)0)
#define NEW_COPY(packet) ((void)0)

#endif
