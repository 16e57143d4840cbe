// Every codec of the registry on every implementation that this machine has: what the conformance tests run over.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/codec/oracle.hpp"
#include "thinwire/codec/format.hpp"
#include "thinwire/codec/fused.hpp"
#include "thinwire/codec/implementation.hpp"

namespace thinwire::codec {

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;
using Lengths = std::vector<std::int64_t>;

// The default text of every format and those it asks to be tried with.
inline std::vector<std::string> codec_texts() {
  std::vector<std::string> texts;
  for (const Format* format : formats()) {
    texts.emplace_back(format->name);
    for (std::string_view sample : format->samples) texts.emplace_back(sample);
  }
  return texts;
}

// The public functions for one codec, or the oracle's.
class Subject {
 public:
  explicit Subject(const std::string& text, bool oracle = false)
      : codec_(make_codec(text)), spec_(spec_from_text(text)), oracle_(oracle) {}

  const Codec& codec() const { return *codec_; }
  const Spec& spec() const { return spec_; }
  std::string name() const { return std::string(spec_.format->name); }
  std::int64_t wire_bytes(const Lengths& segments) const { return codec_->wire_bytes(segments); }

  EncodeReport encode(Values values, const Lengths& segments, std::span<std::byte> out, std::uint64_t seed = 0) const {
    return oracle_ ? oracle::encode(spec_, values, segments, out, seed) : codec_->encode(values, segments, out, seed);
  }
  void decode(std::span<const std::byte> bytes, const Lengths& segments, std::span<float> values) const {
    return oracle_ ? oracle::decode(spec_, bytes, segments, values) : codec_->decode(bytes, segments, values);
  }
  EncodeReport encode_feedback(const FeedbackInput& input, const Lengths& segments, std::span<std::byte> out,
                               std::span<float> new_residual) const {
    return oracle_ ? oracle::encode_feedback(spec_, input, segments, out, new_residual)
                   : codec::encode_feedback(*codec_, input, segments, out, new_residual);
  }
  MomentumReport momentum_encode(const MomentumInput& input, const Lengths& segments, std::span<std::byte> out,
                                 std::span<float> new_residual) const {
    return oracle_ ? oracle::momentum_encode(spec_, input, segments, out, new_residual)
                   : codec::momentum_encode(*codec_, input, segments, out, new_residual);
  }
  EncodeReport accumulate_decode(const Contributions& chunks, std::span<const float> residual, const Lengths& segments,
                                 std::span<std::byte> out, std::span<float> new_residual) const {
    return oracle_ ? oracle::accumulate_decode(spec_, chunks, residual, segments, out, new_residual)
                   : codec::accumulate_decode(*codec_, chunks, residual, segments, out, new_residual);
  }
  void accumulate(const Contributions& chunks, const Lengths& segments, std::span<float> mean) const {
    return oracle_ ? oracle::accumulate(spec_, chunks, segments, mean)
                   : codec::accumulate(*codec_, chunks, segments, mean);
  }
  void decode_update(std::span<const std::byte> bytes, const Lengths& segments, const FrozenState& state,
                     const AdamFrozenStep& step) const {
    return oracle_ ? oracle::decode_update(spec_, bytes, segments, state, step)
                   : codec::decode_update(*codec_, bytes, segments, state, step);
  }

  Bytes encoded(std::span<const float> values, const Lengths& segments) const {
    Bytes out(static_cast<std::size_t>(wire_bytes(segments)));
    encode(values, segments, out);
    return out;
  }
  Floats decoded(std::span<const std::byte> bytes, const Lengths& segments, std::size_t count) const {
    Floats values(count);
    decode(bytes, segments, values);
    return values;
  }
  Floats round_trip(std::span<const float> values, const Lengths& segments) const {
    return decoded(encoded(values, segments), segments, values.size());
  }

 private:
  std::shared_ptr<const Codec> codec_;
  Spec spec_;
  bool oracle_;
};

inline Floats normal_floats(std::int64_t count, unsigned seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

inline std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::int64_t kEveryLength = 7;  // runs are many times slower, and look for other faults
#else
inline constexpr std::int64_t kEveryLength = 1;
#endif

// All of 0 ... 300, then one to each side of what words, blocks and units end on, and primes in between, up to 4097.
inline Lengths sampled_lengths() {
  Lengths lengths;
  for (std::int64_t d = 0; d <= 300; d += kEveryLength) lengths.push_back(d);
  for (std::int64_t d = 320; d <= 4096; d += 64 * kEveryLength)
    for (std::int64_t near : {d - 1, d, d + 1}) lengths.push_back(near);
  for (std::int64_t prime : {337, 541, 787, 1049, 1373, 1699, 2053, 2503, 3001, 3571, 4001, 4093})
    lengths.push_back(prime);
  return lengths;
}

// Parameters of the suites: (codec text, implementation).
using Case = std::tuple<std::string, std::string>;
inline std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = std::get<0>(info.param) + "_on_" + std::get<1>(info.param);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

class EveryCodec : public testing::TestWithParam<Case> {
 protected:
  EveryCodec() { choose_implementation(std::get<1>(GetParam())); }
  ~EveryCodec() override { choose_implementation(implementations().back()); }

  const Subject codec{std::get<0>(GetParam())};
};

#define THINWIRE_FOR_EVERY_CODEC(Suite) \
  INSTANTIATE_TEST_SUITE_P(             \
      All, Suite, testing::Combine(testing::ValuesIn(codec_texts()), testing::ValuesIn(implementations())), case_name)

}  // namespace thinwire::codec
