/* Declarations shared by the files of a switch's control plane: values.c, keys.c, places.c, aims.c, table.c,
 * profiles.c and value_sets.c. On failure the functions return a negative p4_status and set sw->error, like the
 * functions declared in runtime.h. */
#ifndef P4CC_CONTROL_H
#define P4CC_CONTROL_H

#include "runtime.h"

P4_INLINE uint32_t p4_byte_width(uint32_t width) { return (width + 7) / 8; }

P4_INLINE p4_table_control *p4_control_of(p4_switch *sw, const p4_table *t) { return &sw->controls[t - sw->tables]; }

int p4_check_value(p4_switch *sw, const char *where, const char *name, uint32_t width, p4_bytes v);

/* Converts key fields to words, masks (or bounds) and the length of the LPM field. words and masks have key_words
 * each. */
int p4_pack_key(p4_switch *sw, const char *where, const p4_key_info *infos, uint32_t n_infos, uint32_t key_words,
                const p4_match *key, size_t n_keys, uint64_t *words, uint64_t *masks, uint32_t *prefix);

/* Memory that begins at a cache line; freed with free(). */
void *p4_allocate_lines(size_t size);

void p4_mark_free(uint8_t *entries, uint32_t stride, uint32_t from, uint32_t to);
/* Puts a copy of an entry in its place in the table and returns its handle. */
void p4_put_entry(const p4_table *t, const p4_table_control *c, uint32_t place, const p4_entry *e);
/* The place where an entry with this key would go. */
uint32_t p4_free_place(const p4_table *t, const p4_table_info *info, const p4_entry *e);
/* Doubles the number of places of a table. */
int p4_table_grow(p4_switch *sw, p4_table *t);
/* Closes the hole left by a removed entry: moves back entries that probing would no longer reach. */
void p4_close_hole(p4_table *t, const p4_table_control *c, uint32_t hole);

int p4_handle_new(p4_switch *sw, p4_table_control *c, uint32_t *handle);
/* Initialises the cell of a new entry, because it may have belonged to another one. */
void p4_cell_begin(p4_switch *sw, const p4_cells_info *cells, uint32_t index);
void p4_handle_free(p4_table_control *c, uint32_t handle);

int p4_prefix_use(p4_switch *sw, p4_table *t, uint32_t length, const uint64_t *mask);
void p4_prefix_release(p4_table *t, p4_table_control *c, uint32_t length);

int p4_action_of(p4_switch *sw, const char *where, const uint32_t *allowed, uint32_t n, const p4_aim *aim,
                 uint32_t *action);
void p4_store_args(p4_switch *sw, uint8_t *data, uint32_t action, const p4_bytes *args);
int p4_member_valid(const p4_profile *profile, uint32_t handle);
int p4_group_valid(const p4_profile *profile, uint32_t handle);
int p4_check_aim(p4_switch *sw, const p4_table_info *info, const p4_aim *aim, uint32_t *action);
void p4_target_count(p4_switch *sw, const p4_table_info *info, const p4_target *target, int by);
/* Writes a checked target into an entry whose previous target, if any, has been released. */
void p4_apply_aim(p4_switch *sw, const p4_table_info *info, p4_entry *e, const p4_aim *aim, uint32_t action);
void p4_release_aim(p4_switch *sw, const p4_table_info *info, p4_entry *e);

#endif
