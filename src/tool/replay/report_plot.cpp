// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/report_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

// In pixels of the picture, which is scaled to the page.
constexpr double width = 960;
constexpr double left = 86;
constexpr double right = 940;
constexpr double plot_height = 150;
constexpr double top = 34;

std::string number(double value, const char* format = "%.1f") {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

double part_of(const plot_axis& axis, double value) {
  if (axis.is_logarithmic) {
    const double low = std::log10(axis.begin);
    return (std::log10(std::max(value, axis.begin)) - low) / (std::log10(axis.end) - low);
  }
  return value / axis.end;
}

double x_of(const plot_axis& axis, double value) {
  return left + (right - left) * part_of(axis, value);
}
double y_of(const plot_axis& axis, double value) {
  return top + plot_height * (1 - part_of(axis, value));
}

/// Round numbers from 0 on, about so many.
std::vector<double> ticks_of(const plot_axis& axis, double about) {
  std::vector<double> ticks;
  if (axis.is_logarithmic) {
    for (double at = axis.begin; at <= axis.end * 1.001; at *= 10) ticks.push_back(at);
    return ticks;
  }
  const double rough = axis.end / about;
  const double unit = std::pow(10, std::floor(std::log10(rough)));
  double step = unit;
  for (const double round : {1.0, 2.0, 5.0, 10.0}) {
    step = unit * round;
    if (step >= rough) break;
  }
  for (double at = 0; at <= axis.end * 1.0001; at += step) ticks.push_back(at);
  return ticks;
}

void write_text(std::ostream& out, double x, double y, const char* anchor, const char* style,
                const std::string& text) {
  out << "<text x=\"" << number(x) << "\" y=\"" << number(y) << "\" text-anchor=\"" << anchor
      << "\" class=\"" << style << "\">" << xml(text) << "</text>\n";
}

void write_line(std::ostream& out, double x1, double y1, double x2, double y2, const char* style) {
  out << "<line x1=\"" << number(x1) << "\" y1=\"" << number(y1) << "\" x2=\"" << number(x2)
      << "\" y2=\"" << number(y2) << "\" class=\"" << style << "\"/>\n";
}

void begin_picture(std::ostream& out, double height, const std::string& title) {
  out << "<svg viewBox=\"0 0 " << number(width, "%.0f") << " " << number(height, "%.0f")
      << "\" role=\"img\" aria-label=\"" << xml(title) << "\">\n";
  write_text(out, left, 20, "start", "title", title);
}

void write_x_axis(std::ostream& out, const plot_axis& axis, double bottom) {
  for (const double tick : ticks_of(axis, 8)) {
    const double x = x_of(axis, tick);
    write_line(out, x, bottom, x, bottom + 5, "axis");
    write_text(out, x, bottom + 19, "middle", "label", axis.label(tick));
  }
  write_line(out, left, bottom, right, bottom, "axis");
}

void write_series(std::ostream& out, const plot& chart, const plot_series& series) {
  if (series.style == plot_style::dots) {
    for (const plot_point& at : series.points) {
      out << "<circle cx=\"" << number(x_of(chart.x, at.x)) << "\" cy=\""
          << number(y_of(chart.y, at.y)) << "\" r=\"2.5\" class=\"fill-" << series.color
          << "\"/>\n";
    }
    return;
  }
  out << "<polyline class=\"stroke-" << series.color << "\" points=\"";
  double last_y = 0;
  bool is_first = true;
  for (const plot_point& at : series.points) {
    const double x = x_of(chart.x, at.x);
    const double y = y_of(chart.y, at.y);
    if (!is_first) out << number(x) << "," << number(last_y) << " ";
    out << number(x) << "," << number(y) << " ";
    last_y = y;
    is_first = false;
  }
  out << "\"/>\n";
}

void write_legend(std::ostream& out, const plot& chart) {
  double x = right;
  for (auto series = chart.series.rbegin(); series != chart.series.rend(); ++series) {
    x -= 8.0 * static_cast<double>(series->name.size()) + 30;
    out << "<rect x=\"" << number(x) << "\" y=\"11\" width=\"12\" height=\"10\" class=\"fill-"
        << series->color << "\"/>\n";
    write_text(out, x + 18, 20, "start", "label", series->name);
  }
}

}  // namespace

void write_plot(std::ostream& out, const plot& chart) {
  constexpr double bottom = top + plot_height;
  begin_picture(out, bottom + 30, chart.title);
  for (const double tick : ticks_of(chart.y, 4)) {
    const double y = y_of(chart.y, tick);
    write_line(out, left, y, right, y, "grid");
    write_text(out, left - 8, y + 4, "end", "label", chart.y.label(tick));
  }
  write_x_axis(out, chart.x, bottom);
  for (const plot_series& series : chart.series) write_series(out, chart, series);
  if (chart.series.size() > 1) write_legend(out, chart);
  out << "</svg>\n";
}

void write_strip(std::ostream& out, const strip& chart) {
  constexpr double height = 26;
  constexpr double bottom = top + height + 18;
  begin_picture(out, bottom + 30, chart.title);
  for (const strip_bar& bar : chart.bars) {
    const double x = x_of(chart.x, bar.begin);
    // Wide enough to be seen.
    const double wide = std::max(x_of(chart.x, bar.end) - x, 1.5);
    out << "<rect x=\"" << number(x) << "\" y=\"" << number(top) << "\" width=\"" << number(wide)
        << "\" height=\"" << number(height) << "\" class=\"fill-" << bar.color << "\"><title>"
        << xml(bar.hint) << "</title></rect>\n";
  }
  for (const strip_bar& tick : chart.ticks) {
    const std::string x = number(x_of(chart.x, tick.begin));
    const std::string y = number(top + height + 9);
    out << "<circle cx=\"" << x << "\" cy=\"" << y << "\" r=\"4\" class=\"fill-" << tick.color
        << "\"><title>" << xml(tick.hint) << "</title></circle>\n";
  }
  write_x_axis(out, chart.x, bottom);
  out << "</svg>\n";
}

std::string count_label(double count) {
  if (count < 1e4) return number(count, "%.4g");
  if (count < 1e6) return number(count / 1e3, "%.4gk");
  return count < 1e9 ? number(count / 1e6, "%.4gM") : number(count / 1e9, "%.4gG");
}

}  // namespace kclxx::tool
