// Fashion-MNIST (Xiao, Rasul and Vollgraf, arXiv 1708.07747): grey images of 28 x 28 in ten classes, as four IDX files.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

namespace examples {

inline constexpr std::int64_t kImageSide = 28;
inline constexpr std::int64_t kClasses = 10;

struct LabelledImages {
  at::Tensor images;  // uint8, [count, 28, 28]
  at::Tensor labels;  // int64, [count], each in [0, 10)
};

struct FashionMnist {
  LabelledImages train;
  LabelledImages test;
};

// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or without .gz. Throws thinwire::Error kNotFound, kIo,
// kCorrupt.
FashionMnist read_fashion_mnist(const std::string& directory);

struct ImageBatch {
  at::Tensor pixels;  // float32, [count, 28, 28], mean 0 and deviation 1 over the training set
  at::Tensor labels;
};
ImageBatch images_at(const LabelledImages& data, std::span<const std::int64_t> positions);

}  // namespace examples
