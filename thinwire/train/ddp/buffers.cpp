#include "thinwire/train/ddp/buffers.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace thinwire::train {

void broadcast_from_rank_zero(comm::Group& group, std::vector<at::Tensor>& buffers, std::int64_t step) {
  std::set<at::ScalarType> dtypes;
  for (const at::Tensor& buffer : buffers) dtypes.insert(buffer.scalar_type());
  for (const at::ScalarType dtype : dtypes) {
    std::vector<at::Tensor> some;
    std::copy_if(buffers.begin(), buffers.end(), std::back_inserter(some),
                 [&](const at::Tensor& buffer) { return buffer.scalar_type() == dtype && buffer.numel() > 0; });
    std::int64_t bytes = 0;
    for (const at::Tensor& buffer : some) bytes += static_cast<std::int64_t>(buffer.nbytes());
    if (bytes == 0) continue;
    const at::Tensor packed = at::empty({bytes}, at::TensorOptions().dtype(at::kByte));
    std::int64_t at = 0;
    const auto part = [&](const at::Tensor& buffer) {
      const auto size = static_cast<std::int64_t>(buffer.nbytes());
      return packed.narrow(0, std::exchange(at, at + size), size).view(dtype).view(buffer.sizes());
    };
    for (const at::Tensor& buffer : some) part(buffer).copy_(buffer);
    group.broadcast(packed, 0, {"buffers", step})->wait();
    at = 0;
    for (at::Tensor& buffer : some) buffer.copy_(part(buffer));
  }
}

}  // namespace thinwire::train
