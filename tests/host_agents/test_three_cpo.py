"""3CPO's worked examples, step by step (thesis, figures 6.1 and 6.4 to 6.9), and its other rules."""

import math
import random

import pytest

from host_agents.cc.collective import Aimd, AimdParameters
from host_agents.cc.three_cpo import ThreeCpo, ThreeCpoParameters, Watermark
from host_agents.collective.injection import NEVER, PUSH, READ, UNICAST, WRITE, Injection
from host_agents.collective.matching import GroupMatching, Matching
from host_agents.collective.tokens import DrawnTokens, TokenBucket
from host_agents.errors import ParameterError
from host_agents.registry import resolve

GROUP = 1


def rows(share: float, cost: float, cycles: int, bucket: TokenBucket | None = None) -> list[tuple[str, int]]:
    """Return the actions of a sender of packets of this cost in each cycle, and its whole tokens afterwards."""
    bucket = bucket or TokenBucket(share)
    found = []
    for cycle in range(cycles):
        tokens = math.floor(bucket.tokens(float(cycle)))
        if tokens >= 1:
            bucket.take(float(cycle), cost)
        found.append(("send" if tokens >= 1 else "wait", tokens))
    return found


def test_figure_6_1_a_full_watermark_sends_five_flits_every_five_cycles() -> None:
    found = rows(10 / 10, 5.0, 11)
    assert [tokens for _, tokens in found] == [1, -3, -2, -1, 0, 1, -3, -2, -1, 0, 1]
    assert [cycle for cycle, (action, _) in enumerate(found) if action == "send"] == [0, 5, 10]


def test_figure_6_1_half_the_watermark_sends_half_as_often() -> None:
    found = rows(5 / 10, 5.0, 11)
    assert [tokens for _, tokens in found] == [1, -4, -3, -3, -2, -2, -1, -1, 0, 0, 1]
    assert [cycle for cycle, (action, _) in enumerate(found) if action == "send"] == [0, 10]


def test_figure_6_4_the_tokens_of_each_cycle() -> None:
    """The figure's table has one packet with a cost of 5 flits, and one with four times that cost."""
    alone, among_four = rows(1.0, 5.0, 21), rows(1.0, 20.0, 21)
    assert [cycle for cycle, (action, _) in enumerate(alone) if action == "send"] == [0, 5, 10, 15, 20]
    assert [cycle for cycle, (action, _) in enumerate(among_four) if action == "send"] == [0, 20]
    assert [among_four[cycle][1] for cycle in (0, 1, 4, 5, 9, 10, 14, 15, 19, 20)] == [
        1, -18, -15, -14, -10, -9, -5, -4, 0, 1,
    ]  # fmt: skip


@pytest.mark.parametrize("senders", [1, 2, 4])
def test_figure_6_4_so_many_senders_send_a_packet_every_so_many_packets_time(senders: int) -> None:
    """N senders each send once in N x flits cycles (6.2.1): matching sets the cost; writes have 9 flits."""
    members = [ThreeCpo(ThreeCpoParameters(), 0.0) for _ in range(4)]
    for rank, member in enumerate(members):
        member.join(GROUP, len(members), rank)
    sent: list[list[int]] = [[] for _ in range(senders)]
    for cycle in range(200):
        now = float(cycle)
        for rank in range(senders):
            if members[rank].ready_at(WRITE) <= now:
                members[rank].on_sent(now, GROUP, WRITE)
                sent[rank].append(cycle)
                for other, member in enumerate(members):
                    if other != rank:
                        member.on_heard(now, GROUP, rank, WRITE)
    assert sent == [list(range(0, 200, 9 * senders))] * senders


def test_tokens_as_sums_have_the_mean_of_tokens_drawn_at_random() -> None:
    """In each cycle the thesis draws a number below WM_MAX, and adds a token if it is below the watermark."""
    cycles, share = 200_000, 617 / 2468
    found = []
    for bucket in (TokenBucket(share), DrawnTokens(share, 1.0, random.Random(1))):
        bucket.take(0.0, float(cycles))
        found.append(bucket.tokens(float(cycles)) + cycles - 1)
    summed, drawn = found
    assert summed == pytest.approx(cycles / 4)
    assert drawn != summed
    assert abs(drawn - summed) < 5 * math.sqrt(cycles * 0.25 * 0.75)  # five standard deviations


def test_tokens_drawn_at_random_give_figure_6_1_with_a_full_watermark() -> None:
    assert rows(1.0, 5.0, 21, DrawnTokens(1.0, 1.0, random.Random(1))) == rows(1.0, 5.0, 21)


def test_a_bucket_of_drawn_tokens_says_when_it_will_have_one() -> None:
    bucket = DrawnTokens(0.3, 1.0, random.Random(1))
    waits = set()
    now = 0.0
    for _ in range(50):
        bucket.take(now, 4.0)
        ready = bucket.ready_at()
        assert (bucket.tokens(ready - 0.5), bucket.ready_at(), bucket.tokens(ready)) == (0.0, ready, 1.0)
        waits.add(ready - now)
        now = ready
    assert len(waits) > 5
    assert min(waits) >= 4
    assert bucket.tokens(1e15) == 1.0  # what is full takes no draws


def test_drawn_tokens_follow_the_watermark() -> None:
    bucket = DrawnTokens(0.1, 1.0, random.Random(1))
    bucket.take(0.0, 9.0)
    assert bucket.ready_at() > 20.0
    bucket.set_share(0.5, 1.0)
    assert bucket.ready_at() == 9.0


def test_tokens_are_drawn_from_the_hosts_random_numbers_if_that_is_wanted() -> None:
    waits: dict[tuple[str, int], set[tuple[float, float]]] = {}
    for tokens, seed in (("drawn", 1), ("drawn", 1), ("drawn", 2), ("summed", 1), ("summed", 2)):
        injection = ThreeCpo(ThreeCpoParameters(wm_start=600.0, tokens=tokens), 0.0)
        chance = random.Random(seed)
        before = chance.getstate()
        injection.draw_from(chance)
        injection.on_sent(0.0, UNICAST, READ)
        waits.setdefault((tokens, seed), set()).add((injection.ready_at(READ), injection.ready_at(WRITE)))
        assert (chance.getstate() != before) == (tokens == "drawn")
    assert all(len(found) == 1 for found in waits.values())
    assert waits["drawn", 1] != waits["drawn", 2]
    assert waits["summed", 1] == waits["summed", 2]


def test_idle_time_earns_what_the_bucket_holds() -> None:
    bucket, deep = TokenBucket(1.0), TokenBucket(1.0, depth=50.0)
    assert (bucket.tokens(1000.0), deep.tokens(1000.0)) == (1.0, 50.0)


def test_a_bucket_says_when_it_will_have_a_token() -> None:
    bucket = TokenBucket(0.25)
    bucket.take(0.0, 9.0)
    assert bucket.ready_at() == pytest.approx(36.0)
    bucket.set_share(20.0, 1.0)
    assert bucket.ready_at() == pytest.approx(24.0)


def test_figure_6_5_remote_requests_match_a_local_one_once() -> None:
    matching = Matching(4, own=3)
    assert [matching.heard(source, 1) for source in (0, 1, 2)] == [0, 0, 0]
    assert list(matching.unmatched)[:3] == [-1, -1, -1]
    assert 1 + matching.sent(1) == 4
    assert list(matching.unmatched)[:3] == [0, 0, 0]
    assert 1 + matching.sent(1) == 1
    assert list(matching.unmatched)[:3] == [1, 1, 1]
    assert [matching.heard(source, 1) for source in (0, 1, 2)] == [1, 1, 1]
    assert list(matching.unmatched)[:3] == [0, 0, 0]


def test_figure_6_6_answered_requests_match_nothing_any_more() -> None:
    matching = Matching(4, own=3)
    matching.sent(1)
    matching.sent(1)
    matching.heard(2, 1)
    matching.heard(2, 1)
    matching.heard(0, 1)
    matching.heard(1, 1)
    assert (list(matching.unmatched)[:3], matching.local_ops) == ([1, 1, 0], 2)
    matching.answered(1)
    assert (list(matching.unmatched)[:3], matching.local_ops) == ([1, 1, 0], 1)
    matching.answered(1)
    assert (list(matching.unmatched)[:3], matching.local_ops) == ([0, 0, 0], 0)
    assert [matching.heard(source, 1) for source in (0, 1, 2)] == [0, 0, 0]


def test_figure_6_7_remote_requests_expire() -> None:
    group = GroupMatching(4, own=3)
    for at in (0.0, 10.0):
        group.heard(at, 0, 1, 9)
        group.requests.heard(0, 1)
    assert (group.requests.unmatched[0], group.requests.outstanding[0], group.peak) == (-2, -2, 2)
    group.expire(99.0, stay=100.0)
    assert (group.requests.unmatched[0], group.requests.outstanding[0]) == (-2, -2)
    group.expire(100.0, stay=100.0)
    assert (group.requests.unmatched[0], group.requests.outstanding[0]) == (-1, -1)
    assert group.requests.sent(1) == 1
    group.expire(110.0, stay=100.0)  # what was matched before it expired stays as it is
    assert (group.requests.unmatched[0], group.requests.outstanding[0]) == (0, 0)


def test_a_long_queue_of_remote_requests_is_in_order() -> None:
    """Check a queue that grows beyond its first size and wraps: each request expires at its time."""
    group = GroupMatching(300, own=3)
    for at in range(12):
        group.heard(float(at), 4, 1, 9)
    group.expire(109.5, stay=100.0)
    for at in range(12, 52):
        group.heard(float(at), at + 200, 9, 1)
        group.requests.heard(at + 200, 9)
    assert group.peak == 42
    for at in range(10, 52):
        group.expire(at + 99.5, stay=100.0)
        assert at < 12 or group.requests.outstanding[at + 200] == -9
        group.expire(at + 100.0, stay=100.0)
        assert at < 12 or group.requests.outstanding[at + 200] == 0


# WM_MAX is the figures'; alpha and beta follow: 10 / 9 and 1 / 9.
EXAMPLE = ThreeCpoParameters(wm_min=1.0, wm_max=100.0, wm_start=100.0, lat_thresh=10.0, max_lat_thresh=15.0)


def congested_rtts(*paid: float, latency: float = 15.0) -> list[tuple[float, float]]:
    """Return the watermark and the growth of its equivalent after each RTT with this number of tokens paid."""
    watermark = Watermark(EXAMPLE)
    found = []
    for tokens in paid:
        before = watermark.equivalent
        watermark.paid = tokens
        watermark.on_probe(latency, -1.0)
        found.append((watermark.value, watermark.equivalent - before))
    return found


def test_figure_6_8_the_multicast_congestion_control_is_enough() -> None:
    ((value, grown),) = congested_rtts(11.0)
    assert grown == pytest.approx(73.33, abs=0.01)
    assert grown > 0.5 * 100
    assert value == 100.0


def test_figure_6_9_the_watermark_falls_if_congestion_goes_on() -> None:
    _, (value, grown) = congested_rtts(11.0, 10.0)
    assert grown == pytest.approx(-6.67, abs=0.01)
    fbs = 1 - (10 / 9 / math.sqrt(100 / 3) - 1 / 9)
    assert value == pytest.approx(100 - fbs * 0.5 * 100 / 3)


def test_without_printed_line_14_the_watermark_never_rises_by_its_equivalent() -> None:
    for raises, expected in ((True, 850.0), (False, 600.0)):
        watermark = Watermark(ThreeCpoParameters(wm_start=600.0, raise_by_equivalent=raises))
        watermark.paid = 250.0
        watermark.on_probe(2468.0, -1.0)
        # Grown by 250: more than md times the watermark, so that it is not lowered.
        assert watermark.value == pytest.approx(expected)


def test_tokens_that_few_writes_paid_count_for_more() -> None:
    watermark = Watermark(ThreeCpoParameters())
    watermark.paid = 10.0
    watermark.on_probe(1000.0, 0.25)  # scaled by 1 + 8 (2 * 0.75 - 1) = 5
    assert watermark.equivalent == pytest.approx(2468 * 50 / 1000)
    watermark.paid = 10.0
    watermark.on_probe(1000.0, 0.75)
    assert watermark.equivalent == pytest.approx(2468 * 10 / 1000)


def test_what_an_rtt_could_not_pay_counts_in_the_next() -> None:
    watermark = Watermark(ThreeCpoParameters(wm_start=1234.0, raise_by_equivalent=False))
    watermark.paid = 3000.0
    watermark.on_probe(4000.0, -1.0)  # possible: 2000
    watermark.on_probe(4000.0, -1.0)
    assert watermark.equivalent == pytest.approx(2468 * 1000 / 4000)


def test_nothing_is_carried_over_if_that_is_wanted() -> None:
    watermark = Watermark(ThreeCpoParameters(wm_start=1234.0, raise_by_equivalent=False, carry_over=False))
    watermark.paid = 3000.0
    watermark.on_probe(4000.0, -1.0)
    watermark.on_probe(4000.0, -1.0)
    assert watermark.equivalent == 0.0


@pytest.mark.parametrize(
    ("protocol", "values", "message"),
    [
        ("3cpo", {"wm_start": 50.0}, "3cpo: parameter wm_start: should be from wm_min, 100.0, to wm_max, 2468.0"),
        ("3cpo", {"wm_max": 2000.0}, r"wm_start: .* to wm_max, 2000.0 \(got 2468.0\)"),
        ("3cpo", {"wm_min": 2468.0}, r"wm_min: should be less than wm_max, 2468.0 \(got 2468.0\)"),
        ("3cpo", {"lat_thresh": 5000.0}, r"lat_thresh: should be less than max_lat_thresh, 5000.0"),
        ("3cpo", {"low_latency": 3000.0}, r"low_latency: should be less than high_latency, 2000.0"),
        ("collective-aimd", {"wm_min": 3000.0}, "collective-aimd: parameter wm_start: should be from wm_min, 3000.0"),
        ("collective-aimd", {"max_lat_thresh": 9.0}, "lat_thresh: should be less than max_lat_thresh, 9.0"),
    ],
)
def test_parameters_that_contradict_each_other(protocol: str, values: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        resolve(protocol, values)


def test_alpha_and_beta_follow_the_range() -> None:
    watermark = Watermark(ThreeCpoParameters(wm_min=400.0))
    watermark.on_probe(9000.0, -1.0)
    assert watermark.value == pytest.approx(2468 / 2)  # at WM_MAX nothing is held back: FBS is 1
    watermark.on_probe(9000.0, -1.0)
    alpha = 1.0 / (1.0 / math.sqrt(400) - 1.0 / math.sqrt(2468))
    fbs = 1.0 - (alpha / math.sqrt(1234) - alpha / math.sqrt(2468))
    assert watermark.value == pytest.approx(1234 * (1 - fbs / 2))


@pytest.mark.parametrize(
    ("latency", "md"), [(1999.0, 0.0), (2000.0, 0.0), (3500.0, 0.25), (5000.0, 0.5), (9000.0, 0.5)]
)
def test_a_watermark_that_pays_for_nobody_by_the_latency_of_its_probe(latency: float, md: float) -> None:
    """Check the thesis' numbers: alpha is 12.52, beta 0.252."""
    watermark = Watermark(ThreeCpoParameters(wm_start=1000.0))
    watermark.on_probe(latency, -1.0)
    fbs = 1 - (12.52 / math.sqrt(1000) - 0.252)
    assert watermark.value == pytest.approx(1050 if latency < 2000 else 1000 * (1 - fbs * md), abs=0.01)


def test_a_watermark_that_is_near_its_equivalent_falls_by_a_twentieth_of_the_difference() -> None:
    watermark = Watermark(ThreeCpoParameters(wm_start=1000.0, raise_by_equivalent=False))
    values = []
    for _ in range(2):  # it is held at first: more is paid than a decrease would save
        watermark.paid = 950 * 5000 / 2468
        watermark.on_probe(5000.0, -1.0)
        values.append(watermark.value)
    assert watermark.equivalent == pytest.approx(950)
    assert values == pytest.approx([1000, 1000 - 0.05 * 0.5 * 50])


def test_a_watermark_rises_by_its_equivalent_to_its_largest_at_most() -> None:
    watermark = Watermark(ThreeCpoParameters())
    watermark.paid = 100 * 5000 / 2468
    watermark.on_probe(5000.0, -1.0)  # grown by 100: it falls from WM_MAX
    fbs = 1 - (12.52 / math.sqrt(2368) - 0.252)
    assert watermark.value == pytest.approx(2468 - fbs * 0.5 * 2368, abs=0.1)


def test_watermarks_stay_in_their_range() -> None:
    watermark = Watermark(ThreeCpoParameters())
    watermark.on_probe(1000.0, -1.0)
    assert watermark.value == 2468.0
    for _ in range(100):
        watermark.on_probe(9000.0, -1.0)
    assert 100.0 <= watermark.value < 2468.0


def three_cpo(members: int = 4) -> ThreeCpo:
    injection = ThreeCpo(ThreeCpoParameters(), 0.0)
    injection.join(GROUP, members, members - 1)
    return injection


def test_remote_operations_cost_tokens_of_both_kinds() -> None:
    injection = three_cpo()
    for source in range(3):
        injection.on_heard(0.0, GROUP, source, WRITE)
    assert (injection.requests.tokens(0.0), injection.responses.tokens(0.0)) == (1.0, 1.0)
    injection.on_sent(0.0, GROUP, WRITE)
    assert injection.requests.tokens(0.0) == 1 - 4 * 9
    assert injection.responses.tokens(0.0) == 1 - 4 * 1
    assert (injection.request_watermark.paid, injection.response_watermark.paid) == (27, 3)


def test_operations_match_those_of_their_own_group_alone() -> None:
    injection = three_cpo()
    injection.join(GROUP + 1, 4, 3)
    injection.on_heard(0.0, GROUP + 1, 0, WRITE)
    for group, cost in ((UNICAST, 9), (GROUP, 9), (GROUP + 1, 9 + 9)):
        before = injection.requests.tokens(0.0)
        injection.on_sent(0.0, group, WRITE)
        assert before - injection.requests.tokens(0.0) == cost


def test_shares_of_reads_and_writes_are_those_of_multicast_operations() -> None:
    injection = three_cpo()
    injection.on_sent(0.0, UNICAST, WRITE)  # the probe
    injection.on_heard(0.0, GROUP, 0, READ)
    injection.on_sent(0.0, GROUP, READ)
    injection.on_answered(1000.0, UNICAST, WRITE, 1000.0, True)
    assert injection.request_watermark.equivalent == pytest.approx(2468 * (1 + 8) / 1000)  # no writes: scaled by 9
    assert injection.response_watermark.equivalent == pytest.approx(2468 * 9 / 1000)
    injection.on_sent(1000.0, GROUP, WRITE)  # the next probe: what was sent before the last one counts no more
    injection.on_heard(1000.0, GROUP, 0, WRITE)
    injection.on_answered(2000.0, GROUP, WRITE, 1000.0, True)
    assert injection.request_watermark.equivalent == pytest.approx(2468 * 9 / 1000)
    assert injection.response_watermark.equivalent == pytest.approx(2468 * (1 + 8) / 1000)


def test_remote_operations_cost_less_while_latencies_are_low() -> None:
    for latency, cost in ((500.0, 0.8), (1000.0, 0.8), (1500.0, 0.9), (2000.0, 1.0), (9000.0, 1.0)):
        injection = three_cpo()
        assert injection.remote_cost() == 1.0
        assert ThreeCpo(ThreeCpoParameters(first_cost=0.8), 0.0).remote_cost() == 0.8
        injection.on_sent(0.0, GROUP, READ)
        injection.on_answered(latency, GROUP, READ, latency, True)
        assert injection.remote_cost() == pytest.approx(cost)
        injection.on_answered(latency, GROUP, READ, -1.0, False)  # not known
        assert injection.remote_cost() == pytest.approx(cost)


def test_a_remote_operation_stays_for_an_rtt_and_the_gap_between_sends() -> None:
    for now, cost in ((1999.0, 9 + 3 * 9), (2000.0, 9)):
        injection = three_cpo()
        injection.on_sent(0.0, GROUP, WRITE)
        injection.on_sent(500.0, GROUP, WRITE)
        injection.on_answered(500.0, GROUP, WRITE, 500.0, False)
        injection.on_answered(500.0, GROUP, WRITE, 500.0, False)  # RTT and gap: 500 each
        for source in range(3):
            injection.on_heard(1000.0, GROUP, source, WRITE)
        before = injection.requests.tokens(now)
        injection.on_sent(now, GROUP, WRITE)
        paid_cost = 9 + (cost - 9) * 0.8
        assert before - injection.requests.tokens(now) == pytest.approx(paid_cost)


def test_a_remote_operation_stays_for_1000_cycles_while_no_latency_is_known() -> None:
    for now, cost in ((999.0, 9 + 9), (1000.0, 9)):
        injection = three_cpo()
        injection.on_heard(0.0, GROUP, 0, WRITE)
        before = injection.requests.tokens(now)
        injection.on_sent(now, GROUP, WRITE)
        assert before - injection.requests.tokens(now) == cost


def test_what_is_repeated_costs_its_own_flits_again() -> None:
    injection = three_cpo()
    injection.on_sent(0.0, GROUP, WRITE)
    injection.on_heard(0.0, GROUP, 0, WRITE)
    before = (injection.requests.tokens(0.0), injection.responses.tokens(0.0))
    injection.on_repeated(0.0, WRITE, False)
    assert (injection.requests.tokens(0.0), injection.responses.tokens(0.0)) == (before[0] - 9, before[1] - 1)


def test_a_read_needs_both_tokens_and_a_write_those_of_requests() -> None:
    injection = three_cpo()
    injection.on_sent(0.0, UNICAST, READ)  # 1 request and 9 response flits
    assert injection.ready_at(WRITE) <= 1.0 < injection.ready_at(READ)
    other = ThreeCpo(ThreeCpoParameters(needs="both"), 0.0)
    other.on_sent(0.0, UNICAST, READ)
    assert other.ready_at(WRITE) == other.ready_at(READ) == pytest.approx(9.0)
    large = ThreeCpo(ThreeCpoParameters(needs="large"), 0.0)
    large.on_sent(0.0, UNICAST, WRITE)
    assert large.ready_at(READ) == pytest.approx(1.0)
    assert large.ready_at(WRITE) == pytest.approx(9.0)


@pytest.mark.parametrize("needs", ["reads-both", "both", "large"])
def test_a_push_costs_and_needs_nine_flits_each_way(needs: str) -> None:
    injection = ThreeCpo(ThreeCpoParameters(needs=needs), 0.0)
    injection.join(GROUP, 4, 0)
    injection.on_sent(0.0, GROUP, PUSH)
    assert (injection.requests.tokens(0.0), injection.responses.tokens(0.0)) == (-8.0, -8.0)
    injection.requests.set_share(0.0, 0.5)
    assert injection.ready_at(PUSH) == pytest.approx(18.0)
    injection.requests.set_share(0.0, 1.0)
    injection.responses.set_share(0.0, 0.5)
    assert injection.ready_at(PUSH) == pytest.approx(18.0)
    injection.on_answered(900.0, GROUP, PUSH, 900.0, True)
    assert injection.unanswered == [0, 0, 0]


def test_one_operation_at_a_time_is_a_probe_and_a_repeated_one_is_none() -> None:
    injection = three_cpo()
    assert [injection.on_sent(0.0, GROUP, READ) for _ in range(3)] == [True, False, False]
    injection.on_answered(900.0, GROUP, READ, 900.0, True)
    assert injection.on_sent(900.0, GROUP, READ)
    injection.on_repeated(5000.0, READ, True)
    assert injection.on_sent(5000.0, GROUP, READ)


def test_as_many_operations_of_a_kind_as_the_window_says() -> None:
    injection = Injection(2)
    injection.on_sent(0.0, GROUP, READ)
    assert injection.ready_at(READ) == 0.0
    injection.on_sent(0.0, GROUP, READ)
    assert (injection.ready_at(READ), injection.ready_at(WRITE)) == (NEVER, 0.0)
    injection.on_answered(900.0, GROUP, READ, 900.0, False)
    assert injection.ready_at(READ) == 0.0


@pytest.mark.parametrize(
    ("latency", "watermark"),
    [(1999.0, 1050.0), (2000.0, 1000.0), (3500.0, 750.0), (5000.0, 500.0), (9000.0, 500.0)],
)
def test_aimd_by_the_latency_of_its_probe(latency: float, watermark: float) -> None:
    injection = Aimd(AimdParameters(wm_start=1000.0), 0.0)
    assert injection.on_sent(0.0, GROUP, READ)
    injection.on_answered(latency, GROUP, READ, latency, True)
    assert injection.watermark == pytest.approx(watermark)
    assert injection.requests.share == injection.responses.share == pytest.approx(watermark / 2468)
