/* Functions that the C of externs calls. */

/* exp(-elapsed / constant) in units of 2^-62. It uses integers only, so that every machine computes the same value. */
#define P4_DECAY_BITS 62
enum { PS_A_NS = 1000 };
P4_UNUSED static uint64_t p4_decay(uint64_t elapsed_ns, uint64_t constant_ps)
{
    const uint64_t one = (uint64_t)1 << P4_DECAY_BITS;
    if (!constant_ps || elapsed_ns > constant_ps / 23) /* e^-43 is less than one unit */
        return 0;
    p4_u128 exponent = ((p4_u128)elapsed_ns * PS_A_NS << P4_DECAY_BITS) / constant_ps;
    int halvings = 0;
    for (; exponent > one; halvings++)
        exponent >>= 1;
    uint64_t sum = one, term = one;
    for (uint64_t k = 1; term; k++) {
        term = (uint64_t)((p4_u128)term * (uint64_t)exponent >> P4_DECAY_BITS) / k;
        sum = k & 1 ? sum - term : sum + term;
    }
    while (halvings-- > 0)
        sum = (uint64_t)((p4_u128)sum * sum >> P4_DECAY_BITS);
    return sum;
}

P4_UNUSED static uint64_t p4_kept(uint64_t value, uint64_t decay)
{
    return (uint64_t)((p4_u128)value * decay >> P4_DECAY_BITS);
}

/* Value of a low-pass filter that was at `value` and whose input is `in` for the elapsed time, in units of 2^-32. */
P4_UNUSED static uint64_t p4_low_pass(uint64_t value, uint32_t in, uint64_t elapsed_ns, uint64_t gain_ps,
                                      uint64_t decay_ps)
{
    uint64_t goal = (uint64_t)in << 32;
    if (goal > value)
        return goal - p4_kept(goal - value, p4_decay(elapsed_ns, gain_ps));
    return goal + p4_kept(value - goal, p4_decay(elapsed_ns, decay_ps));
}

/* The same for a rate: `in` arrived during the elapsed time, which is at least 1 ns, and the value is the amount per
 * decay_ps. It is less than 2^32. */
P4_UNUSED static uint64_t p4_rate_pass(uint64_t value, uint32_t in, uint64_t elapsed_ns, uint64_t gain_ps,
                                       uint64_t decay_ps)
{
    enum { SPARE_BITS = 16 };
    const uint64_t decay49 = decay_ps < (uint64_t)1 << 49 ? decay_ps : (uint64_t)1 << 49;
    const uint64_t ns = elapsed_ns ? elapsed_ns : 1;
    const uint64_t elapsed_ps = (ns < UINT64_MAX / PS_A_NS ? ns : UINT64_MAX / PS_A_NS) * PS_A_NS;
    int rises = ((p4_u128)in << 32) * decay49 / elapsed_ps > value;
    uint64_t decay = p4_decay(ns, rises ? gain_ps : decay_ps);
    p4_u128 share = (p4_u128)in * (((uint64_t)1 << P4_DECAY_BITS) - decay) >> SPARE_BITS;
    p4_u128 sum = (share * decay49 / elapsed_ps >> (P4_DECAY_BITS - 32 - SPARE_BITS)) + p4_kept(value, decay);
    return sum < UINT64_MAX ? (uint64_t)sum : UINT64_MAX;
}

/* Rounds to the nearest integer. */
P4_UNUSED static uint64_t p4_whole(uint64_t value) { return (value >> 32) + (value >> 31 & 1); }

/* Feeds a number to the cell of an Lpf and returns the result. */
#define P4_LPF(cell, in, now_ns)                                                                                      \
    ((cell).value = ((cell).rate ? p4_rate_pass : p4_low_pass)((cell).value, in, (now_ns) - (cell).since_ns,          \
                                                               (cell).gain_ps, (cell).decay_ps),                      \
     (cell).since_ns = (now_ns), p4_whole((cell).value) >> ((cell).scale & 31))

/* Whether a packet is dropped at this average depth, which like the probability is in units of 2^-32. */
P4_UNUSED static int p4_red(p4_switch *sw, uint64_t average, uint32_t least, uint32_t most, uint64_t probability)
{
    if (average >= (uint64_t)most << 32)
        return 1;
    if (average < (uint64_t)least << 32)
        return 0;
    uint64_t above = average - ((uint64_t)least << 32);
    uint64_t share = (uint64_t)((p4_u128)above * probability / ((uint64_t)(most - least) << 32));
    return p4_random(sw, 0, UINT32_MAX) < share;
}

/* Feeds a depth to the cell of a Wred and returns whether the packet is dropped. */
#define P4_WRED(cell, in, now_ns)                                                                                     \
    ((cell).value = p4_low_pass((cell).value, in, (now_ns) - (cell).since_ns, (cell).constant_ps,                     \
                                (cell).constant_ps),                                                                  \
     (cell).since_ns = (now_ns),                                                                                      \
     (cell).enabled && p4_red(sw, (cell).value, (cell).least, (cell).most, (cell).probability))

/* Subtracts the bytes from `from` to `to` of a packet, as words of 16 bits, from a one's complement sum. */
P4_UNUSED static uint32_t p4_csum_without(uint32_t sum, const uint8_t *front, uint32_t front_len, const p4_frame *frame,
                                          uint32_t from, uint32_t to)
{
    for (uint32_t at = from; at < to; at += 2) {
        uint8_t word[2] = {0, 0};
        p4_copy_behind(word, front, front_len, frame, at, to - at < 2 ? 1 : 2);
        sum += 0xffffu ^ ((uint32_t)word[0] << 8 | word[1]);
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

/* A hash that the control plane has configured, of the `fields_len` bytes in `fields`: see the cell of `Hash`.
 * Slices outside of the fields or of the input, and those beyond `most`, are ignored. */
enum { P4_HASH_BYTES = 8192 };
P4_UNUSED static uint64_t p4_hash_of(const uint8_t *in, size_t n, int identity, uint32_t width, int reflected,
                                     uint64_t polynomial, uint64_t initial)
{
    uint64_t value = identity ? 0 : initial;
    for (size_t i = 0; i < n; i++) {
        if (identity) {
            value = value << 8 | in[i];
            continue;
        }
        value ^= reflected ? in[i] : (uint64_t)in[i] << (width - 8);
        for (int bit = 0; bit < 8; bit++) {
            if (reflected)
                value = value >> 1 ^ (value & 1 ? polynomial : 0);
            else
                value = value << 1 ^ (value >> (width - 1) & 1 ? polynomial : 0);
        }
    }
    return value;
}

P4_UNUSED static uint64_t p4_low_bits(uint64_t value, uint32_t width)
{
    return width < 64 ? value & (((uint64_t)1 << width) - 1) : value;
}

P4_UNUSED static uint64_t p4_configured_hash(const uint8_t *fields, size_t fields_len, const uint64_t *slices,
                                             uint32_t most, uint32_t count, uint32_t bits, int identity,
                                             uint32_t width, int reflected, uint64_t polynomial, uint64_t initial,
                                             uint64_t final, int msb, int extend, uint32_t rotate,
                                             uint32_t result_bits)
{
    uint8_t in[P4_HASH_BYTES];
    const uint32_t n = (bits + 7) / 8, skew = 8 * n - bits; /* leading zeros */
    const uint32_t least = identity ? 1 : 8;
    width = width < least ? least : width > 64 ? 64 : width;
    memset(in, 0, n);
    for (uint32_t i = 0; i < count && i < most; i++) {
        uint32_t from = slices[i] & 0xffff, to = skew + (uint32_t)(slices[i] >> 16 & 0xffff);
        uint32_t left = slices[i] >> 32 & 0xffff;
        for (; left && from < 8 * fields_len && to < 8 * n; left--, from++, to++)
            in[to / 8] ^= (uint8_t)((fields[from / 8] >> (7 - from % 8) & 1) << (7 - to % 8));
    }
    uint64_t value = p4_low_bits(p4_hash_of(in, n, identity, width, reflected, polynomial, initial) ^ final, width);
    if (width > result_bits && msb)
        value >>= width - result_bits;
    if (extend)
        for (uint32_t at = width; at < result_bits; at += width)
            value |= p4_low_bits(value, width) << at;
    value = p4_low_bits(value, result_bits);
    rotate %= result_bits;
    return rotate ? p4_low_bits(value << rotate | value >> (result_bits - rotate), result_bits) : value;
}
/* `fields` is an array. */
#define P4_CONFIGURED_HASH(cell, fields, result_bits)                                                                 \
    p4_configured_hash(fields, sizeof(fields), (cell).slices, sizeof((cell).slices) / sizeof((cell).slices[0]),       \
                       (cell).count, (cell).bits, (cell).identity, (cell).width, (cell).reflected,                    \
                       (cell).polynomial, (cell).initial, (cell).final, (cell).msb, (cell).extend, (cell).rotate,     \
                       result_bits)
