"""zc report: the page's tables and plots have the figures of the JSON file, its texts are harmless, and bad files are refused."""

import copy
import html.parser
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ZC = sys.argv[1]
SAMPLE = pathlib.Path(sys.argv[2])
PLACES = {"out_of_place": "out of place", "in_place": "in place"}
NONE = "\N{EN DASH}"
VOID = {"meta", "br"}
HOSTILE = "</td></text><script>alert(1)</script><img src=x onerror='a'>\"&amp;\x01\N{SNOWMAN}"


def number(value):
    """As the page writes it: four digits, or all before the point."""
    if value == 0:
        return "0"
    return f"{value:.{min(max(3 - math.floor(math.log10(value)), 0), 9)}f}"


def size(value):
    unit = 0
    while value >= 1024 and unit < 4:
        value, unit = value / 1024, unit + 1
    return f"{value:.2f}".rstrip("0").rstrip(".") + " " + ("B", "KiB", "MiB", "GiB", "TiB")[unit]


class Page(html.parser.HTMLParser):
    """Sections with their heading, words below it, tables and drawings. Refuses tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.facts, self.sections = [], set(), [], []
        self.words = {}  # text since the tag of that name was opened
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.add(tag)
        if tag in VOID:
            return
        self.open.append(tag)
        self.words[tag] = ""
        if tag == "section":
            self.sections.append({"tables": [], "lines": [], "bands": [], "marks": [], "notes": []})
        elif tag == "table":
            self.sections[-1]["tables"].append([])
        elif tag == "tr":
            self.sections[-1]["tables"][-1].append([])
        elif tag in ("polyline", "polygon"):
            points = [tuple(map(float, point.split(","))) for point in attributes["points"].split()]
            self.sections[-1]["lines" if tag == "polyline" else "bands"].append((attributes["class"].split(), points))
        elif tag == "g" and "transform" in attributes:
            place = re.fullmatch(r"translate\(([\d.]+),([\d.]+)\)", attributes["transform"])
            self.sections[-1]["marks"].append([attributes["class"].split(), tuple(map(float, place.groups())), ""])

    def handle_startendtag(self, tag, attrs):
        if tag in ("polyline", "polygon"):
            self.handle_starttag(tag, attrs)
            self.open.pop()
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()
        text = self.words[tag]
        if tag in ("td", "th"):
            self.sections[-1]["tables"][-1][-1].append(text)
        elif tag == "dd":
            self.facts.append((self.words["dt"], text))
        elif tag == "h2":
            self.sections[-1]["heading"] = text
        elif tag == "p" and self.sections:
            self.sections[-1].setdefault("what", text)
        elif tag == "title" and "svg" in self.open:
            self.sections[-1]["marks"][-1][2] = text
        elif tag == "li" and "ul" in self.open and self.sections:
            self.sections[-1]["notes"].append(text)

    def handle_data(self, data):
        for tag in set(self.open):
            self.words[tag] += data


def time_cell(figures):
    cell = number(figures["time"]) + ("*" if "by" in figures else "")
    if figures.get("time_p10") is not None and figures.get("time_p90") is not None:
        cell += f" ({number(figures['time_p10'])}{NONE}{number(figures['time_p90'])})"
    return cell


def optional(figures, key):
    return NONE if figures.get(key) is None else number(figures[key])


def wrong_cell(figures):
    return NONE if figures.get("wrong") is None else str(figures["wrong"])


def busbw(place, time):
    return place["bus_bw"] * place["time"] / time


def expected_sections(data):
    """{(heading, what): [(row of the table, (size, place, figures))]} from the JSON alone."""
    sections = {}
    config = data["config"]
    for row in data["results"]:
        for key, words in PLACES.items():
            if row[key] is None:
                continue
            heading = f"{row['collective']}, {config['ranks']} ranks, {words}"
            what = ("no data" if row["type"] == "none" else row["type"]) + ("" if row["redop"] == "none" else f", {row['redop']}")
            what += ("" if row["root"] == "-1" else f", root {row['root']}") + f", {config['memory']} memory, {config['timing']}"
            sections.setdefault((heading, what), []).append((row, row[key]))
    return sections


def differences(data, page):
    """Where the page says something else than the JSON."""
    wrong = []

    def same(what, found, expected):
        if found != expected:
            wrong.append(f"{what}: {found!r} instead of {expected!r}")

    sections = expected_sections(data)
    same("sections", [(s["heading"], s["what"]) for s in page.sections], list(sections))
    for section, ((heading, _), rows) in zip(page.sections, sections.items()):
        peers = list(dict.fromkeys(name for _, place in rows for name in place["peers"]))
        same(heading, len(section["tables"]), 1)
        table = section["tables"][0]
        same(heading, table[0][1:], ["zerocomm", *peers])
        same(heading, len(table), len(rows) + 2)
        for cells, (row, place) in zip(table[2:], rows):
            expected = [size(row["size"]), str(row["count"]), time_cell(place), number(place["bus_bw"])]
            expected += [optional(place, key) for key in ("stream_percent", "bound_percent", "skew_us")] + [wrong_cell(place)]
            for name in peers:
                peer = place["peers"].get(name, {"unsupported": ""})
                if "unsupported" in peer:
                    expected += [NONE] * 4
                    continue
                expected += [time_cell(peer), number(busbw(place, peer["time"])), optional(peer, "ratio"), wrong_cell(peer)]
            same(f"{heading}, {size(row['size'])}", cells, expected)
    return wrong


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.data = json.loads(SAMPLE.read_text(encoding="utf-8"))

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def run_zc(self, *arguments):
        return subprocess.run([ZC, "report", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)

    def page(self, *data):
        files = []
        for i, one in enumerate(data):
            files.append(self.path(f"{i}.json"))
            files[-1].write_text(json.dumps(one), encoding="utf-8")
        run = self.run_zc(*files, "-o", self.path("page.html"))
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))
        text = self.path("page.html").read_text(encoding="utf-8")
        return Page(text), text

    def refused(self, pattern, *files):
        run = self.run_zc(*files, "-o", self.path("none.html"))
        self.assertEqual((run.returncode, run.stdout), (2, ""), pattern)
        self.assertRegex(run.stderr, rf"\Azc: {pattern}\n\Z")
        self.assertFalse(self.path("none.html").exists())

    def test_tables_have_the_figures_of_the_file(self):
        page, _ = self.page(self.data)
        self.assertEqual(differences(self.data, page), [])

    def test_the_comparison_sees_every_figure_that_differs(self):
        page, _ = self.page(self.data)
        changed = 0
        for i, row in enumerate(self.data["results"]):
            for key in [key for key in PLACES if row[key] is not None]:
                names = [None, *row[key]["peers"]]
                for name in names:
                    figures = row[key] if name is None else row[key]["peers"][name]
                    for what, value in figures.items():
                        if what in ("alg_bw", "nwrong") or not isinstance(value, (int, float)):
                            continue
                        other = copy.deepcopy(self.data)
                        place = other["results"][i][key]
                        (place if name is None else place["peers"][name])[what] = value * 1.01 if value else 1
                        self.assertNotEqual(differences(other, page), [], (i, key, name, what))
                        changed += 1
            for what in ("size", "count"):
                other = copy.deepcopy(self.data)
                other["results"][i][what] = row[what] * 2 + 4
                self.assertNotEqual(differences(other, page), [], (i, what))
        self.assertGreater(changed, 200)

    def test_plots_have_the_figures_of_the_file(self):
        page, _ = self.page(self.data)
        for section, ((heading, _), rows) in zip(page.sections, expected_sections(self.data).items()):
            rows = [(row, place) for row, place in rows if place["bus_bw"] > 0]
            marks = {(mark[2].split(",")[0], mark[2].split(", ")[1].split(":")[0]): mark for mark in section["marks"] if mark[2]}
            expected = {}
            for row, place in rows:
                for name, figures in {"zerocomm": place, **place["peers"]}.items():
                    if "unsupported" not in figures:
                        expected[name, size(row["size"])] = (row["size"], busbw(place, figures["time"]), figures)
            self.assertEqual(set(marks), set(expected), heading)
            if len(rows) < 2:
                continue
            for key, (_, bandwidth, figures) in expected.items():
                self.assertEqual(marks[key][2], f"{key[0]}, {key[1]}: {number(bandwidth)} GB/s, {number(figures['time'])} us")
            # Two marks that differ both ways fix the scales; everything else must lie on them.
            low, high = (pick(expected, key=lambda key: expected[key][:2]) for pick in (min, max))
            ax, bx = math.log2(expected[low][0]), math.log2(expected[high][0])
            ay, by = math.log10(expected[low][1]), math.log10(expected[high][1])
            (px, py), (qx, qy) = marks[low][1], marks[high][1]
            self.assertTrue(qx > px + 100 and qy < py - 30, (heading, px, py, qx, qy))

            def spot(bytes_, bandwidth):
                return (
                    px + (math.log2(bytes_) - ax) / (bx - ax) * (qx - px),
                    py + (math.log10(bandwidth) - ay) / (by - ay) * (qy - py),
                )

            def near(found, wanted, what):
                self.assertEqual(len(found), len(wanted), what)
                for one, other in zip(found, wanted):
                    self.assertTrue(abs(one[0] - other[0]) < 0.5 and abs(one[1] - other[1]) < 0.5, (what, one, other))

            for key, (bytes_, bandwidth, _) in expected.items():
                near([marks[key][1]], [spot(bytes_, bandwidth)], key)
            for name in {key[0] for key in expected}:
                points = sorted((value for key, value in expected.items() if key[0] == name), key=lambda value: value[0])
                style = next(mark[0][1] for key, mark in marks.items() if key[0] == name)
                line = [points_ for classes, points_ in section["lines"] if classes == ["line", style]]
                near(line[0], [spot(*point[:2]) for point in points], (heading, name))
                edges = [[spot(b, w * f["time"] / f[which]) for b, w, f in points] for which in ("time_p10", "time_p90")]
                band = [points_ for classes, points_ in section["bands"] if classes == ["band", style]]
                near(band[0], edges[0] + edges[1][::-1], (heading, name))
            for which in ("stream", "bound"):
                whole = [(row["size"], place["bus_bw"] * 100 / place[which + "_percent"]) for row, place in rows
                         if place[which + "_percent"]]
                line = [points for classes, points in section["lines"] if classes == ["limit", which]]
                near(line[0], [spot(*point) for point in whole], (heading, which))

    def test_the_head_says_what_was_run_where_and_when(self):
        page, _ = self.page(self.data)
        facts = dict(page.facts)
        self.assertEqual(facts["command"], " ".join(self.data["args"]))
        self.assertEqual(facts["machine"], "node7, A processor & its cache")
        self.assertEqual(facts["date"], self.data["start_time"])
        self.assertEqual(facts["commit"], self.data["commit"])
        self.assertEqual(facts["program"], self.data["program"])
        self.assertEqual(facts["zerocomm"], self.data["library"])
        self.assertEqual({name: facts[name] for name in self.data["peer_libraries"]}, self.data["peer_libraries"])
        self.assertEqual((facts["triad"], facts["wrong results"]), ("14.25 GB/s", "3"))

    def test_notes_say_what_a_peer_did_instead_or_why_it_has_no_figures(self):
        page, _ = self.page(self.data)
        notes = [note for section in page.sections for note in section["notes"]]
        self.assertIn("* mpich was measured by another call or type: f32, all_reduce", notes)
        self.assertIn("gloo has no figures at some sizes: it has no bf16", notes)

    def test_the_page_needs_nothing_else(self):
        page, text = self.page(self.data)
        self.assertFalse(page.tags & {"script", "link", "img", "iframe", "object", "embed", "image", "use", "a"})
        self.assertNotRegex(text, r"(?i)https?:|\burl\(|@import|\bsrc=|\bhref=")
        self.assertIn("prefers-color-scheme: dark", text)

    def test_hostile_texts_are_texts(self):
        plain, _ = self.page(self.data)
        shown = HOSTILE.replace("\x01", " ")

        def poison(node):
            if isinstance(node, dict):
                return {key: poison(value) for key, value in node.items()}
            if isinstance(node, list):
                return [poison(value) for value in node]
            return HOSTILE if isinstance(node, str) else node

        data = poison(self.data)
        data["peer_libraries"] = {HOSTILE: HOSTILE}
        for row in data["results"]:
            for place in filter(None, (row[key] for key in PLACES)):
                place["peers"] = {HOSTILE + name: peer for name, peer in place["peers"].items()}
        page, text = self.page(data)
        self.assertEqual(page.tags, plain.tags)
        self.assertNotIn("\x01", text)
        self.assertIn((shown, shown), page.facts)
        self.assertIn(f"{shown}, 2 ranks, in place", [section["heading"] for section in page.sections])
        self.assertIn(f"{shown}mpich", page.sections[0]["tables"][0][0])
        self.assertTrue(any(mark[2].startswith(f"{shown}mpich, 8 B: ") for mark in page.sections[0]["marks"]))

    def test_several_files_share_plots_and_have_tables_of_their_own(self):
        other = copy.deepcopy(self.data)
        for row in other["results"]:
            for place in filter(None, (row[key] for key in PLACES)):
                place["time"] *= 2
        page, _ = self.page(self.data, other)
        self.assertEqual([len(section["tables"]) for section in page.sections], [2] * len(expected_sections(self.data)))
        for which, data in enumerate((self.data, other)):
            part = copy.deepcopy(page)
            for section in part.sections:
                section["tables"] = [section["tables"][which]]
            self.assertEqual(differences(data, part), [])
        lines = [classes for classes, _ in page.sections[0]["lines"] if "s0" in classes]
        self.assertEqual(lines, [["line", "s0"], ["line", "s0", "later"]])

    def test_without_a_file_for_it_the_page_goes_to_standard_output(self):
        run = self.run_zc(SAMPLE)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(differences(self.data, Page(run.stdout)), [])

    def test_files_that_are_none_are_refused_in_one_line(self):
        bad = self.path("bad.json")
        self.refused(re.escape(f"{self.path('absent.json')}: No such file or directory"), self.path("absent.json"))
        self.refused(re.escape(f"{self.folder.name}: Is a directory"), self.folder.name)
        for text, pattern in (
            ("", "not JSON: .+"),
            ("once upon a time", "not JSON: .+"),
            (json.dumps(self.data)[:-40], "not JSON: .+"),
            ('{"results": [1e999]}', "not JSON: .+"),
            ("[]", 'not a file of zc bench -J: it has no list "results"'),
            ('{"format": "zc.model"}', 'not a file of zc bench -J: it has no list "results"'),
            ('{"results": {}}', 'not a file of zc bench -J: it has no list "results"'),
            ('{"results": [], "config": {}}', 'its list "results" is empty'),
            ('{"results": [3], "config": {}}', r"results\[0\] is no object"),
            ('{"results": [3]}', 'the file has no "config"'),
        ):
            bad.write_text(text, encoding="utf-8")
            self.refused(f"{re.escape(str(bad))}: {pattern}", SAMPLE, bad)
        bad.write_text('["' + "long" * 10000, encoding="utf-8")
        self.refused(f"{re.escape(str(bad))}: not JSON: .{{20,203}}", bad)
        bad.write_bytes(b'{"results": "\xff\xfe"}')
        self.refused(f"{re.escape(str(bad))}: not JSON: .+", bad)

    def test_keys_that_are_missing_or_something_else_are_named(self):
        def change(where, key, *value):
            data = copy.deepcopy(self.data)
            node = data
            for step in where:
                node = node[step]
            if value:
                node[key] = value[0]
            else:
                del node[key]
            path = self.path("bad.json")
            path.write_text(json.dumps(data), encoding="utf-8")
            return path

        row, place, peer = ["results", 1], ["results", 1, "in_place"], ["results", 1, "in_place", "peers", "gloo"]
        for where, keys in ((["config"], ["ranks"]), (row, ["collective", "type", "size", "count"]),
                            (place, ["time", "bus_bw"]), (peer, ["time"])):
            for key in keys:
                self.refused(rf'.*bad.json: \S+ has no "{key}"', change(where, key))
                self.refused(rf'.*bad.json: \S+ has a "{key}" that is not a .+', change(where, key, ["?"]))
        for where, key, value in ((place, "time_p10", "3"), (place, "skew_us", -1), (place, "wrong", 0.5), (peer, "ratio", {}),
                                  (peer, "by", 4), (row, "root", 0), (row, "size", -8)):
            self.refused(rf'.*bad.json: \S+ has a "{key}" that is not a .+', change(where, key, value))
        self.refused(r'.*results\[1\].in_place has a "time" of 0', change(place, "time", 0))
        self.refused(r".*results\[1\].in_place is no object", change(row, "in_place", 5))
        self.refused(r'.*results\[9\] has neither "out_of_place" nor "in_place"', change(["results", 9], "out_of_place", None))

    def test_a_page_that_cannot_be_written_is_a_failure(self):
        run = self.run_zc(SAMPLE, "-o", self.path("absent") / "page.html")
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"\Azc: .*page.html: cannot be written: No such file or directory\n\Z")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
