// SPDX-License-Identifier: Apache-2.0
// Plots as SVG, for pages that need nothing from anywhere.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace kclxx::tool {

struct plot_point {
  double x;
  double y;
};

/// One axis: from 0 to `end`, or from `begin` to `end` in powers of ten.
struct plot_axis {
  double begin = 0;
  double end = 1;
  bool is_logarithmic = false;
  /// The label of a tick: "10 ms", "1.5k".
  std::string (*label)(double);
};

enum class plot_style { steps, dots };

struct plot_series {
  std::string name;   ///< for the legend
  std::string color;  ///< a class of the page's style sheet
  plot_style style;
  std::vector<plot_point> points;
};

struct plot {
  std::string title;
  plot_axis x;
  plot_axis y;
  std::vector<plot_series> series;
};

void write_plot(std::ostream& out, const plot& chart);

/// One row of bars over the same x axis, with ticks below.
struct strip_bar {
  double begin;
  double end;
  std::string color;
  std::string hint;
};
struct strip {
  std::string title;
  plot_axis x;
  std::vector<strip_bar> bars;
  std::vector<strip_bar> ticks;  ///< `begin` counts
};
void write_strip(std::ostream& out, const strip& chart);

/// "800", "1.5k", "20M".
std::string count_label(double count);

}  // namespace kclxx::tool
