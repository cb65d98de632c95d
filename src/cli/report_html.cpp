// The page of zc report: what was run, then for every group a plot and a table of the same figures.
#include "cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace zerocomm::cli {
namespace {

// Colours that differ for the colour-blind as well; shapes differ too.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c1e21; --soft: #5c6370; --rule: #d8dce2; --stripe: #f4f6f8;
  --s0: #0062b8; --s1: #c44e00; --s2: #8f6a00; --s3: #00785a; --s4: #a8417f; --s5: #5b4bb0; --s6: #4d6b1c; --s7: #7a4a34; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181c; --ink: #e6e8eb; --soft: #a0a7b3; --rule: #383d46; --stripe: #1e2127;
    --s0: #5db2ff; --s1: #ff9350; --s2: #e3bd46; --s3: #3fcfa2; --s4: #ec8fc7; --s5: #ab9dff; --s6: #a9cc6c; --s7: #d9a288; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 20px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5em; margin: 0 0 .5em; }
h2 { font-size: 1.15em; margin: 2.2em 0 .2em; padding-top: .8em; border-top: 1px solid var(--rule); }
h3 { font-size: 1em; margin: 1.2em 0 .3em; }
p.what { margin: 0 0 .6em; color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15em 1em; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
dd.code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9em; }
ul.legend { display: flex; flex-wrap: wrap; gap: .2em 1.4em; list-style: none; margin: .4em 0; padding: 0; }
ul.legend svg { width: 34px; height: 14px; vertical-align: -2px; margin-right: .4em; }
.scroll { overflow-x: auto; }
.plot svg { display: block; width: 100%; min-width: 400px; max-width: 940px; height: auto; }
svg text { fill: var(--soft); font-size: 13px; }
.grid { stroke: var(--rule); stroke-width: 1; }
.frame { fill: none; stroke: var(--soft); stroke-width: 1; }
.line { fill: none; stroke: var(--c); stroke-width: 2; }
.line.s0 { stroke-width: 3; }
.band { fill: var(--c); opacity: .16; }
.mark { fill: var(--c); stroke: var(--paper); stroke-width: 1; }
.limit { fill: none; stroke: var(--ink); stroke-width: 1.6; }
.bound { stroke-dasharray: 8 5; } .stream { stroke-dasharray: 2 4; }
.later { opacity: .5; } .band.later { opacity: .08; }
table { border-collapse: collapse; font-size: .86em; font-variant-numeric: tabular-nums; margin: .6em 0 .3em; }
caption { text-align: left; color: var(--soft); padding-bottom: .3em; }
th, td { padding: .22em .6em; text-align: right; white-space: nowrap; }
th { font-weight: 600; } thead tr:first-child th { text-align: left; } thead tr:last-child th { font-weight: 400; color: var(--soft); border-bottom: 1px solid var(--rule); }
tbody tr:nth-child(even) { background: var(--stripe); }
th.first, td.first { border-left: 1px solid var(--rule); }
td small { color: var(--soft); }
tbody th { position: sticky; left: 0; background: inherit; } tbody tr { background: var(--paper); }
td.bad { font-weight: 700; color: var(--s1); }
@media (max-width: 720px) { .plot svg text { font-size: 19px; } .plot svg text.odd { display: none; } }
ul.notes { margin: .2em 0; padding-left: 1.2em; color: var(--soft); font-size: .9em; }
)";
// One rule for each series that report_series() names.
std::string series_style() {
  std::string style;
  for (int i = 0; i < 8; ++i) fmt::format_to(std::back_inserter(style), ".s{0} {{ --c: var(--s{0}); }} ", i);
  return style + "\n";
}

constexpr const char* kNone = "&ndash;";

using Notes = std::vector<std::string>;

void add_note(Notes& notes, const std::string& note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

class Page {
 public:
  explicit Page(const Report& report) : report_(report) {}

  std::string write() {
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    put("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n", title());
    text_ += std::string("<style>") + kStyle + series_style() + "</style>\n</head>\n<body>\n";
    put("<h1>{}</h1>\n", title());
    for (std::size_t i = 0; i < report_.files.size(); ++i) facts(i);
    for (const ReportGroup& group : report_.groups) section(group);
    put("</body>\n</html>\n");
    return std::move(text_);
  }

 private:
  template <class... Values>
  void put(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  bool several() const { return report_.files.size() > 1; }

  std::string title() const {
    std::vector<std::string> names;
    for (const ReportGroup& group : report_.groups)
      if (std::find(names.begin(), names.end(), group.collective) == names.end()) names.push_back(group.collective);
    std::string line;
    for (const std::string& name : names) line += (line.empty() ? "" : ", ") + name;
    return html_escaped("zc bench: " + line);
  }

  void facts(std::size_t number) {
    const ReportFile& file = report_.files[number];
    if (several()) put("<h3>File {}: {}</h3>\n", number + 1, html_escaped(file.path));
    put("<dl>\n");
    for (const auto& [name, value] : file.facts)
      put("<dt>{}</dt><dd{}>{}</dd>\n", html_escaped(name), name == "command" ? " class=\"code\"" : "",
          html_escaped(value));
    put("</dl>\n");
  }

  void section(const ReportGroup& group) {
    const std::string sum = group.redop == "none" ? "" : ", " + group.redop;
    const std::string root = group.root == "-1" ? "" : ", root " + group.root;
    put("<section>\n<h2>{}, {} ranks, {}</h2>\n", html_escaped(group.collective), group.ranks, group.place);
    put("<p class=\"what\">{}</p>\n", html_escaped((group.type == "none" ? "no data" : group.type) + sum + root +
                                                   (group.memory.empty() ? "" : ", " + group.memory + " memory") +
                                                   (group.timing.empty() ? "" : ", " + group.timing)));
    const std::string plot = report_svg(group);
    if (plot.empty()) put("<p>No plot: there is no bandwidth at any size.</p>\n");
    if (!plot.empty()) {
      legend(group);
      put("<div class=\"scroll plot\">\n{}</div>\n", plot);
    }
    for (const ReportBlock& block : group.blocks) table(block);
    put("</section>\n");
  }

  void legend(const ReportGroup& group) {
    put("<ul class=\"legend\">\n");
    for (const ReportBlock& block : group.blocks)
      for (const std::string& library : report_libraries(block)) {
        const std::string style = report_series(library) + (&block == &group.blocks.front() ? "" : " later");
        const std::string file = several() ? ", file " + std::to_string(block.file + 1) : "";
        put("<li><svg viewBox=\"-17 -7 34 14\"><path class=\"line {0}\" d=\"M-17,0H17\"/><g class=\"mark "
            "{0}\">{1}</g></svg>{2}"
            "</li>\n",
            style, report_marker(library), html_escaped(library + file));
      }
    put("<li><svg viewBox=\"-17 -7 34 14\"><rect class=\"band s0\" x=\"-17\" y=\"-6\" width=\"34\" "
        "height=\"12\"/></svg>"
        "from the 10th to the 90th percentile</li>\n");
    limit(group, &ReportPoint::bound_percent, "bound", "bound: the least traffic at the triad's speed");
    limit(group, &ReportPoint::stream_percent, "stream", "a plain stream of the same shape");
    put("</ul>\n");
  }

  void limit(const ReportGroup& group, std::optional<double> ReportPoint::*percent, const char* style,
             const char* what) {
    for (const ReportBlock& block : group.blocks)
      for (const ReportPoint& point : block.points)
        if ((point.*percent).value_or(0) > 0) {
          put("<li><svg viewBox=\"-17 -7 34 14\"><path class=\"limit {}\" d=\"M-17,0H17\"/></svg>{}</li>\n", style,
              what);
          return;
        }
  }

  void table(const ReportBlock& block) {
    const std::vector<std::string> libraries = report_libraries(block);
    Notes notes;
    put("<div class=\"scroll\"><table>\n<caption>Medians{}</caption>\n<thead>\n<tr><th colspan=\"2\"></th>",
        several() ? html_escaped(", file " + std::to_string(block.file + 1)) : "");
    for (const std::string& library : libraries)
      put("<th class=\"first\" colspan=\"{}\">{}</th>", library == libraries.front() ? 6 : 4, html_escaped(library));
    put("</tr>\n<tr><th>size</th><th>count</th>");
    for (const std::string& library : libraries) {
      put("<th class=\"first\">time, us <small>(p10&ndash;p90)</small></th><th>busbw, GB/s</th>");
      if (library == libraries.front())
        put("<th>% of stream</th><th>% of bound</th><th>skew, us</th>");
      else
        put("<th>ratio</th>");
      put("<th>wrong</th>");
    }
    put("</tr>\n</thead>\n<tbody>\n");
    for (const ReportPoint& point : block.points) row(point, libraries, notes);
    put("</tbody>\n</table></div>\n");
    if (notes.empty()) return;
    put("<ul class=\"notes\">");
    for (const std::string& note : notes) put("<li>{}</li>", html_escaped(note));
    put("</ul>\n");
  }

  void row(const ReportPoint& point, const std::vector<std::string>& libraries, Notes& notes) {
    put("<tr><th scope=\"row\">{}</th><td>{}</td>", report_bytes(point.size_bytes), point.count);
    for (const std::string& library : libraries) {
      const bool own = library == point.own.library;
      const auto peer = std::find_if(point.peers.begin(), point.peers.end(),
                                     [&](const ReportFigure& figure) { return figure.library == library; });
      if (own)
        own_cells(point);
      else if (peer != point.peers.end() && peer->unsupported.empty())
        peer_cells(*peer, notes);
      else
        put("<td class=\"first\">{0}</td><td>{0}</td><td>{0}</td><td>{0}</td>", kNone);
      if (!own && peer != point.peers.end() && !peer->unsupported.empty())
        add_note(notes, library + " has no figures at some sizes: " + peer->unsupported);
    }
    put("</tr>\n");
  }

  void time_cells(const ReportFigure& figure) {
    put("<td class=\"first\">{}{}", report_number(figure.time_us), figure.by.empty() ? "" : "*");
    if (figure.p10_us && figure.p90_us)
      put(" <small>({}&ndash;{})</small>", report_number(*figure.p10_us), report_number(*figure.p90_us));
    put("</td><td>{}</td>", report_number(figure.busbw));
  }

  void optional_cell(const std::optional<double>& value) { put("<td>{}</td>", value ? report_number(*value) : kNone); }

  void wrong_cell(const ReportFigure& figure) {
    put("<td{}>{}</td>", figure.wrong.value_or(0) > 0 ? " class=\"bad\"" : "",
        figure.wrong ? std::to_string(*figure.wrong) : kNone);
  }

  void own_cells(const ReportPoint& point) {
    time_cells(point.own);
    optional_cell(point.stream_percent);
    optional_cell(point.bound_percent);
    optional_cell(point.skew_us);
    wrong_cell(point.own);
  }

  void peer_cells(const ReportFigure& peer, Notes& notes) {
    time_cells(peer);
    optional_cell(peer.ratio);
    wrong_cell(peer);
    if (!peer.by.empty()) add_note(notes, "* " + peer.library + " was measured by another call or type: " + peer.by);
  }

  const Report& report_;
  std::string text_;
};

}  // namespace

std::string report_html(const Report& report) { return Page(report).write(); }

}  // namespace zerocomm::cli
