/* The run loop: windows of time, the side that runs next, and the work between windows. */
#include "hosts.h"
#include "pauses.h"
#include "switches.h"

void net_sync(net *n)
{
    if (n->phase != PHASE_HOSTS || n->independent)
        return;
    n->company->catch_up(n);
}

void net_end_window(net *n, uint64_t time)
{
    if (n->phase == PHASE_HOSTS && time < n->window_end)
        n->window_end = time > n->now ? time : n->now + 1;
}

void net_at(net *n, uint64_t time, void *arg, node *host, bool own)
{
    if (n->independent && n->phase == PHASE_HOSTS && host != n->current && time < n->window_end)
        time = n->window_end; /* other workers may be ahead */
    heap *calls = host && host->port ? &host->events : &n->calls;
    heap_push(calls, (entry){time, n->order++ << 1 | own, arg});
    if (calls == &n->calls)
        net_end_window(n, time);
    else
        net_host_due(n, host->place, time);
}

static uint64_t earliest(const nodes *of, uint32_t side)
{
    uint64_t time = TIME_NEVER;
    for (uint32_t i = 0; i < of->count; i++)
        if (of->next[i].side == side)
            time = min_time(time, of->next[i].time);
    return time;
}

uint64_t net_next_time(const net *n, uint32_t side)
{
    return min_time(n->independent ? earliest(&n->hosts, side) : wheel_next_time(n->wheel), earliest(&n->switches, side));
}

static uint64_t own_next_call(const net *n)
{
    return heap_time(&n->calls);
}

static bool every_call_is_here(const net *n)
{
    (void)n;
    return true;
}

static void count_own_call(net *n)
{
    n->events++;
}

static bool is_late(const net *n)
{
    return n->late;
}

static int meet_nobody(net *n)
{
    (void)n;
    return 0;
}

static void catch_up(net *n)
{
    net_run_switches(n, 0, n->now + 1);
    n->phase = PHASE_HOSTS;
}

const net_company net_alone = {
    net_next_time, own_next_call, every_call_is_here, count_own_call, is_late, meet_nobody, catch_up,
};

/* A meeting of all workers; false: the run has failed. */
static bool meet(net *n)
{
    if (!n->failed)
        n->failed = n->company->meet(n) < 0;
    return !n->failed;
}

static void sample_until(net *n, uint64_t time)
{
    recorder *r = &n->recorder;
    while (r->next_sample_ns <= time) {
        record_sample(n, r->next_sample_ns);
        r->next_sample_ns += r->interval_ns;
    }
}

/* The next time at which paused queues are checked, a multiple of the interval. */
static uint64_t watch_after(const net *n, uint64_t time)
{
    return (time / n->watch_interval_ns + 1) * n->watch_interval_ns;
}

/* Whether both sides have reached the same time. */
static bool level(const net *n)
{
    return n->sides != 2 || n->done[0] == n->done[1];
}

static void settle(net *n, uint64_t end)
{
    n->phase = PHASE_HOSTS;
    n->failed = net_settle(n, end, n->settled) < 0;
    n->settled = true;
}

/* Lets the hosts that are held before `end` go on, as far as the owner here need not hear of others. */
static void settle_hosts(net *n, uint64_t end)
{
    n->waiting = n->settled = n->behind = false;
    n->known_ns = min_time(n->done[0], n->brink_ns);
    if (n->held && !n->failed)
        settle(n, end);
}

static void end_phase(net *n)
{
    n->phase = PHASE_NONE;
    n->current = NULL;
}

/* The workers meet, and the remaining hosts go on. If the owner has settled at one worker, it does so at each: frames
   of what starts there may arrive at any of them. */
static void meet_settled(net *n, uint64_t end)
{
    for (; meet(n) && n->waiting; end_phase(n))
        settle(n, end);
    if (n->behind && !n->failed)
        settle(n, end);
    end_phase(n);
    if (n->failed)
        return;
    n->brink_ns = n->on_brink ? end - 1 : TIME_NEVER;
    n->held = n->unsettled;
    n->unsettled = false;
}

/* Runs a side that is not ahead up to `end`. After an error it stays where it was. What hosts send in a window
   arrives after it, so hosts may still go on when the switches have reached its end. */
static void advance(net *n, uint32_t side, uint64_t end)
{
    n->window_end = end;
    n->on_brink = false;
    n->failed = net_run_hosts(n, side) < 0;
    if (n->settles)
        settle_hosts(n, n->window_end);
    n->midway = n->failed && n->independent;
    if (!n->independent && (n->failed || n->stop)) /* it was the last one at this instant */
        n->window_end = n->now + 1;
    if (!n->independent)
        meet(n); /* where the window ends */
    if (!n->midway) {
        net_run_switches(n, side, n->window_end);
        n->done[side] = n->window_end;
    }
    end_phase(n);
    if (n->settles) {
        meet_settled(n, n->window_end);
        n->midway = n->failed;
    } else {
        meet(n);
    }
    n->now = n->last;
}

static uint64_t after(uint64_t time, uint64_t ns)
{
    return time < TIME_NEVER - ns ? time + ns : TIME_NEVER;
}

/* Runs the side that is behind as far as it may: no frame of the other side arrives before `end`. */
static void run_window(net *n, uint64_t until)
{
    uint64_t link = n->lookahead_ns < NET_MAX_WINDOW_NS ? n->lookahead_ns : NET_MAX_WINDOW_NS;
    uint32_t side = !level(n) && n->done[1] < n->done[0];
    uint64_t end = after(n->done[side], link ? link : 1), watch = watch_after(n, n->done[side]);
    if (n->sides == 2) {
        uint64_t own = n->company->next_time(n, side), other = n->company->next_time(n, !side), ahead = n->done[!side];
        if (!level(n) && min_time(own, other) >= ahead) { /* nothing happens before both are at the same time */
            n->done[side] = ahead;
            return;
        }
        other = min_time(other, after(own, link));
        end = after(other > ahead ? other : ahead, link);
        watch = watch > ahead ? watch : ahead; /* the other side has run ahead before PFC was configured */
    }
    if (until < end)
        end = until + 1;
    end = min_time(end, min_time(n->company->next_call(n), n->recorder.next_sample_ns));
    if (n->settles)
        end = min_time(end, n->done[side] < n->careful_ns ? n->careful_ns : n->done[side] + 1);
    if (n->sides == 2 && end < n->done[!side]) /* requested after an error, since which it has done nothing */
        n->done[!side] = end;
    advance(n, side, n->pfc_used ? min_time(end, watch) : end);
}

/* Lets the side that is behind catch up. */
static void make_level(net *n)
{
    uint32_t side = n->done[1] < n->done[0];
    if (!level(n))
        advance(n, side, n->done[!side]);
}

/* Runs the next event when both sides are at the same time; NET_BUDGET: there are more. */
static net_status run_next(net *n, uint64_t until)
{
    uint64_t time = n->company->next_time(n, 0);
    if (n->sides == 2)
        time = min_time(time, n->company->next_time(n, 1));
    uint64_t call = n->company->next_call(n), next = min_time(time, call);
    if (n->paused && watch_after(n, n->now) <= min_time(next, until)) {
        n->now = n->last = watch_after(n, n->now);
        sample_until(n, n->now);
        n->failed = pfc_watch(n) < 0;
    } else if (next > until || next == TIME_NEVER) {
        if (until <= NET_MAX_TIME) {
            sample_until(n, until);
            n->now = n->last = until;
        }
        return next == TIME_NEVER ? NET_IDLE : NET_UNTIL;
    } else if (sample_until(n, next), call <= time) {
        n->now = n->last = call;
        n->company->count_call(n);
        if (n->settles && time == call) { /* hosts that are held until then run before it */
            n->window_end = n->done[0] = n->done[1] = call;
            n->held = true;
            settle_hosts(n, call + 1);
            meet_settled(n, call + 1);
            n->now = n->last = call;
        }
        if (!n->failed && n->company->call_is_here(n))
            n->failed = n->ops->call(n, heap_pop(&n->calls).what) < 0;
        meet(n);
    } else {
        n->done[0] = n->done[1] = time;
        run_window(n, until);
    }
    return NET_BUDGET;
}

net_status net_run(net *n, uint64_t until, uint64_t budget)
{
    n->stop = n->deadlock = n->midway = false;
    if (!meet(n)) {
        n->failed = false;
        return NET_ERROR;
    }
    if (n->company->late(n))
        return NET_WALL;
    uint64_t first = n->events;
    for (;;) {
        if (level(n)) {
            if (!n->sides) {
                net_find_sides(n);
                if (!meet(n)) { /* the next event is asked for by side */
                    n->failed = false;
                    return NET_ERROR;
                }
            }
            net_status status = run_next(n, until);
            if (status != NET_BUDGET)
                return status;
        } else {
            run_window(n, until);
        }
        bool over = n->stop || n->events - first >= budget;
        if (over && !n->failed)
            make_level(n);
        if (n->failed) {
            n->failed = false;
            return NET_ERROR;
        }
        if (n->stop)
            return n->deadlock ? NET_DEADLOCK : NET_STOPPED;
        if (over)
            return NET_BUDGET;
    }
}
