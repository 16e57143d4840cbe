// Buffers of a module (batch-norm statistics): not averaged, but the same on every rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "thinwire/comm/group.hpp"

namespace thinwire::train {

// Collective, on the communication thread. Rank 0's buffers, of any dtype and shape, to all ranks; they must agree on
// number, dtypes and shapes. One message per dtype. `step` is for the error message.
void broadcast_from_rank_zero(comm::Group& group, std::vector<at::Tensor>& buffers, std::int64_t step);

}  // namespace thinwire::train
