"""The page in a headless Chromium: it loads, the slider moves the picture, and its numbers equal the tables'."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports import write_report
from reports.replay import recorded_page
from tests.reports.replay.runs import DOWN_NS, TRACED, UP_NS, in_pods, watched

sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
LOAD_MS = 60_000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield the page, which has loaded without a console message."""
    file = tmp_path_factory.mktemp("replay") / "replay.html"
    file.write_bytes(recorded_page(watched()))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        found = browser.new_page(viewport={"width": 1000, "height": 700})
        told: list[str] = []
        found.on("console", lambda message: told.append(message.text))
        found.on("pageerror", lambda error: told.append(str(error)))
        found.on("request", lambda request: told.append(request.url))
        found.goto(file.as_uri())
        found.wait_for_function("window.replay && replay.recording", timeout=LOAD_MS)
        yield found
        assert [line for line in told if not line.startswith("data:")] == [file.as_uri()]
        browser.close()


def seek(page: Any, time_ns: int) -> None:
    """Move to a time as the slider does, and return when the next frame is drawn."""
    page.evaluate(
        """time => { const slider = document.getElementById("time"); replay.show(0, replay.recording.end);
        slider.value = time; slider.dispatchEvent(new Event("input"));
        return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))); }""",
        time_ns,
    )


def find(page: Any, name: str) -> None:
    page.fill("#find", name)
    page.dispatch_event("#find", "change")


def shown(page: Any, key: str) -> list[int]:
    return [int(text.replace(",", "")) for text in page.locator(f'#numbers [data-key="{key}"]').all_inner_texts()]


def picture(page: Any) -> str:
    drawn: str = page.evaluate('document.getElementById("network").toDataURL()')
    return drawn


def test_the_slider_moves_the_picture(page: Any) -> None:
    pictures = []
    for time_ns in (0, 2_000, (DOWN_NS + UP_NS) // 2):
        seek(page, time_ns)
        pictures.append(picture(page))
    assert len(set(pictures)) == 3
    seek(page, 2_000)
    assert picture(page) == pictures[1]


def test_lines_are_drawn_anew_where_they_change_and_only_there(page: Any) -> None:
    """Check that lines do not change within an interval, unless a link fails or an item is selected."""
    drawn = "window.before = replay.drawn"
    same = "window.before === replay.drawn"
    seek(page, 2_200)
    page.evaluate(drawn)
    seek(page, 2_700)
    assert page.evaluate(same)
    seek(page, 3_200)
    assert not page.evaluate(same)
    seek(page, DOWN_NS - 100)
    page.evaluate(drawn)
    seek(page, DOWN_NS)
    assert not page.evaluate(same)
    page.evaluate(drawn)
    find(page, "s0 – s1")
    assert not page.evaluate(same)


def test_an_address_that_changes_moves_an_open_page(page: Any) -> None:
    page.evaluate("location.hash = 't=3456&show=s0'")
    page.wait_for_function("replay.time === 3456 && document.getElementById('what').textContent === 's0'")


def test_the_slider_is_above_the_strip_s_cursor(page: Any) -> None:
    page.evaluate("replay.show(0, replay.recording.end)")
    box = page.locator("#time").bounding_box()
    end_ns, thumb = page.evaluate("replay.recording.end"), 16  # pixels, of Chromium's
    for share in (0, 0.25, 1):
        seek(page, round(share * end_ns))
        cursor = page.evaluate('document.querySelector("#strip .cursor").getBoundingClientRect().x')
        assert cursor == pytest.approx(box["x"] + thumb / 2 + share * (box["width"] - thumb), abs=1), share


def test_numbers_of_a_link_are_those_of_the_tables(page: Any) -> None:
    links = watched().table("links")
    find(page, "s0 – s1")
    for time_ns in sorted(set(links["time_ns"]))[:12]:
        seek(page, int(time_ns))
        now = links[links["time_ns"] == time_ns]
        for name in ("tx_bytes", "paused_ns", "marked", "dropped"):
            sides = [now[(now["node"] == a) & (now["leads_to"] == b)] for a, b in (("s0", "s1"), ("s1", "s0"))]
            assert shown(page, name) == [side[name].sum() for side in sides], (time_ns, name)
        down = page.locator("#numbers .bad").count() == 1
        assert down == (DOWN_NS <= time_ns < UP_NS)


def test_the_strip_is_as_high_as_what_hosts_send(page: Any) -> None:
    links = watched().table("links")
    sent = links[links["node"].astype(str).str.startswith("h")].groupby("time_ns")[["tx_bytes", "interval_ns"]]
    rates = sent.sum()["tx_bytes"] / sent.first()["interval_ns"]
    shares = rates / rates.max()
    middles = rates.index - sent.first()["interval_ns"] / 2
    assert shares.nunique() > 3
    found = page.evaluate(
        """middles => { const area = document.querySelector("#strip .area"), box = area.getBBox();
        const top = time => { const x = replay.stripX(time / 1e3);
            for (let y = box.y; y < box.y + box.height; y += 0.25)
                if (area.isPointInFill(new DOMPoint(x, y))) return 1 - (y - box.y) / box.height;
            return 0; };
        return middles.map(top); }""",
        middles.tolist(),
    )
    assert found == pytest.approx(shares.tolist(), abs=0.02)  # a quarter of a pixel is 0.007


def test_queues_of_a_switch_are_those_of_the_table(page: Any) -> None:
    queues = watched().queues
    find(page, "s0")
    for time_ns in (1_500, 3_000, 4_500):
        seek(page, time_ns)
        expected = queues.loc[(queues["switch"] == "s0") & (queues["time_ns"] == time_ns), "depth_bytes"].sum()
        assert shown(page, "queued") == [expected]
    assert expected > 0


def test_a_box_is_full_at_the_most_that_a_switch_held(page: Any) -> None:
    most = watched().queues.groupby(["switch", "time_ns"], observed=True)["depth_bytes"].sum().max()
    assert page.evaluate("replay.recording.mostSwitch") == most
    assert f"full box = {most:,} B" in page.inner_text("#legend")


def test_a_link_that_is_busy_for_longer_than_an_interval_is_not_cut(page: Any) -> None:
    links = watched().table("links")
    share = links["busy_ns"] / links["interval_ns"]
    assert share.max() > 0
    shown = page.evaluate(
        """() => { const r = replay.recording, busy = r.arrays.link_busy_ns, kept = busy[0];
        busy[0] = 2 * r.arrays.link_interval[0];
        const found = r.busy(r.arrays.link[0], 0);
        busy[0] = kept;
        return [found, replay.busyColour(found) === replay.busyColour(1)]; }"""
    )
    assert shown == [2, True]


def test_flows_that_begin_later_are_found(page: Any) -> None:
    """Check a run in progress, whose next recording has one flow more."""
    found = page.evaluate(
        """() => { const r = replay.recording, a = r.arrays;
        const names = () => [...document.querySelectorAll("#names option")].map(each => each.value);
        const before = Object.assign(Object.create(Object.getPrototypeOf(r)), r, {flowCount: r.flowCount - 1});
        replay.load(before);
        const few = names();
        replay.load(r);
        return [few, names()]; }"""
    )
    few, all_of_them = found
    last = len(watched().flows) - 1
    assert set(all_of_them) - set(few) == {f"flow {last}"}
    assert len(all_of_them) == len(set(all_of_them))


def test_zoom_goes_down_to_a_microsecond(page: Any) -> None:
    seek(page, 3_000)
    for _ in range(12):
        page.click("#in")
    begin, end = page.evaluate("replay.window")
    assert end - begin == pytest.approx(1000)
    assert begin <= 3_000 <= end
    page.click("#all")
    assert page.evaluate("replay.window")[0] == 0


def test_a_click_on_a_host_opens_its_plots(page: Any) -> None:
    at = page.evaluate('replay.at(replay.layout.markOf[replay.recording.nodes.find(node => node.name === "h0-1-2").i])')
    page.locator("#network").click(position={"x": at[0], "y": at[1]})
    assert page.inner_text("#what") == "h0-1-2"
    assert page.locator("svg.plot path.line").count() == 2


def test_a_flow_and_its_packets_are_followed(page: Any) -> None:
    flow = watched().flows.iloc[TRACED]
    find(page, f"flow {TRACED}")
    assert page.inner_text('[data-key="from"]') == flow["source"]
    assert page.inner_text('[data-key="size_bytes"]') == f"{flow['size_bytes']:,} B"
    on_path = page.evaluate("[...replay.path].map(direction => replay.recording.label(direction))")
    assert sorted(on_path) == ["h0-1-2 → s1", "s0 → h0-0-2", "s1 → s0"]
    find(page, "packet 3")
    assert page.locator("#hops > li").count() == 8
    assert "ipv4_lpm" in page.inner_text("#hops")
    page.locator("#hops > li > a").nth(4).click()  # arrives at s0
    assert page.locator("#hops > li.on").count() == 1
    assert page.evaluate("replay.recording.nodes[replay.recording.whereabouts(3, replay.time).node].name") == "s0"


def test_a_report_opens_the_page_of_a_small_run(page: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    write_report([watched()], file)
    report = page.context.browser.new_page()
    told: list[str] = []
    report.on("pageerror", lambda error: told.append(str(error)))
    report.goto(file.as_uri())
    report.click("details.replay summary")
    # On dark paper drawings are turned dark; the colours of heat maps, which have a meaning, are turned back.
    report.emulate_media(color_scheme="dark")
    filters = report.eval_on_selector_all(
        "figure svg, figure svg image",
        "all => [...new Set(all.map(one => `${one.tagName} ${getComputedStyle(one).filter}`))]",
    )
    assert sorted(filters) == ["image invert(1) hue-rotate(180deg)", "svg invert(0.92) hue-rotate(180deg)"]
    frame = report.frame_locator("details.replay iframe")
    frame.locator("#what").wait_for(timeout=LOAD_MS)
    assert frame.locator("h1").inner_text() == watched().summary["title"]
    # All of the page is shown: the legend is its end.
    report.wait_for_function(
        """() => {
            const frame = document.querySelector("details.replay iframe");
            const legend = frame.contentDocument.getElementById("legend").getBoundingClientRect();
            return legend.height > 0 && legend.bottom <= frame.clientHeight;
        }""",
        timeout=LOAD_MS,
    )
    assert told == []
    report.close()


def test_it_plays_to_the_end_of_the_window(page: Any) -> None:
    page.evaluate("replay.show(0, replay.recording.end); replay.seek(0)")
    page.evaluate('document.getElementById("speed").options[0].value = "0.2"')
    page.select_option("#speed", "0.2")
    page.click("#play")
    page.wait_for_function("!replay.playing && replay.time === replay.window[1]", timeout=LOAD_MS)


def test_the_button_says_what_it_does_with_pods(page: Any) -> None:
    words = []
    for _ in range(3):
        words.append(page.evaluate("[replay.open.size > 0, document.getElementById('pods').textContent]"))
        page.evaluate("replay.parts = new Set([0]); replay.togglePods()")
    assert words[1] != words[2]
    assert all(text == ("close pods" if opened else "open pods") for opened, text in words)


def test_closed_pods_and_planes_are_a_mark_each(page: Any, tmp_path: Path) -> None:
    """A plane consists of the switches above pods with links to the same switches."""
    file = tmp_path / "pods.html"
    file.write_bytes(recorded_page(in_pods()))
    other = page.context.browser.new_page()
    told: list[str] = []
    other.on("pageerror", lambda error: told.append(str(error)))
    other.goto(file.as_uri())
    other.wait_for_function("window.replay && replay.recording", timeout=LOAD_MS)
    assert other.evaluate("replay.layout.marks.length") == 16 + 20  # all is open in a network as small as this
    other.click("#pods")
    assert other.evaluate("[replay.layout.marks.length, replay.layout.lines.length]") == [4 + 2, 4 * 2]
    find(other, "plane 1")
    assert other.inner_text("#what") == "Plane 1"
    assert "hosts" not in other.inner_text("#numbers")
    other.click("#numbers a")
    assert other.evaluate("[replay.layout.marks.length, replay.layout.lines.length]") == [4 + 1 + 2, 4 * 3]
    find(other, "pod 2")
    assert "hosts" in other.inner_text("#numbers")
    assert told == []
    other.close()
