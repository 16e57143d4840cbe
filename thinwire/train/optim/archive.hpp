// Reading and writing optimizer state with torch's archives, with errors that name the entry.
#pragma once

#include <torch/serialize/archive.h>

#include <cstdint>
#include <string>
#include <vector>

#include "thinwire/train/ddp/parameters.hpp"

namespace thinwire::train {

void write_int(torch::serialize::OutputArchive& archive, const std::string& key, std::int64_t value);
void write_double(torch::serialize::OutputArchive& archive, const std::string& key, double value);
// Throw Error kCorrupt when the entry is missing or of another type.
std::int64_t read_int(torch::serialize::InputArchive& archive, const std::string& key);
double read_double(torch::serialize::InputArchive& archive, const std::string& key);

// One tensor for each parameter, under "<prefix>_<number>". Reading copies into the tensors: kMismatch for another
// shape.
void write_tensors(torch::serialize::OutputArchive& archive, const std::string& prefix,
                   const std::vector<at::Tensor>& tensors);
void read_tensors(torch::serialize::InputArchive& archive, const std::string& prefix,
                  const std::vector<Parameter>& parameters, std::vector<at::Tensor>& tensors);

void write_ints(torch::serialize::OutputArchive& archive, const std::string& key,
                const std::vector<std::int64_t>& values);
std::vector<std::int64_t> read_ints(torch::serialize::InputArchive& archive, const std::string& key);

}  // namespace thinwire::train
