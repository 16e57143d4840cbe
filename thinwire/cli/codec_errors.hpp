// The error of a codec on values of known kinds: what the columns of `thinwire bench codec` are made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thinwire/codec/codec.hpp"

namespace thinwire::cli {

// Deterministic. normal; Student's t with 3 degrees of freedom (heavy tails, as gradients have); sparse: 1 in 100 is
// normal, the rest 0.
std::vector<float> normal_values(std::int64_t count);
std::vector<float> student_t_values(std::int64_t count);
std::vector<float> sparse_values(std::int64_t count);

// The fp32 numbers of a raw little-endian file. Throws Error kNotFound, kIo, kCorrupt (no whole number of floats, none
// at all, a NaN or an infinity).
std::vector<float> read_gradients(const std::string& path);

// |x - decode(encode(x))| / |x| in the 2-norm; 0 for x = 0.
double relative_error(const codec::Codec& codec, const std::vector<float>& x);

}  // namespace thinwire::cli
