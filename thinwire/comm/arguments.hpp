// What every group checks before it starts an operation. Each throws Error kInvalidArgument and leaves the group
// usable.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "thinwire/comm/group.hpp"

namespace thinwire::comm {

void check_all_to_all(int size, const at::Tensor& out, const at::Tensor& in,
                      const std::vector<std::int64_t>& out_splits, const std::vector<std::int64_t>& in_splits,
                      const OpTag& tag);
void check_all_gather(int size, const at::Tensor& out, const at::Tensor& in, const OpTag& tag);
void check_all_reduce(const at::Tensor& tensor, ReduceOp op, const OpTag& tag);
void check_reduce_scatter(int size, const at::Tensor& out, const at::Tensor& in, ReduceOp op, const OpTag& tag);
void check_broadcast(int size, const at::Tensor& tensor, int root, const OpTag& tag);
// `what` is "send to rank" or "recv from rank".
void check_point_to_point(int rank, int size, const at::Tensor& tensor, int peer, const char* what, const OpTag& tag);

}  // namespace thinwire::comm
