#include "examples/data/fashion_mnist.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "examples/data/idx_file.hpp"
#include "thinwire/base/error.hpp"

namespace examples {
namespace {

using thinwire::ErrorCode;

// Of the training set's pixels, scaled to [0, 1].
constexpr double kPixelMean = 0.2860;
constexpr double kPixelDeviation = 0.3530;

std::string find_file(const std::string& directory, const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    const std::filesystem::path path = std::filesystem::path(directory) / (name + suffix);
    if (std::filesystem::exists(path)) return path.string();
  }
  thinwire::fail(ErrorCode::kNotFound,
                 {.place = "fashion-mnist",
                  .what = "no " + name + " (nor .gz) in " + directory,
                  .got = {},
                  .want = {},
                  .hint = "apt-get install dataset-fashion-mnist, or --data DIR with your own IDX files"});
}

[[noreturn]] void unfit(const std::string& path, const std::string& got, const std::string& want) {
  thinwire::fail(ErrorCode::kCorrupt,
                 {.place = "fashion-mnist", .what = path + " does not fit", .got = got, .want = want, .hint = {}});
}

// "60000 x 28 x 28"
std::string shown(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

at::Tensor read_images(const std::string& path) {
  const IdxArray array = read_idx(path);
  if (array.shape.size() != 3 || array.shape[0] < 1 || array.shape[1] != kImageSide || array.shape[2] != kImageSide)
    unfit(path, "shape " + shown(array.shape), "some images of 28 x 28");
  return torch::tensor(at::ArrayRef<std::uint8_t>(array.values), torch::kUInt8).view(array.shape);
}

at::Tensor read_labels(const std::string& path, std::int64_t images) {
  const IdxArray array = read_idx(path);
  if (array.shape.size() != 1 || array.shape[0] != images)
    unfit(path, "shape " + shown(array.shape), std::to_string(images) + " labels, one per image");
  const std::uint8_t largest = *std::max_element(array.values.begin(), array.values.end());
  if (largest >= kClasses) unfit(path, "label " + std::to_string(largest), "0 to 9");
  return torch::tensor(at::ArrayRef<std::uint8_t>(array.values), torch::kUInt8).to(torch::kInt64);
}

LabelledImages read_part(const std::string& directory, const std::string& part) {
  LabelledImages data;
  data.images = read_images(find_file(directory, part + "-images-idx3-ubyte"));
  data.labels = read_labels(find_file(directory, part + "-labels-idx1-ubyte"), data.images.size(0));
  return data;
}

}  // namespace

FashionMnist read_fashion_mnist(const std::string& directory) {
  return {read_part(directory, "train"), read_part(directory, "t10k")};
}

ImageBatch images_at(const LabelledImages& data, std::span<const std::int64_t> positions) {
  const at::Tensor index = torch::tensor(at::ArrayRef<std::int64_t>(positions.data(), positions.size()), torch::kInt64);
  const at::Tensor pixels = data.images.index_select(0, index).to(torch::kFloat32).div_(255.0);
  return {pixels.sub(kPixelMean).div_(kPixelDeviation), data.labels.index_select(0, index)};
}

}  // namespace examples
