#include "thinwire/codec/fused.hpp"

#include <string>

#include "thinwire/base/error.hpp"
#include "thinwire/codec/tile_codec.hpp"

namespace thinwire::codec {
namespace {

const TileCodec& tiles_of(const char* place, const Codec& codec) {
  if (const auto* tiles = dynamic_cast<const TileCodec*>(&codec)) return *tiles;
  fail(ErrorCode::kUnavailable, {.place = place,
                                 .what = "fused loop for the codec " + codec.text(),
                                 .got = "",
                                 .want = "a codec of make_codec",
                                 .hint = "encode and decode without fusion"});
}

void require_mask(const char* place, ActiveMask active, std::int64_t elements) {
  if (active.empty() || static_cast<std::int64_t>(active.size()) == (elements + 63) / 64) return;
  require_elements(place, "words of the active mask", active.size(), (elements + 63) / 64);
}

// The part of a mask that lies over a tile; null when all elements take part.
class TileMask {
 public:
  explicit TileMask(ActiveMask active) : active_(active) {}

  KeepWords over(std::int64_t element, std::int64_t count) {
    if (active_.empty()) return nullptr;
    tile_loops().expand_mask(active_.data(), element, keep_, count);
    return keep_;
  }

 private:
  ActiveMask active_;
  alignas(64) std::uint32_t keep_[kUnitElements];
};

// sum = sum of the decoded contributions of one tile.
bool sum_tile(const TileKernels& kernels, const TileShape& shape, const Contributions& contributions, std::int64_t byte,
              float* sum) {
  const auto& chunks = contributions.chunks;
  bool valid = kernels.decode(shape, chunks[0].data() + byte, sum);
  for (std::size_t rank = 1; rank < chunks.size(); ++rank) valid &= kernels.add(shape, chunks[rank].data() + byte, sum);
  return valid;
}

float require_contributions(const char* place, const Contributions& contributions, std::int64_t bytes) {
  if (contributions.chunks.empty()) {
    fail(ErrorCode::kInvalidArgument,
         {.place = place, .what = "number of contributions", .got = "0", .want = "at least 1", .hint = ""});
  }
  for (const auto& chunk : contributions.chunks) require_in_bytes(place, chunk.size(), bytes);
  return 1.0F / static_cast<float>(contributions.chunks.size());
}

}  // namespace

EncodeReport encode_feedback(const Codec& codec, const FeedbackInput& input, Segments segments,
                             std::span<std::byte> out, std::span<float> new_residual) {
  constexpr const char* kPlace = "codec::encode_feedback";
  const TileCodec& tiles = tiles_of(kPlace, codec);
  const std::int64_t elements = segments_elements(segments);
  require_elements(kPlace, "number of values", input.x.size(), elements);
  require_elements(kPlace, "size of the residual", input.residual.size(), elements);
  require_elements(kPlace, "size of the new residual", new_residual.size(), elements);
  require_out_bytes(kPlace, out.size(), tiles.wire_bytes(segments));
  const TileKernels& kernels = tiles.kernels();
  const TileLoops& loops = tile_loops();
  WideTile x(input.x);
  alignas(64) float z[kUnitElements];
  EncodeReport report;
  tiles.each_tile(segments, input.seed, [&](const TileShape& shape, std::int64_t element, std::int64_t byte) {
    loops.scale_add(x.at(element, shape.elements), input.factor, input.residual.data() + element, z, shape.elements);
    report.non_finite |= kernels.encode(shape, z, nullptr, out.data() + byte, new_residual.data() + element);
  });
  return report;
}

MomentumReport momentum_encode(const Codec& codec, const MomentumInput& input, Segments segments,
                               std::span<std::byte> out, std::span<float> new_residual) {
  constexpr const char* kPlace = "codec::momentum_encode";
  const TileCodec& tiles = tiles_of(kPlace, codec);
  const std::int64_t elements = segments_elements(segments);
  require_elements(kPlace, "size of the gradient", input.gradient.size(), elements);
  require_elements(kPlace, "size of the momentum", input.momentum.size(), elements);
  require_elements(kPlace, "size of the residual", input.residual.size(), elements);
  require_elements(kPlace, "size of the new residual", new_residual.size(), elements);
  require_out_bytes(kPlace, out.size(), tiles.wire_bytes(segments));
  require_mask(kPlace, input.active, elements);
  const TileKernels& kernels = tiles.kernels();
  const TileLoops& loops = tile_loops();
  const float gain = (1.0F - input.beta1) * input.factor;
  WideTile gradients(input.gradient);
  TileMask mask(input.active);
  alignas(64) float z[kUnitElements];
  MomentumReport report;
  tiles.each_tile(segments, input.seed, [&](const TileShape& shape, std::int64_t element, std::int64_t byte) {
    const float* gradient = gradients.at(element, shape.elements);
    const KeepWords keep = mask.over(element, shape.elements);
    loops.momentum_add({gradient, input.momentum.data() + element, input.residual.data() + element, input.beta1, gain},
                       z, shape.elements);
    if (keep != nullptr) {
      const Sleepers sleepers = loops.look_at_sleepers(keep, gradient, shape.elements);
      report.woke |= sleepers.non_zero;
      report.non_finite |= sleepers.non_finite;
      loops.clear_unless(keep, z, shape.elements);
    }
    report.non_finite |= kernels.encode(shape, z, keep, out.data() + byte, new_residual.data() + element);
  });
  return report;
}

EncodeReport accumulate_decode(const Codec& codec, const Contributions& contributions, std::span<const float> residual,
                               Segments segments, std::span<std::byte> out, std::span<float> new_residual) {
  constexpr const char* kPlace = "codec::accumulate_decode";
  const TileCodec& tiles = tiles_of(kPlace, codec);
  const std::int64_t elements = segments_elements(segments);
  const std::int64_t bytes = tiles.wire_bytes(segments);
  const float share = require_contributions(kPlace, contributions, bytes);
  require_elements(kPlace, "size of the residual", residual.size(), elements);
  require_elements(kPlace, "size of the new residual", new_residual.size(), elements);
  require_out_bytes(kPlace, out.size(), bytes);
  require_mask(kPlace, contributions.active, elements);
  const TileKernels& kernels = tiles.kernels();
  const TileLoops& loops = tile_loops();
  TileMask mask(contributions.active);
  alignas(64) float sum[kUnitElements];
  EncodeReport report;
  bool valid = true;
  tiles.each_tile(segments, contributions.seed, [&](const TileShape& shape, std::int64_t element, std::int64_t byte) {
    valid &= sum_tile(kernels, shape, contributions, byte, sum);
    loops.mean_add(sum, share, residual.data() + element, shape.elements);
    const KeepWords keep = mask.over(element, shape.elements);
    if (keep != nullptr) loops.clear_unless(keep, sum, shape.elements);
    report.non_finite |= kernels.encode(shape, sum, keep, out.data() + byte, new_residual.data() + element);
  });
  if (!valid) fail_corrupt(kPlace);
  return report;
}

void accumulate(const Codec& codec, const Contributions& contributions, Segments segments, std::span<float> mean) {
  constexpr const char* kPlace = "codec::accumulate";
  const TileCodec& tiles = tiles_of(kPlace, codec);
  const std::int64_t elements = segments_elements(segments);
  const float share = require_contributions(kPlace, contributions, tiles.wire_bytes(segments));
  require_elements(kPlace, "size of the mean", mean.size(), elements);
  require_mask(kPlace, contributions.active, elements);
  const TileKernels& kernels = tiles.kernels();
  const TileLoops& loops = tile_loops();
  TileMask mask(contributions.active);
  bool valid = true;
  tiles.each_tile(segments, 0, [&](const TileShape& shape, std::int64_t element, std::int64_t byte) {
    float* sum = mean.data() + element;
    valid &= sum_tile(kernels, shape, contributions, byte, sum);
    loops.multiply(sum, share, shape.elements);
    const KeepWords keep = mask.over(element, shape.elements);
    if (keep != nullptr) loops.clear_unless(keep, sum, shape.elements);
  });
  if (!valid) fail_corrupt(kPlace);
}

void decode_update(const Codec& codec, std::span<const std::byte> bytes, Segments segments, const FrozenState& state,
                   const AdamFrozenStep& step) {
  constexpr const char* kPlace = "codec::decode_update";
  const TileCodec& tiles = tiles_of(kPlace, codec);
  const std::int64_t elements = segments_elements(segments);
  require_in_bytes(kPlace, bytes.size(), tiles.wire_bytes(segments));
  require_elements(kPlace, "size of the parameters", state.parameter.size(), elements);
  require_elements(kPlace, "size of the momentum", state.momentum.size(), elements);
  require_elements(kPlace, "size of sqrt_v", state.sqrt_v.size(), elements);
  require_mask(kPlace, state.active, elements);
  const TileKernels& kernels = tiles.kernels();
  const TileLoops& loops = tile_loops();
  const AdamNumbers numbers{step.lr, step.eps, step.weight_decay};
  TileMask mask(state.active);
  alignas(64) float decoded[kUnitElements];
  bool valid = true;
  tiles.each_tile(segments, 0, [&](const TileShape& shape, std::int64_t element, std::int64_t byte) {
    float* momentum = state.momentum.data() + element;
    const KeepWords keep = mask.over(element, shape.elements);
    valid &= kernels.decode(shape, bytes.data() + byte, keep == nullptr ? momentum : decoded);
    if (keep != nullptr) loops.copy_where(keep, decoded, momentum, shape.elements);
    loops.adam_step({state.parameter.data() + element, momentum, state.sqrt_v.data() + element}, numbers, keep,
                    shape.elements);
  });
  if (!valid) fail_corrupt(kPlace);
}

}  // namespace thinwire::codec
