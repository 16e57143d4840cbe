// Bytes counted at the groups against the formulas of cost/collective.hpp, to the byte, every step.
#include <gtest/gtest.h>

#include "tests/train/expected_bytes.hpp"
#include "tests/train/ranks.hpp"
#include "tests/train/vectors.hpp"
#include "thinwire/codec/message.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"

namespace thinwire::train {
namespace {

Bytes counted(comm::World& world) {
  Bytes bytes;
  for (comm::Group* group : {&world.hop1(), &world.hop2()}) {
    const comm::Counters& c = group->counters();
    bytes.all_reduce += c.all_reduce.load();
    bytes.all_to_all += c.all_to_all.load();
    bytes.all_gather += c.all_gather.load();
    bytes.other += c.broadcast.load() + c.reduce_scatter.load() + c.send.load();
  }
  return bytes;
}

Bytes operator-(const Bytes& a, const Bytes& b) {
  return {a.all_reduce - b.all_reduce, a.all_to_all - b.all_to_all, a.all_gather - b.all_gather, a.other - b.other};
}

void step_once(const Vectors& net, torch::optim::Optimizer& optimizer, std::int64_t step, int rank) {
  optimizer.zero_grad();
  loss_with(net, random_gradients(kUnevenShapes, step, rank)).backward();
  optimizer.step();
}

TEST(Bytes, AreThoseOfTheFormulaUnderEveryCodec) {
  for (const char* codec : {"fp32", "bf16", "int8", "int4"}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      on_ranks(ranks, [&](comm::World& world) {
        Vectors net(kUnevenShapes);
        DataParallel parallel(*net, world, {.codec = codec, .bucket_bytes = 32768, .first_bucket_bytes = 8192});
        AdamW optimizer(parallel);
        step_once(net, optimizer, 0, world.rank());
        for (int step = 1; step < 4; ++step) {
          const Bytes want = expected_bytes(parallel, world);
          const Bytes before = counted(world);
          step_once(net, optimizer, step, world.rank());
          EXPECT_EQ(counted(world) - before, want) << codec << ", rank " << world.rank() << " of " << ranks;
        }
      });
    }
  }
}

TEST(Bytes, TheFirstStepIsDense) {
  on_ranks(3, [&](comm::World& world) {
    Vectors net(kUnevenShapes);
    DataParallel parallel(*net, world, {.codec = "int4"});
    AdamW optimizer(parallel);
    const Bytes want = expected_bytes(parallel, world);
    const Bytes before = counted(world);
    optimizer.zero_grad();
    loss_with(net, random_gradients(kUnevenShapes, 0, world.rank())).backward();
    EXPECT_EQ(counted(world) - before, want);
    EXPECT_EQ(want.all_to_all, 0);
    EXPECT_GT(want.all_reduce, 0);
  });
}

// No second route: one dense all-reduce too many would show here.
TEST(Bytes, AfterTheFreezeDenseBytesAreThoseOfTheDenseGroup) {
  for (int ranks : {2, 3, 5}) {
    on_ranks(ranks, [&](comm::World& world) {
      Vectors net(kUnevenShapes);
      DataParallel parallel(*net, world, {.bucket_bytes = 16384, .first_bucket_bytes = 8192});
      OneBitAdam optimizer(parallel, {.freeze_step = 3});
      for (int step = 0; step < 3; ++step) step_once(net, optimizer, step, world.rank());
      ASSERT_TRUE(optimizer.frozen());
      std::int64_t body = 0;
      for (const auto& shape : {kUnevenShapes[0], kUnevenShapes[2], kUnevenShapes[4]}) body += shape[0] * shape[1];
      for (int step = 3; step < 6; ++step) {
        const Bytes want = expected_bytes(parallel, world);
        const Bytes before = counted(world);
        step_once(net, optimizer, step, world.rank());
        const Bytes sent = counted(world) - before;
        EXPECT_EQ(sent, want);
        // 1307 elements of norms and biases and the flags, however buckets round them up.
        EXPECT_LE(sent.all_reduce, 2 * (ranks - 1) * (4 * (1307 + 4) / ranks + 4 * 8));
        // Two one-bit hops and little else.
        EXPECT_LT(sent.all_to_all + sent.all_gather, 0.25 * 4.0 * static_cast<double>(body) * 2 * (ranks - 1) / ranks);
      }
      EXPECT_EQ(parallel.last_step().optimizer_stage, "one_bit");
    });
  }
}

TEST(Bytes, ReportsAddUpToWhatTheGroupsCounted) {
  on_ranks(3, [&](comm::World& world) {
    Vectors net(kUnevenShapes);
    DataParallel parallel(*net, world, {.codec = "int4", .bucket_bytes = 16384, .first_bucket_bytes = 8192});
    Bytes reported = counted(world);
    AdamW optimizer(parallel);
    for (int step = 0; step < 3; ++step) {
      const Bytes before = counted(world);
      optimizer.zero_grad();
      loss_with(net, random_gradients(kUnevenShapes, step, world.rank())).backward();
      const Bytes after = counted(world);
      optimizer.step();
      const schema::StepReport& report = parallel.last_step();
      EXPECT_EQ(report.sent_bytes, (after - reported).total()) << "everything since the last report, step " << step;
      std::int64_t of_buckets = 0;
      for (const schema::BucketReport& bucket : report.buckets) of_buckets += bucket.sent_bytes;
      EXPECT_EQ(of_buckets, (after - before).total()) << "step " << step;
      reported = after;
    }
  });
}

TEST(Bytes, TheHeaderIsSixteenBytes) {
  EXPECT_EQ(codec::kMessageHeaderBytes, 16);
}

}  // namespace
}  // namespace thinwire::train
