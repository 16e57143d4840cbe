// Sends a gradient through a codec with error feedback, on plain spans: no Torch, no ranks.
//   compress_a_tensor [CODEC]     for example int4, one_bit:scale=mean_abs, eden:bits=1, top_k:density=0.05
#include <cmath>
#include <cstdio>
#include <vector>

#include "thinwire/base/error.hpp"
#include "thinwire/codec/error_feedback.hpp"
#include "thinwire/codec/fused.hpp"

int main(int argc, char** argv) try {
  const auto codec = thinwire::codec::make_codec(argc > 1 ? argv[1] : "one_bit");
  std::vector<float> gradient(100'000);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i * i));
  const std::vector<std::int64_t> segments{60'000, 40'000};  // two parameters, one behind the other

  thinwire::codec::ErrorFeedback residual(static_cast<std::int64_t>(gradient.size()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec->wire_bytes(segments)));
  std::vector<float> received(gradient.size());
  std::vector<double> sum(gradient.size());
  std::printf("%s: %zu bytes instead of %zu\n", codec->text().c_str(), bytes.size(), 4 * gradient.size());
  for (int step = 1; step <= 64; ++step) {
    const auto seed = static_cast<std::uint64_t>(step);
    encode_feedback(*codec, {gradient, 1.0F, residual.committed(), seed}, segments, bytes, residual.pending());
    residual.commit();
    codec->decode(bytes, segments, received);
    double error = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) error += std::pow((sum[i] += received[i]) / step - gradient[i], 2);
    if ((step & (step - 1)) == 0) std::printf("mean of %2d steps: rms error %.5f\n", step, std::sqrt(error / 1e5));
  }
} catch (const thinwire::Error& error) {
  std::fprintf(stderr, "compress_a_tensor: %s\n", error.what());
  return 2;
}
