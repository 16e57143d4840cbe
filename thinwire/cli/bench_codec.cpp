#include "thinwire/cli/bench_codec.hpp"

#include <cstdio>
#include <cstring>
#include <optional>

#include "thinwire/base/clock.hpp"
#include "thinwire/cli/bench_rows.hpp"
#include "thinwire/cli/codec_errors.hpp"
#include "thinwire/cli/raw_floats.hpp"
#include "thinwire/codec/fused.hpp"
#include "thinwire/codec/implementation.hpp"

namespace thinwire::cli {
namespace {

using codec::Dtype;
using codec::Values;
using Floats = std::vector<float>;

constexpr std::int64_t kErrorElements = 1 << 18;

// Everything the loops read and write, once for all codecs.
class Arena {
 public:
  explicit Arena(std::int64_t elements)
      : segments{elements},
        fp32(normal_values(elements)),
        momentum(fp32.size(), 0.25F),
        residual(fp32.size(), 0.125F),
        new_residual(fp32.size()),
        parameter(fp32.size(), 1.0F),
        root(fp32.size(), 0.5F),
        halves(fp32.size()) {}

  // The input as one of the dtypes. A bf16 span reads the same bits as an fp16 one: speed does not depend on values.
  Values input(Dtype dtype) {
    if (dtype == Dtype::kFp32) return fp32;
    const auto narrow = codec::make_codec(named(dtype).name);
    narrow->encode(fp32, segments, std::as_writable_bytes(std::span(halves)));
    if (dtype == Dtype::kBf16) return std::span(reinterpret_cast<const codec::Bf16*>(halves.data()), halves.size());
    return std::span(reinterpret_cast<const codec::Fp16*>(halves.data()), halves.size());
  }

  std::vector<std::int64_t> segments;
  Floats fp32, momentum, residual, new_residual, parameter, root;
  std::vector<std::uint16_t> halves;
  std::vector<std::byte> wire, other;
};

struct Operation {
  const char* name;
  std::int64_t float_bytes;  // of the floats that count as its input
  std::int64_t moved_bytes;  // read and written
  std::function<void()> run;
};

std::vector<Operation> operations(const codec::Codec& codec, Arena& arena, Dtype dtype) {
  const auto n = static_cast<std::int64_t>(arena.fp32.size());
  const std::int64_t wire = codec.wire_bytes(arena.segments);
  const std::int64_t in = static_cast<std::int64_t>(named(dtype).bytes) * n;
  const std::int64_t floats = 4 * n;
  arena.wire.resize(static_cast<std::size_t>(wire));
  arena.other.resize(static_cast<std::size_t>(wire));
  const Values x = arena.input(dtype);
  std::vector<Operation> all = {
      {"encode", in, in + wire, [&codec, &arena, x] { codec.encode(x, arena.segments, arena.wire, 1); }},
      {"encode_feedback", in, in + 2 * floats + wire,
       [&codec, &arena, x] {
         codec::encode_feedback(codec, {x, 0.5F, arena.residual}, arena.segments, arena.wire, arena.new_residual);
       }},
      {"momentum_encode", in, in + 3 * floats + wire, [&codec, &arena, x] {
         codec::momentum_encode(codec, {x, arena.momentum, arena.residual}, arena.segments, arena.wire,
                                arena.new_residual);
       }}};
  if (dtype != Dtype::kFp32) return all;  // what follows decodes: always to fp32
  all.push_back({"decode", floats, floats + wire,
                 [&codec, &arena] { codec.decode(arena.wire, arena.segments, arena.new_residual); }});
  all.push_back(
      {"accumulate_decode", 2 * floats, 2 * floats + 3 * wire, [&codec, &arena] {
         const std::span<const std::byte> chunks[] = {arena.wire, arena.wire};
         codec::accumulate_decode(codec, {chunks, {}}, arena.residual, arena.segments, arena.other, arena.new_residual);
       }});
  all.push_back({"decode_update", floats, 4 * floats + wire, [&codec, &arena] {
                   codec::decode_update(codec, arena.wire, arena.segments,
                                        {arena.parameter, arena.new_residual, arena.root, {}}, {});
                 }});
  return all;
}

double seconds_of(const std::function<void()>& work) {
  const double begin = monotonic_seconds();
  work();
  return monotonic_seconds() - begin;
}

// memcpy of half as many bytes moves (reads and writes) as many.
class Memcpy {
 public:
  explicit Memcpy(std::int64_t most_moved) : from_(static_cast<std::size_t>(most_moved / 2), 1), to_(from_.size()) {}
  double seconds(std::int64_t moved_bytes) {
    return seconds_of([&] { std::memcpy(to_.data(), from_.data(), static_cast<std::size_t>(moved_bytes / 2)); });
  }

 private:
  std::vector<char> from_, to_;
};

struct Errors {
  Floats normal = normal_values(kErrorElements);
  Floats student_t = student_t_values(kErrorElements);
  Floats sparse = sparse_values(kErrorElements);
  std::optional<Floats> gradient;

  void fill(const codec::Codec& codec, schema::CodecRow& row) const {
    row.error = relative_error(codec, normal);
    row.error_student_t = relative_error(codec, student_t);
    row.error_sparse = relative_error(codec, sparse);
    if (gradient) row.error_gradient = relative_error(codec, *gradient);
  }
};

class CodecBench {
 public:
  explicit CodecBench(const CodecBenchSettings& settings)
      : settings_(settings), arena_(settings.elements), memcpy_(20 * settings.elements + (1 << 20)) {
    if (!settings.gradients.empty()) errors_.gradient = read_gradients(settings.gradients);
    report_.elements = settings.elements;
    report_.gradients = settings.gradients;
  }

  schema::CodecReport run(const std::vector<std::string>& codecs, const std::vector<std::string>& implementations) {
    for (const std::string& text : codecs) {
      const auto codec = codec::make_codec(text);
      schema::CodecRow row;
      row.codec = codec->text();
      const double bits = 8.0 * static_cast<double>(codec->wire_bytes(arena_.segments));
      row.bits_per_element = bits / static_cast<double>(settings_.elements);
      errors_.fill(*codec, row);
      for (const std::string& implementation : implementations) {
        codec::choose_implementation(implementation);
        row.implementation = implementation;
        for (const Dtype dtype : settings_.dtypes) measure(*codec, dtype, row);
      }
    }
    codec::choose_implementation(codec::implementations().back());
    report_.memcpy_gb_per_s = median(memcpy_gb_per_s_);
    return std::move(report_);
  }

 private:
  void measure(const codec::Codec& codec, Dtype dtype, schema::CodecRow row) {
    row.dtype = named(dtype).name;
    settings_.on_progress(row.codec + " " + row.implementation + " " + row.dtype);
    const std::vector<Operation> all = operations(codec, arena_, dtype);
    std::vector<std::vector<double>> times(all.size());
    std::vector<std::vector<double>> copies(all.size());
    for (int round = -1; round < settings_.rounds; ++round) {  // the first is a warm-up
      for (std::size_t i = 0; i < all.size(); ++i) {
        const double copy = memcpy_.seconds(all[i].moved_bytes);
        const double time = seconds_of(all[i].run);
        if (round < 0) continue;
        copies[i].push_back(copy);
        times[i].push_back(time);
        memcpy_gb_per_s_.push_back(static_cast<double>(all[i].moved_bytes) / copy * 1e-9);
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      row.op = all[i].name;
      row.gb_per_s = static_cast<double>(all[i].float_bytes) / median(times[i]) * 1e-9;
      row.vs_memcpy = median(copies[i]) / median(times[i]);
      report_.rows.push_back(row);
    }
  }

  const CodecBenchSettings& settings_;
  Arena arena_;
  Memcpy memcpy_;
  Errors errors_;
  std::vector<double> memcpy_gb_per_s_;
  schema::CodecReport report_;
};

}  // namespace

schema::CodecReport bench_codec(const CodecBenchSettings& settings) {
  std::vector<std::string> codecs = settings.codecs.empty() ? codec::known_codecs() : settings.codecs;
  std::vector<std::string> implementations =
      settings.implementations.empty() ? codec::implementations() : settings.implementations;
  for (const std::string& text : codecs) codec::make_codec(text);
  for (const std::string& name : implementations) codec::choose_implementation(name);
  return CodecBench(settings).run(codecs, implementations);
}

std::string codec_table(const schema::CodecReport& report) {
  char line[256];
  std::snprintf(line, sizeof(line), "memcpy: %.1f GB/s read and written\n%-38s %-8s %-5s %-18s %8s %10s %6s %8s\n",
                report.memcpy_gb_per_s, "codec", "on", "dtype", "operation", "GB/s", "of memcpy", "bits", "error");
  std::string table = line;
  for (const schema::CodecRow& row : report.rows) {
    std::snprintf(line, sizeof(line), "%-38s %-8s %-5s %-18s %8.2f %8.0f %% %6.2f %8.4f\n", row.codec.c_str(),
                  row.implementation.c_str(), row.dtype.c_str(), row.op.c_str(), row.gb_per_s, 100 * row.vs_memcpy,
                  row.bits_per_element, row.error);
    table += line;
  }
  return table;
}

}  // namespace thinwire::cli
