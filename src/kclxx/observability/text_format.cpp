// SPDX-License-Identifier: Apache-2.0
#include "observability/text_format.hpp"

#include <kclxx/version.hpp>

namespace kclxx::observability {

namespace {

/// A label's value, with its escapes.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string label(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + escaped(value) + '"';
}

class writer {
 public:
  writer(const figures& figures, const observer::shard_names& names)
      : figures_(figures),
        labels_(label("application", names.application_name.value_or(unknown_name)) + ',' +
                label("stream", names.stream_name.value_or(unknown_name)) + ',' +
                label("shard", names.shard_id)) {}

  std::string text() && {
    const auto families = metrics_recorder::families();
    for (std::size_t i = 0; i < families.size(); ++i) {
      family(static_cast<metric>(i), families[i]);
    }
    return std::move(text_);
  }

 private:
  void family(metric figure, const metrics_recorder::metric_family& about) {
    static constexpr std::string_view types[] = {"counter", "gauge", "histogram"};
    const std::string name(about.name);
    text_.append("# HELP ").append(name).append(" ").append(about.help);
    text_.append("\n# TYPE ").append(name).append(" ");
    text_.append(types[static_cast<std::size_t>(about.type)]).append("\n");
    switch (about.type) {
      case metrics_recorder::metric_type::counter:
        return counters(figure, about, name);
      case metrics_recorder::metric_type::gauge:
        return sample(name, figure == metric::build_info ? label(about.label, version) : "",
                      to_text(figures_.gauge(figure)));
      case metrics_recorder::metric_type::histogram:
        return histogram(figures_.histogram(figure), name);
    }
  }

  void counters(metric figure, const metrics_recorder::metric_family& about,
                const std::string& name) {
    if (about.label.empty()) return sample(name, "", std::to_string(figures_.counter(figure)));
    for (const auto& [family, values] : figures_.labels) {
      if (family != figure) continue;
      for (const auto& value : values) {
        sample(name, label(about.label, value.label), std::to_string(value.value));
      }
    }
  }

  void histogram(const histogram_figures& values, const std::string& name) {
    const auto bounds = metrics_recorder::histogram_buckets();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      sum += values.counts.at(i);
      sample(name + "_bucket", label("le", to_text(bounds[i])), std::to_string(sum));
    }
    const std::string all = std::to_string(values.count());
    sample(name + "_bucket", label("le", "+Inf"), all);
    sample(name + "_sum", "", to_text(values.sum));
    sample(name + "_count", "", all);
  }

  void sample(const std::string& name, const std::string& own_label, const std::string& value) {
    text_.append(name).append("{").append(labels_);
    if (!own_label.empty()) text_.append(",").append(own_label);
    text_.append("} ").append(value).append("\n");
  }

  const figures& figures_;
  std::string labels_;
  std::string text_;
};

/// Part of a file's name. Distinct texts stay distinct.
std::string file_part(std::string_view text, std::string_view plain) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string part;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || plain.find(c) != std::string_view::npos;
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain) {
      part += c;
    } else {
      part.append({'%', digits[byte >> 4], digits[byte & 15]});
    }
  }
  return part;
}

}  // namespace

std::string to_prometheus_text(const figures& figures, const observer::shard_names& names) {
  return writer(figures, names).text();
}

std::string metrics_file_name(const observer::shard_names& names) {
  return "kclxx." + file_part(names.application_name.value_or(unknown_name), "-_.") + '.' +
         file_part(names.shard_id, "-_") + ".prom";
}

}  // namespace kclxx::observability
