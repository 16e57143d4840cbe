#include "thinwire/train/optim/archive.hpp"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "thinwire/base/error.hpp"

namespace thinwire::train {
namespace {

[[noreturn]] void missing(const std::string& key, const std::string& want) {
  fail(ErrorCode::kCorrupt, {"train::archive", "entry " + key, "nothing of that kind", want,
                             "the archive that this optimizer's save wrote"});
}

c10::IValue read_value(torch::serialize::InputArchive& archive, const std::string& key, const char* want) {
  c10::IValue value;
  if (!archive.try_read(key, value)) missing(key, want);
  return value;
}

}  // namespace

void write_int(torch::serialize::OutputArchive& archive, const std::string& key, std::int64_t value) {
  archive.write(key, c10::IValue(value));
}

void write_double(torch::serialize::OutputArchive& archive, const std::string& key, double value) {
  archive.write(key, c10::IValue(value));
}

std::int64_t read_int(torch::serialize::InputArchive& archive, const std::string& key) {
  const c10::IValue value = read_value(archive, key, "an integer");
  if (!value.isInt()) missing(key, "an integer");
  return value.toInt();
}

double read_double(torch::serialize::InputArchive& archive, const std::string& key) {
  const c10::IValue value = read_value(archive, key, "a number");
  if (!value.isDouble()) missing(key, "a number");
  return value.toDouble();
}

void write_tensors(torch::serialize::OutputArchive& archive, const std::string& prefix,
                   const std::vector<at::Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) archive.write(prefix + "_" + std::to_string(i), tensors[i], true);
}

void read_tensors(torch::serialize::InputArchive& archive, const std::string& prefix,
                  const std::vector<Parameter>& parameters, std::vector<at::Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string key = prefix + "_" + std::to_string(i);
    at::Tensor value;
    if (!archive.try_read(key, value, true)) missing(key, "a tensor");
    if (value.sizes() != tensors[i].sizes()) {
      fail(ErrorCode::kMismatch, {"train::archive", prefix + " of parameter " + parameters[i].name,
                                  c10::str(value.sizes()), c10::str(tensors[i].sizes()), "the model that was saved"});
    }
    tensors[i].copy_(value);
  }
}

void write_ints(torch::serialize::OutputArchive& archive, const std::string& key,
                const std::vector<std::int64_t>& values) {
  const at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<std::int64_t>());
  archive.write(key, tensor, true);
}

std::vector<std::int64_t> read_ints(torch::serialize::InputArchive& archive, const std::string& key) {
  at::Tensor value;
  if (!archive.try_read(key, value, true) || value.scalar_type() != at::kLong) missing(key, "integers");
  const std::int64_t* first = value.const_data_ptr<std::int64_t>();
  return {first, first + value.numel()};
}

}  // namespace thinwire::train
