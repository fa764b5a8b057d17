/* A switch: its creation and removal, stateful objects, replication groups, and the functions of the seam. */
#include "control.h"

#include "process.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PREFETCH_BYTES 2048      /* maximum prefetched bytes of a table: the small ones fit */
#define PREFETCH_BLOCK_BYTES 256 /* prefetched bytes of the tables' heads, which follow the switch */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stored values are limbs of little-endian words"
#endif

int p4_fail(p4_switch *sw, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sw->error, sizeof sw->error, format, args);
    va_end(args);
    return status;
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

static void groups_clear(p4_groups *groups)
{
    for (uint32_t i = 0; i < groups->count; i++)
        free(groups->list[i]);
    free(groups->list);
    groups->list = NULL;
    groups->count = 0;
}

static uint8_t *cell_of(p4_switch *sw, const p4_register_info *info, uint32_t index)
{
    return sw->banks[info->bank] + (size_t)index * sw->program->banks[info->bank].stride + info->offset;
}

/* Initial values of registers that do not start with zeros. */
static void begin_registers(p4_switch *sw)
{
    for (uint32_t i = 0; i < sw->program->n_registers; i++) {
        const p4_register_info *info = &sw->program->registers[i];
        for (uint32_t index = 0; info->initial && index < info->size; index++)
            p4_store(cell_of(sw, info, index), info->width, info->initial);
    }
}

void p4_cell_begin(p4_switch *sw, const p4_cells_info *cells, uint32_t index)
{
    if (cells->in_register) {
        const p4_register_info *info = &sw->program->registers[cells->number];
        memset(cell_of(sw, info, index), 0, p4_storage(info->width));
        if (info->initial)
            p4_store(cell_of(sw, info, index), info->width, info->initial);
    } else {
        uint32_t stride = sw->program->objects[cells->number].stride;
        memset(sw->objects[cells->number] + (size_t)index * stride, 0, stride);
    }
}

static int allocate(p4_switch *sw)
{
    const p4_program *p = sw->program;
    /* One more than needed, so that no allocation has zero bytes. */
    sw->controls = calloc(p->n_tables + 1u, sizeof *sw->controls);
    sw->vsets = calloc(p->n_vsets + 1u, sizeof *sw->vsets);
    sw->passed = calloc(p->n_points + 1u, sizeof *sw->passed);
    sw->objects = calloc(p->n_objects + 1u, sizeof *sw->objects);
    sw->meters_more = calloc(p->n_meters + 1u, sizeof *sw->meters_more);
    if (!sw->controls || !sw->vsets || !sw->passed || !sw->objects || !sw->meters_more)
        return P4_MEMORY;
    for (uint32_t i = 0; i < p->n_objects; i++)
        if (!(sw->objects[i] = calloc(p->objects[i].size + 1u, p->objects[i].stride)))
            return P4_MEMORY;
    for (uint32_t i = 0; i < p->n_profiles; i++)
        sw->profiles[i].info = &p->profiles[i];
    for (uint32_t i = 0; i < p->n_vsets; i++)
        sw->vsets[i].info = &p->vsets[i];
    for (uint32_t i = 0; i < p->n_counters; i++)
        if (!(sw->counters[i] = calloc(p->counters[i].size + 1u, sizeof(p4_counter))))
            return P4_MEMORY;
    for (uint32_t i = 0; i < p->n_meters; i++)
        if (!(sw->meters[i] = calloc(p->meters[i].size + 1u, sizeof(p4_meter))))
            return P4_MEMORY;
    for (uint32_t i = 0; i < p->n_banks; i++)
        if (!(sw->banks[i] = calloc(p->banks[i].size + 1u, p->banks[i].stride)))
            return P4_MEMORY;
    begin_registers(sw);
    return P4_OK;
}

/* The switch with all data that packets use, in one block; NULL if there is no memory. */
static p4_switch *block_new(const p4_program *p)
{
    size_t size = (sizeof(p4_switch) + P4_CACHE_LINE - 1) / P4_CACHE_LINE * P4_CACHE_LINE;
    size_t profiles = size;
    size_t tables = profiles + p->n_profiles * sizeof(p4_profile);
    size_t pointers = tables + p->n_tables * sizeof(p4_table);
    size_t fallbacks = pointers + ((size_t)p->n_counters + p->n_meters + p->n_banks) * sizeof(void *);
    size = (fallbacks + p->fallbacks_size + P4_CACHE_LINE - 1) / P4_CACHE_LINE * P4_CACHE_LINE;
    uint8_t *block = aligned_alloc(P4_CACHE_LINE, size);
    if (!block)
        return NULL;
    memset(block, 0, size);
    p4_switch *sw = (p4_switch *)(void *)block;
    sw->program = p;
    sw->tables = (p4_table *)(void *)(block + tables);
    sw->profiles = (p4_profile *)(void *)(block + profiles);
    sw->counters = (p4_counter **)(void *)(block + pointers);
    sw->meters = (p4_meter **)(void *)(sw->counters + p->n_counters);
    sw->banks = (uint8_t **)(void *)(sw->meters + p->n_meters);
    sw->fallbacks = block + fallbacks;
    return sw;
}

/* Ends the switch that this pipe belongs to: each of its pipes is a switch again. */
static void part(p4_switch *sw)
{
    p4_pipes *pipes = sw->pipes;
    for (uint32_t i = 0; pipes && i < pipes->count; i++) {
        p4_switch *pipe = pipes->list[i];
        pipe->pipes = NULL;
        pipe->pipe = 0;
        p4_switch_set_env(pipe, p4_fifo_env(pipe->fifo));
    }
    free(pipes);
}

int p4_switch_join(p4_switch *const *pipes, uint32_t count, uint32_t port_bits)
{
    p4_switch *first = pipes[0];
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (pipes[i] == pipes[j])
                return p4_fail(first, P4_INVALID, "pipes %u and %u are the same switch", j, i);
    for (uint32_t i = 0; i < count; i++)
        part(pipes[i]);
    p4_pipes *joined = malloc(sizeof *joined + count * sizeof *joined->list);
    if (!joined)
        return P4_MEMORY;
    joined->count = count;
    joined->port_bits = port_bits;
    for (uint32_t i = 0; i < count; i++) {
        joined->list[i] = pipes[i];
        pipes[i]->pipes = joined;
        pipes[i]->pipe = i;
    }
    p4_switch_set_env(first, &first->env);
    return P4_OK;
}

p4_switch *p4_switch_new(const p4_program *program, uint32_t device_id, uint64_t seed, uint64_t tick_ns, char error[256])
{
    p4_switch *sw = block_new(program);
    if (!sw)
        return NULL;
    sw->device_id = device_id;
    sw->seed = seed;
    sw->random = seed ^ (uint64_t)device_id * 0x9e3779b97f4a7c15ull;
    sw->tick_ns = tick_ns;
    sw->drop_port = program->drop_port;
    int status = allocate(sw);
    for (uint32_t i = 0; i < program->n_tables && !status; i++)
        status = p4_table_init(sw, i);
    if (!status && !(sw->fifo = p4_fifo_new(sw)))
        status = P4_MEMORY;
    if (!status) {
        p4_switch_set_env(sw, p4_fifo_env(sw->fifo));
        return sw;
    }
    if (error)
        memcpy(error, status == P4_MEMORY ? "out of memory" : sw->error, status == P4_MEMORY ? 14 : 256);
    p4_switch_delete(sw);
    return NULL;
}

void p4_switch_delete(p4_switch *sw)
{
    const p4_program *p = sw->program;
    part(sw);
    if (sw->fifo)
        p4_fifo_delete(sw->fifo);
    for (uint32_t i = 0; sw->controls && i < p->n_tables; i++)
        p4_table_destroy(sw, i);
    for (uint32_t i = 0; i < p->n_profiles; i++)
        p4_profile_destroy(&sw->profiles[i]);
    for (uint32_t i = 0; i < p->n_counters; i++)
        free(sw->counters[i]);
    for (uint32_t i = 0; i < p->n_meters; i++)
        free(sw->meters[i]);
    for (uint32_t i = 0; i < p->n_banks; i++)
        free(sw->banks[i]);
    for (uint32_t i = 0; sw->vsets && i < p->n_vsets; i++)
        free(sw->vsets[i].words);
    for (uint32_t i = 0; sw->objects && i < p->n_objects; i++)
        free(sw->objects[i]);
    free(sw->objects);
    free(sw->meters_more);
    groups_clear(&sw->multicast);
    groups_clear(&sw->clones);
    free(sw->controls);
    free(sw->vsets);
    free(sw->passed);
    free(sw->scratch);
    free(sw);
}

/* Resets the switch, except for the environment. Packets held by the environment stay valid. */
int p4_switch_reset(p4_switch *sw)
{
    const p4_program *p = sw->program;
    for (uint32_t i = 0; i < p->n_tables; i++) {
        int status = p4_table_init(sw, i);
        if (status)
            return status;
    }
    for (uint32_t i = 0; i < p->n_profiles; i++)
        p4_profile_destroy(&sw->profiles[i]);
    for (uint32_t i = 0; i < p->n_counters; i++)
        memset(sw->counters[i], 0, p->counters[i].size * sizeof(p4_counter));
    for (uint32_t i = 0; i < p->n_meters; i++)
        memset(sw->meters[i], 0, p->meters[i].size * sizeof(p4_meter)); /* size 0 for direct ones */
    memset(sw->meters_more, 0, p->n_meters * sizeof *sw->meters_more);
    for (uint32_t i = 0; i < p->n_banks; i++)
        memset(sw->banks[i], 0, (size_t)p->banks[i].size * p->banks[i].stride);
    begin_registers(sw);
    for (uint32_t i = 0; i < p->n_objects; i++)
        memset(sw->objects[i], 0, (size_t)p->objects[i].size * p->objects[i].stride);
    for (uint32_t i = 0; i < p->n_vsets; i++)
        sw->vsets[i].count = 0;
    groups_clear(&sw->multicast);
    groups_clear(&sw->clones);
    memset(&sw->counts, 0, sizeof sw->counts);
    sw->random = sw->seed ^ (uint64_t)sw->device_id * 0x9e3779b97f4a7c15ull;
    memset(sw->passed, 0, p->n_points * sizeof *sw->passed);
    sw->failed_asserts = 0;
    sw->failed_assert = NULL;
    return P4_OK;
}

/* --- the seam -------------------------------------------------------------------------------------------------------- */

void p4_switch_receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    p4_switch *pipe = p4_pipe_of(sw, port);
    pipe->program->receive(pipe, frame, port, now);
}

p4_frame *p4_switch_transmit(p4_switch *sw, p4_packet *packet, p4_tick now)
{
    p4_switch *pipe = p4_pipe_of(sw, packet->egress_port);
    return pipe->program->transmit(pipe, packet, now);
}

/* Prefetches only the first bytes if the whole is large. Always inlined, because gcc drops calls that only prefetch. */
P4_INLINE void fetch(const void *at, size_t size)
{
    for (size_t line = 0; at && line < size && line < PREFETCH_BYTES; line += P4_CACHE_LINE)
        __builtin_prefetch((const uint8_t *)at + line, 1);
}

void p4_switch_prefetch(const p4_switch *sw)
{
    fetch(sw, sizeof *sw + PREFETCH_BLOCK_BYTES);
}

void p4_switch_prefetch_tables(const p4_switch *sw)
{
    const p4_program *p = sw->program;
    for (uint32_t i = 0; i < p->n_tables; i++) {
        const p4_table *t = &sw->tables[i];
        uint32_t places = p4_is_hashed(&p->tables[i]) ? t->slot_mask + 1 : t->count;
        fetch(t->entries, (size_t)places * p->tables[i].stride);
    }
    for (uint32_t i = 0; i < p->n_profiles; i++)
        fetch(sw->profiles[i].members, (size_t)sw->profiles[i].n_members * p->profiles[i].stride);
    for (uint32_t i = 0; i < p->n_banks; i++)
        fetch(sw->banks[i], (size_t)p->banks[i].size * p->banks[i].stride);
}

/* Runs the statement for `pipe`, each pipe of the switch. */
#define EACH_PIPE(sw, pipe)                                                                                           \
    for (uint32_t pipe##_at = 0; pipe##_at < ((sw)->pipes ? (sw)->pipes->count : 1); pipe##_at++)                     \
        for (p4_switch *pipe = (sw)->pipes ? (sw)->pipes->list[pipe##_at] : (p4_switch *)(uintptr_t)(sw); pipe;       \
             pipe = NULL)

uint32_t p4_switch_packet_bytes(const p4_switch *sw)
{
    uint32_t most = 0;
    EACH_PIPE(sw, pipe)
        most = pipe->program->packet_size > most ? pipe->program->packet_size : most;
    return most;
}

int p4_switch_deflect(p4_switch *sw, p4_packet **packet)
{
    p4_switch *pipe = p4_pipe_of(sw, (*packet)->egress_port);
    if (!pipe->program->deflect || !pipe->program->deflect(pipe, *packet))
        return 0;
    *packet = p4_cross(pipe, *packet);
    return 1;
}

int p4_switch_watches_queues(const p4_switch *sw)
{
    int watches = 0;
    EACH_PIPE(sw, pipe)
        watches |= pipe->program->queue_changed != NULL;
    return watches;
}

void p4_switch_queue_changed(p4_switch *sw, const p4_packet *packet, uint32_t queue, uint32_t cells, p4_tick now)
{
    p4_switch *pipe = p4_pipe_of(sw, packet->egress_port);
    if (pipe->program->queue_changed)
        pipe->program->queue_changed(pipe, packet, queue, cells, now);
}

void p4_packet_free(p4_switch *sw, p4_packet *packet)
{
    p4_switch *pipe = p4_pipe_of(sw, packet->egress_port);
    pipe->program->free_packet(pipe, packet);
}

void p4_switch_set_env(p4_switch *sw, const p4_env *env)
{
    const p4_env given = *env;
    EACH_PIPE(sw, pipe) {
        pipe->env = given;
        p4_switch_state_changed(pipe);
    }
}

void p4_switch_timer(p4_switch *sw, p4_tick now)
{
    EACH_PIPE(sw, pipe)
        if (pipe->program->timer)
            pipe->program->timer(pipe, now);
}

void p4_switch_state_changed(p4_switch *pipe)
{
    if (pipe->program->state_changed && pipe->env.set_timer)
        pipe->program->state_changed(pipe);
}

void p4_switch_port_added(p4_switch *sw, uint32_t port)
{
    p4_switch_state_changed(p4_pipe_of(sw, port));
}

const p4_env *p4_switch_get_env(const p4_switch *sw) { return &sw->env; }

void p4_switch_learn(p4_switch *pipe, uint32_t list_id, const uint8_t *data, size_t len)
{
    p4_fifo_learn(pipe->fifo, list_id, data, len);
}

p4_switch_counts p4_switch_get_counts(const p4_switch *sw)
{
    p4_switch_counts sum = {0};
    EACH_PIPE(sw, pipe) {
        sum.received += pipe->counts.received;
        sum.cloned += pipe->counts.cloned;
        sum.multicast += pipe->counts.multicast;
        sum.transmitted += pipe->counts.transmitted;
        sum.dropped += pipe->counts.dropped;
    }
    return sum;
}

uint64_t p4_switch_failed_asserts(const p4_switch *sw, const char **first)
{
    uint64_t sum = 0;
    *first = NULL;
    EACH_PIPE(sw, pipe) {
        sum += pipe->failed_asserts;
        *first = *first ? *first : pipe->failed_assert;
    }
    return sum;
}

/* --- names --------------------------------------------------------------------------------------------------------------- */

#define FINDER(function, what, count, array)                                 \
    int function(p4_switch *sw, const char *name)                            \
    {                                                                        \
        for (int i = 0; i < sw->program->count; i++)                         \
            if (!strcmp(sw->program->array[i].name, name))                   \
                return i;                                                    \
        return p4_fail(sw, P4_INVALID, "the program has no %s %s", what, name); \
    }

FINDER(p4_find_table, "table", n_tables, tables)
FINDER(p4_find_profile, "action profile", n_profiles, profiles)
FINDER(p4_find_counter, "counter", n_counters, counters)
FINDER(p4_find_meter, "meter", n_meters, meters)
FINDER(p4_find_register, "register", n_registers, registers)
FINDER(p4_find_vset, "parser value set", n_vsets, vsets)
FINDER(p4_find_object, "extern object", n_objects, objects)

/* --- stateful objects ------------------------------------------------------------------------------------------------------- */

int p4_meter_set(p4_switch *sw, p4_meter *meter, const uint64_t config[4])
{
    if (!config) {
        memset(meter, 0, sizeof *meter);
        return P4_OK;
    }
    if (config[0] > config[2])
        return p4_fail(sw, P4_INVALID, "meter: the committed rate is above the peak rate");
    meter->rates[0] = (p4_rate){config[2], config[3], config[3], 0};
    meter->rates[1] = (p4_rate){config[0], config[1], config[1], 0};
    meter->configured = 1;
    return P4_OK;
}

static int check_register(p4_switch *sw, const p4_register_info *info, uint32_t index, size_t len)
{
    if (index >= info->size)
        return p4_fail(sw, P4_INVALID, "register %s has %u cells; there is no cell %u", info->name, info->size, index);
    if (len != (info->width + 7) / 8)
        return p4_fail(sw, P4_INVALID, "register %s has %u bits: expected %u bytes, got %zu", info->name, info->width,
                       (info->width + 7) / 8, len);
    return P4_OK;
}

int p4_register_get(p4_switch *sw, uint32_t array, uint32_t index, uint8_t *value, size_t len)
{
    const p4_register_info *info = &sw->program->registers[array];
    int status = check_register(sw, info, index, len);
    if (!status)
        p4_load(cell_of(sw, info, index), info->width, value);
    return status;
}

int p4_register_set(p4_switch *sw, uint32_t array, uint32_t index, const uint8_t *value, size_t len)
{
    const p4_register_info *info = &sw->program->registers[array];
    int status = check_register(sw, info, index, len);
    if (!status && info->width % 8 && value[0] >> (info->width % 8))
        return p4_fail(sw, P4_INVALID, "register %s: the value does not fit in %u bits", info->name, info->width);
    if (!status)
        p4_store(cell_of(sw, info, index), info->width, value);
    return status;
}

uint8_t *p4_object_cell(p4_switch *sw, uint32_t object, uint32_t index)
{
    const p4_object_info *info = &sw->program->objects[object];
    if (index < info->size)
        return sw->objects[object] + (size_t)index * info->stride;
    p4_fail(sw, P4_INVALID, "%s has %u cells; there is no cell %u", info->name, info->size, index);
    return NULL;
}

/* --- replication ----------------------------------------------------------------------------------------------------------------- */

int p4_replicas_set(p4_switch *sw, p4_groups *groups, uint32_t id, const p4_replica *replicas, size_t count,
                    uint32_t truncate, int remove)
{
    uint32_t at = 0;
    while (at < groups->count && groups->list[at]->id < id)
        at++;
    int found = at < groups->count && groups->list[at]->id == id;
    if (remove) {
        if (!found)
            return p4_fail(sw, P4_INVALID, "there is no group or session %u", id);
        free(groups->list[at]);
        memmove(groups->list + at, groups->list + at + 1, (groups->count - at - 1) * sizeof *groups->list);
        groups->count--;
        return P4_OK;
    }
    if (count > UINT16_MAX)
        return p4_fail(sw, P4_FULL, "a group has at most %u replicas", UINT16_MAX);
    p4_group *group = malloc(sizeof *group + count * sizeof *replicas);
    if (!group)
        return p4_fail(sw, P4_MEMORY, "out of memory");
    group->id = id;
    group->truncate = truncate;
    group->count = (uint32_t)count;
    if (count)
        memcpy(group->replicas, replicas, count * sizeof *replicas);
    if (found) {
        free(groups->list[at]);
        groups->list[at] = group;
        return P4_OK;
    }
    p4_group **list = realloc(groups->list, (groups->count + 1) * sizeof *list);
    if (!list) {
        free(group);
        return p4_fail(sw, P4_MEMORY, "out of memory");
    }
    groups->list = list;
    memmove(list + at + 1, list + at, (groups->count - at) * sizeof *list);
    list[at] = group;
    groups->count++;
    return P4_OK;
}
