// Every operation of a Group against its closed form. Values are small integers, so that sums are exact in any order.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "thinwire/comm/group.hpp"

namespace thinwire::comm {

inline void expect_equal(const at::Tensor& got, const at::Tensor& want, const char* what, const Group& group) {
  EXPECT_TRUE(at::equal(got, want)) << what << " on rank " << group.rank() << " of " << group.size() << "\ngot " << got
                                    << "\nwant " << want;
}

inline void check_reductions(Group& group, std::int64_t elements) {
  const int n = group.size();
  for (const auto type : {at::kFloat, at::kDouble, at::kLong}) {
    const at::Tensor base = at::arange(elements, at::kLong).remainder(13).to(type);
    at::Tensor sum = base + group.rank();
    group.all_reduce(sum, ReduceOp::kSum, {.what = "dense"})->wait();
    expect_equal(sum, base * n + n * (n - 1) / 2, "all_reduce sum", group);
    at::Tensor most = base * (group.rank() % 2 == 0 ? 1 : -1);
    group.all_reduce(most, ReduceOp::kMax, {.what = "dense"})->wait();
    expect_equal(most, base, "all_reduce max", group);
  }
  at::Tensor flags = at::zeros({n}, at::kByte);
  flags[group.rank()] = 200 + group.rank();
  group.all_reduce(flags, ReduceOp::kMax, {.what = "flags"})->wait();
  expect_equal(flags, at::arange(200, 200 + n, at::kLong).to(at::kByte), "all_reduce of bytes", group);

  const at::Tensor in = at::arange(elements * n, at::kFloat) + group.rank();
  at::Tensor out = at::empty({elements}, at::kFloat);
  group.reduce_scatter(out, in, ReduceOp::kSum, {.what = "dense"})->wait();
  const at::Tensor all = at::arange(elements * n, at::kFloat) * n + n * (n - 1) / 2;
  expect_equal(out, all.narrow(0, group.rank() * elements, elements), "reduce_scatter", group);
}

inline void check_copies(Group& group, std::int64_t elements) {
  const int n = group.size();
  at::Tensor out = at::empty({n, elements}, at::kInt);
  group.all_gather(out, at::full({elements}, group.rank(), at::kInt), {.what = "gather"})->wait();
  expect_equal(out, at::arange(n, at::kInt).unsqueeze(1).expand({n, elements}), "all_gather", group);

  for (int root = 0; root < n; ++root) {
    at::Tensor tensor = at::full({elements}, group.rank(), at::kDouble);
    group.broadcast(tensor, root, {.what = "broadcast of parameters"})->wait();
    expect_equal(tensor, at::full({elements}, root, at::kDouble), "broadcast", group);
  }
}

// Rank i sends (i + 1) * j + extra bytes of value 16 i + j to rank j: uneven, some empty.
inline void check_all_to_all(Group& group, std::int64_t extra) {
  const auto n = static_cast<std::size_t>(group.size());
  const auto count = [extra](std::size_t from, std::size_t to) {
    return static_cast<std::int64_t>((from + 1) * to) + extra;
  };
  const auto me = static_cast<std::size_t>(group.rank());
  std::vector<std::int64_t> out_splits(n), in_splits(n);
  std::vector<at::Tensor> in{at::empty({0}, at::kByte)}, want{at::empty({0}, at::kByte)};
  for (std::size_t other = 0; other < n; ++other) {
    in_splits[other] = count(me, other);
    out_splits[other] = count(other, me);
    in.push_back(at::full({in_splits[other]}, static_cast<int>(16 * me + other), at::kByte));
    want.push_back(at::full({out_splits[other]}, static_cast<int>(16 * other + me), at::kByte));
  }
  at::Tensor out = at::empty({std::accumulate(out_splits.begin(), out_splits.end(), std::int64_t{0})}, at::kByte);
  group.all_to_all(out, at::cat(in), out_splits, in_splits, {.what = "hop 1"})->wait();
  expect_equal(out, at::cat(want), "all_to_all", group);
}

// Around a ring, twice, so that the order of messages between two ranks shows.
inline void check_messages(Group& group) {
  const int n = group.size();
  if (n == 1) return;
  const int to = (group.rank() + 1) % n, from = (group.rank() + n - 1) % n;
  at::Tensor first = at::empty({5}, at::kFloat), second = at::empty({5}, at::kFloat);
  std::vector<Handle> work;
  work.push_back(group.recv(first, from, {.what = "activation"}));
  work.push_back(group.send(at::full({5}, 10.0F * static_cast<float>(group.rank())), to, {.what = "activation"}));
  work.push_back(group.recv(second, from, {.what = "activation"}));
  work.push_back(group.send(at::full({5}, 10.0F * static_cast<float>(group.rank()) + 1), to, {.what = "activation"}));
  for (auto& handle : work) handle->wait();
  expect_equal(first, at::full({5}, 10.0F * static_cast<float>(from)), "first message", group);
  expect_equal(second, at::full({5}, 10.0F * static_cast<float>(from) + 1), "second message", group);
}

inline void check_every_operation(Group& group) {
  for (const std::int64_t elements : {0, 1, 7, 1000}) {
    check_reductions(group, elements);
    check_copies(group, elements);
  }
  check_all_to_all(group, 0);
  check_all_to_all(group, 333);
  check_messages(group);
  group.barrier({.what = "barrier"})->wait();
}

// Several operations in flight, waited for in the opposite order.
inline void check_many_in_flight(Group& group) {
  std::vector<at::Tensor> tensors;
  std::vector<Handle> work;
  for (int i = 0; i < 8; ++i) {
    tensors.push_back(at::full({100 + i}, i + group.rank(), at::kFloat));
    work.push_back(group.all_reduce(tensors.back(), ReduceOp::kSum, {.what = "dense", .step = 1, .bucket = i}));
  }
  const int n = group.size();
  for (int i = 7; i >= 0; --i) {
    const auto index = static_cast<std::size_t>(i);
    work[index]->wait();
    expect_equal(tensors[index], at::full({100 + i}, i * n + n * (n - 1) / 2, at::kFloat), "in flight", group);
  }
}

// What one rank sends, from moving the pieces by hand.
inline void check_counters(Group& group) {
  const std::int64_t n = group.size(), others = n - 1;
  const std::int64_t before = group.counters().total();
  at::Tensor tensor = at::zeros({10}, at::kFloat);  // cut into n chunks, the last may be short but counts as full
  std::int64_t chunk = 0;
  while (chunk * n < 10) ++chunk;
  group.all_reduce(tensor, ReduceOp::kSum, {.what = "dense"})->wait();
  std::int64_t want = 2 * others * chunk * 4;
  EXPECT_EQ(group.counters().total() - before, want);
  at::Tensor gathered = at::empty({n * 10}, at::kFloat);
  group.all_gather(gathered, tensor, {.what = "hop 2"})->wait();
  want += others * 40;
  EXPECT_EQ(group.counters().total() - before, want);
  group.broadcast(tensor, 0, {.what = "broadcast"})->wait();
  if (group.rank() == 0 && n > 1) want += 40;
  EXPECT_EQ(group.counters().total() - before, want);
  group.reduce_scatter(tensor, gathered, ReduceOp::kSum, {.what = "scatter"})->wait();
  want += others * 40;
  EXPECT_EQ(group.counters().total() - before, want);
  group.barrier({.what = "barrier"})->wait();
  EXPECT_EQ(group.counters().total() - before, want);
}

}  // namespace thinwire::comm
