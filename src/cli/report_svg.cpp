// Draws a group as a plot: size against bus bandwidth, both logarithmic. Colours and dashes are the page's
// (report_html.cpp).
#include "cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>

namespace zerocomm::cli {
namespace {

constexpr double kWidth = 760, kHeight = 440, kLeft = 100, kRight = 30, kTop = 36, kBottom = 58;

// One axis: a logarithm onto pixels.
struct Axis {
  double low = 0, high = 0;  // logarithms
  double low_pixel = 0, high_pixel = 0;
  double at(double logarithm) const { return low_pixel + (logarithm - low) / (high - low) * (high_pixel - low_pixel); }
};

struct Plot {
  Axis x, y;  // log2 of bytes, log10 of GB/s
  double x_of(std::uint64_t bytes) const { return x.at(std::log2(static_cast<double>(bytes))); }
  double y_of(double busbw) const { return y.at(std::log10(busbw)); }
};

// A value of one library at one size.
struct Spot {
  std::uint64_t bytes = 0;
  double busbw = 0;
  const ReportFigure* figure = nullptr;
};

bool drawable(const ReportPoint& point, const ReportFigure& figure) {
  return point.size_bytes > 0 && figure.unsupported.empty() && figure.busbw > 0;
}

double busbw_in(const ReportFigure& figure, double time_us) { return figure.busbw * figure.time_us / time_us; }

std::vector<Spot> spots_of(const ReportBlock& block, const std::string& library) {
  std::vector<Spot> spots;
  for (const ReportPoint& point : block.points) {
    const auto add = [&](const ReportFigure& figure) {
      if (figure.library == library && drawable(point, figure))
        spots.push_back({point.size_bytes, figure.busbw, &figure});
    };
    add(point.own);
    std::for_each(point.peers.begin(), point.peers.end(), add);
  }
  return spots;
}

// What the whole of `percent` would be.
std::vector<Spot> limit_of(const ReportBlock& block, std::optional<double> ReportPoint::*percent) {
  std::vector<Spot> spots;
  for (const ReportPoint& point : block.points)
    if (drawable(point, point.own) && (point.*percent).value_or(0) > 0)
      spots.push_back({point.size_bytes, point.own.busbw * 100 / *(point.*percent), &point.own});
  return spots;
}

// Calls with every value that the plot must have room for.
void for_each_value(const ReportGroup& group, const std::function<void(std::uint64_t, double)>& use) {
  for (const ReportBlock& block : group.blocks) {
    for (const std::string& library : report_libraries(block))
      for (const Spot& spot : spots_of(block, library)) {
        use(spot.bytes, spot.busbw);
        if (spot.figure->p10_us.value_or(0) > 0) use(spot.bytes, busbw_in(*spot.figure, *spot.figure->p10_us));
        if (spot.figure->p90_us.value_or(0) > 0) use(spot.bytes, busbw_in(*spot.figure, *spot.figure->p90_us));
      }
    for (const auto percent : {&ReportPoint::bound_percent, &ReportPoint::stream_percent})
      for (const Spot& spot : limit_of(block, percent)) use(spot.bytes, spot.busbw);
  }
}

// Nothing: there is no value.
std::optional<Plot> plot_of(const ReportGroup& group) {
  double low_bytes = INFINITY, high_bytes = 0, low_busbw = INFINITY, high_busbw = 0;
  for_each_value(group, [&](std::uint64_t bytes, double busbw) {
    low_bytes = std::min(low_bytes, static_cast<double>(bytes));
    high_bytes = std::max(high_bytes, static_cast<double>(bytes));
    low_busbw = std::min(low_busbw, busbw);
    high_busbw = std::max(high_busbw, busbw);
  });
  if (high_bytes == 0) return std::nullopt;
  Plot plot;
  plot.x = {std::log2(low_bytes) - 0.4, std::log2(high_bytes) + 0.4, kLeft, kWidth - kRight};
  plot.y = {std::log10(low_busbw) - 0.08, std::log10(high_busbw) + 0.08, kHeight - kBottom, kTop};
  return plot;
}

// Powers of two, few enough for their labels.
std::vector<std::uint64_t> size_ticks(const Axis& x) {
  const int low = std::max(0, static_cast<int>(std::ceil(x.low))), high = static_cast<int>(std::floor(x.high));
  const int step = std::max(1, (high - low + 8) / 9);
  std::vector<std::uint64_t> ticks;
  for (int i = low; i <= high && i < 64; i += step) ticks.push_back(std::uint64_t{1} << static_cast<unsigned>(i));
  return ticks;
}

// 1, 2, 5, 10 ..., or powers of ten alone where those are enough.
std::vector<double> busbw_ticks(const Axis& y) {
  const bool tens = y.high - y.low > 3;
  std::vector<double> ticks;
  for (int power = static_cast<int>(std::floor(y.low)); power <= y.high; ++power)
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double logarithm = power + std::log10(digit);
      if ((digit == 1 || !tens) && logarithm >= y.low && logarithm <= y.high)
        ticks.push_back(digit * std::pow(10.0, power));
    }
  return ticks;
}

// 20 GB/s, 500 MB/s, 1 kB/s.
std::string bandwidth_label(double busbw) {
  constexpr std::array kUnits{"GB/s", "MB/s", "kB/s", "B/s"};
  std::size_t unit = 0;
  for (; busbw < 0.999 && unit + 1 < kUnits.size(); ++unit) busbw *= 1000;
  return fmt::format("{:.3g} {}", busbw, kUnits[unit]);
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {}

  template <class... Values>
  void put(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  void axes() {
    bool odd = false;  // where the page is narrow, every second label is not shown
    for (const std::uint64_t bytes : size_ticks(plot_.x)) {
      const double x = plot_.x_of(bytes);
      put("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>", x, kTop, kHeight - kBottom);
      put("<text{} x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", odd ? " class=\"odd\"" : "", x,
          kHeight - kBottom + 20, report_bytes(bytes));
      odd = !odd;
    }
    for (const double busbw : busbw_ticks(plot_.y)) {
      const double y = plot_.y_of(busbw);
      put("<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", kLeft, kWidth - kRight, y);
      put("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8, y + 4, bandwidth_label(busbw));
    }
    put("<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kLeft, kTop, kWidth - kRight - kLeft,
        kHeight - kBottom - kTop);
    put("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">size of the whole vector</text>\n",
        (kLeft + kWidth - kRight) / 2, kHeight - 10);
    put("<text x=\"6\" y=\"20\">bus bandwidth</text>\n");
  }

  void line(const std::vector<Spot>& spots, const std::string& style) {
    if (spots.empty()) return;
    put("<polyline class=\"{}\" points=\"", style);
    for (const Spot& spot : spots) put("{:.1f},{:.1f} ", plot_.x_of(spot.bytes), plot_.y_of(spot.busbw));
    put("\"/>\n");
  }

  // From the fast tenth to the slow tenth.
  void band(const std::vector<Spot>& spots, const std::string& style) {
    std::string upper, lower;
    for (const Spot& spot : spots) {
      const ReportFigure& figure = *spot.figure;
      if (figure.p10_us.value_or(0) <= 0 || figure.p90_us.value_or(0) <= 0) continue;
      const auto corner = [&](double time_us) {
        return fmt::format("{:.1f},{:.1f} ", plot_.x_of(spot.bytes), plot_.y_of(busbw_in(figure, time_us)));
      };
      upper += corner(*figure.p10_us);
      lower.insert(0, corner(*figure.p90_us));
    }
    if (!upper.empty()) put("<polygon class=\"band {}\" points=\"{}{}\"/>\n", style, upper, lower);
  }

  void markers(const std::vector<Spot>& spots, const std::string& style, const std::string& name) {
    for (const Spot& spot : spots)
      put("<g class=\"mark {}\" transform=\"translate({:.1f},{:.1f})\">{}<title>{}, {}: {} GB/s, {} us</title></g>\n",
          style, plot_.x_of(spot.bytes), plot_.y_of(spot.busbw), report_marker(spot.figure->library),
          html_escaped(name), report_bytes(spot.bytes), report_number(spot.busbw), report_number(spot.figure->time_us));
  }

  const std::string& text() const { return text_; }

 private:
  const Plot& plot_;
  std::string text_;
};

}  // namespace

std::string report_svg(const ReportGroup& group) {
  const auto plot = plot_of(group);
  if (!plot) return "";
  Drawing drawing(*plot);
  drawing.put("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}: bus bandwidth by size\">\n", kWidth, kHeight,
              html_escaped(group.collective));
  drawing.axes();
  // Bands below lines, lines below markers, and the own library on top of the others.
  for (int layer = 0; layer < 3; ++layer)
    for (const ReportBlock& block : group.blocks) {
      if (layer == 1) {
        drawing.line(limit_of(block, &ReportPoint::stream_percent), "limit stream");
        drawing.line(limit_of(block, &ReportPoint::bound_percent), "limit bound");
      }
      std::vector<std::string> libraries = report_libraries(block);
      std::reverse(libraries.begin(), libraries.end());
      for (const std::string& library : libraries) {
        const std::vector<Spot> spots = spots_of(block, library);
        const std::string style = report_series(library) + (&block == &group.blocks.front() ? "" : " later");
        if (layer == 0) drawing.band(spots, style);
        if (layer == 1) drawing.line(spots, "line " + style);
        if (layer == 2) drawing.markers(spots, style, library);
      }
    }
  drawing.put("</svg>\n");
  return drawing.text();
}

}  // namespace zerocomm::cli
