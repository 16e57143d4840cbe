// The operations of a local group, on the tensors of all its ranks at once.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "thinwire/comm/local_hub.hpp"

namespace thinwire::comm {
namespace {

using Requests = std::vector<LocalRequest*>;

at::Tensor reduced(const Requests& requests, ReduceOp op, bool in_place) {
  at::Tensor result;
  for (const LocalRequest* request : requests) {
    const at::Tensor& part = in_place ? request->out : request->in;
    if (!result.defined())
      result = part.clone();
    else if (op == ReduceOp::kSum)
      result.add_(part);
    else
      at::maximum_out(result, result, part);
  }
  return result;
}

void all_to_all(const Requests& requests) {
  for (std::size_t to = 0; to < requests.size(); ++to) {
    std::int64_t out_offset = 0;
    for (std::size_t from = 0; from < requests.size(); ++from) {
      std::int64_t in_offset = 0;
      for (std::size_t r = 0; r < to; ++r) in_offset += requests[from]->in_splits[r];
      const std::int64_t count = requests[to]->out_splits[from];
      requests[to]
          ->out.view(-1)
          .narrow(0, out_offset, count)
          .copy_(requests[from]->in.view(-1).narrow(0, in_offset, count));
      out_offset += count;
    }
  }
}

void all_gather(const Requests& requests) {
  for (LocalRequest* to : requests) {
    std::int64_t offset = 0;
    for (const LocalRequest* from : requests) {
      to->out.view(-1).narrow(0, offset, from->in.numel()).copy_(from->in.view(-1));
      offset += from->in.numel();
    }
  }
}

void all_reduce(const Requests& requests) {
  const at::Tensor result = reduced(requests, requests[0]->reduce, true);
  for (LocalRequest* request : requests) request->out.copy_(result);
}

void reduce_scatter(const Requests& requests) {
  const at::Tensor result = reduced(requests, requests[0]->reduce, false).view(-1);
  std::int64_t offset = 0;
  for (LocalRequest* request : requests) {
    request->out.view(-1).copy_(result.narrow(0, offset, request->out.numel()));
    offset += request->out.numel();
  }
}

// `root` is an index into the requests.
void copy_from(const Requests& requests, std::size_t root) {
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (i != root) requests[i]->out.copy_(requests[root]->out);
}

}  // namespace

void run_local_operation(LocalMeeting& meeting) {
  const at::NoGradGuard no_grad;
  Requests requests;
  for (const int rank : meeting.participants) requests.push_back(&*meeting.requests[static_cast<std::size_t>(rank)]);
  switch (requests[0]->op) {
    case LocalOp::kAllToAll:
      return all_to_all(requests);
    case LocalOp::kAllGather:
      return all_gather(requests);
    case LocalOp::kAllReduce:
      return all_reduce(requests);
    case LocalOp::kReduceScatter:
      return reduce_scatter(requests);
    case LocalOp::kBroadcast:
      return copy_from(requests, static_cast<std::size_t>(requests[0]->root));
    case LocalOp::kPointToPoint:
      return copy_from(requests, 0);  // the sender is the first participant
    case LocalOp::kBarrier:
      return;
  }
}

}  // namespace thinwire::comm
