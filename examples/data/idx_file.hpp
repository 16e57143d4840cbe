// IDX, the format of MNIST and its kin: two zero bytes, element type, number of dimensions, the dimensions as
// big-endian 32-bit numbers, then the elements. Read here: unsigned bytes, plain or gzip. Source:
// http://yann.lecun.com/exdb/mnist/ ("the IDX file format").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace examples {

struct IdxArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

// Throws thinwire::Error kNotFound, kIo, kCorrupt (no IDX, other element type, more or fewer bytes than the shape
// says).
IdxArray read_idx(const std::string& path);

}  // namespace examples
