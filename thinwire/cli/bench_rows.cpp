#include "thinwire/cli/bench_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>

#include "thinwire/base/error.hpp"

namespace thinwire::cli {
namespace {

using schema::BenchRow;

const Samples* find(const std::vector<Samples>& measured, const std::string& name) {
  const auto found =
      std::find_if(measured.begin(), measured.end(), [&](const Samples& s) { return s.contender == name; });
  return found == measured.end() ? nullptr : &*found;
}

std::optional<double> median_of(const std::vector<Samples>& measured, const std::string& name) {
  const Samples* samples = find(measured, name);
  return samples == nullptr ? std::nullopt : std::optional<double>(median(samples->step_s));
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

std::string printed(const char* pattern, std::optional<double> value) {
  if (!value) return "-";
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), pattern, *value);
  return text.data();
}

using Cells = std::vector<std::string>;

Cells cells_of(const BenchRow& row) {
  return {row.contender,
          printed("%.4f s", row.median_s),
          printed("%.4f s", row.min_s),
          printed("%.4f s", row.max_s),
          printed("%.4f s", row.exposed_s),
          row.sent_bytes ? readable_bytes(static_cast<double>(*row.sent_bytes)) : "-",
          printed("%.2fx", row.vs_torch_ddp),
          printed("%.2fx", row.vs_compute)};
}

// The first column to the left, numbers to the right.
std::string line_of(const Cells& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - cells[i].size(), ' ');
    line += i == 0 ? cells[i] + padding : "  " + padding + cells[i];
  }
  return line + "\n";
}

}  // namespace

const std::vector<Contender>& contenders() {
  static const std::vector<Contender> all{{"compute", Language::kCpp, false, 3},
                                          {"torch-compute", Language::kPython, false, 3},
                                          {"dense", Language::kCpp, true, 3},
                                          {"bf16", Language::kCpp, true, 3},
                                          {"int4", Language::kCpp, true, 3},
                                          {"one_bit", Language::kCpp, true, 8},
                                          {"torch-ddp", Language::kPython, true, 3},
                                          {"torch-ddp-fp16", Language::kPython, true, 3},
                                          {"torch-powersgd1", Language::kPython, true, 6}};
  return all;
}

const Contender& contender(const std::string& name) {
  std::string known;
  for (const Contender& one : contenders()) {
    if (one.name == name) return one;
    known += (known.empty() ? "" : " ") + one.name;
  }
  fail(ErrorCode::kInvalidArgument, {"bench step", "contender", "\"" + name + "\"", "some of: " + known, ""});
}

std::vector<Contender> chosen_contenders(const std::string& list) {
  if (list.empty()) return contenders();
  std::vector<std::string> names;
  std::istringstream parts(list);
  for (std::string name; std::getline(parts, name, ',');) names.push_back(contender(name).name);
  std::vector<Contender> chosen;
  for (const Contender& one : contenders())
    if (std::find(names.begin(), names.end(), one.name) != names.end()) chosen.push_back(one);
  return chosen;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<BenchRow> bench_rows(const std::vector<Samples>& measured) {
  const std::optional<double> ddp = median_of(measured, "torch-ddp");
  const std::optional<double> cpp = median_of(measured, "compute"), python = median_of(measured, "torch-compute");
  const std::optional<double> compute = smaller(cpp, python);
  std::vector<BenchRow> rows;
  for (const Samples& samples : measured) {
    BenchRow row;
    row.contender = samples.contender;
    row.median_s = median(samples.step_s);
    row.min_s = *std::min_element(samples.step_s.begin(), samples.step_s.end());
    row.max_s = *std::max_element(samples.step_s.begin(), samples.step_s.end());
    const std::optional<double>& own = contender(samples.contender).language == Language::kCpp ? cpp : python;
    if (own) row.exposed_s = std::max(0.0, row.median_s - *own);
    if (samples.sent_bytes_per_step) row.sent_bytes = std::llround(*samples.sent_bytes_per_step);
    if (ddp) row.vs_torch_ddp = *ddp / row.median_s;
    if (compute) row.vs_compute = *compute / row.median_s;
    rows.push_back(row);
  }
  return rows;
}

std::string bench_table(const std::vector<BenchRow>& rows) {
  std::vector<Cells> lines{{"contender", "median", "min", "max", "exposed", "sent/step", "vs torch-ddp", "vs compute"}};
  for (const BenchRow& row : rows) lines.push_back(cells_of(row));
  std::vector<std::size_t> widths(lines[0].size(), 0);
  for (const Cells& cells : lines)
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  std::string table;
  for (const Cells& cells : lines) table += line_of(cells, widths);
  return table;
}

std::string readable_bytes(double bytes) {
  const char* unit = " B";
  for (const char* larger : {" kB", " MB", " GB"}) {
    if (bytes < 999.5) break;
    bytes /= 1000;
    unit = larger;
  }
  return printed("%.3g", bytes) + unit;
}

}  // namespace thinwire::cli
