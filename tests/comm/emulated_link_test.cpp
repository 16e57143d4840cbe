#include "thinwire/comm/emulated_link.hpp"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/comm/group_checks.hpp"
#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/base/parse.hpp"
#include "thinwire/comm/local_group.hpp"

namespace thinwire::comm {
namespace {

TEST(EmulatedLink, ParsesRates) {
  EXPECT_EQ(parse_link("100mbit").bytes_per_second, 12.5e6);
  EXPECT_EQ(parse_link("2.5gbit").bytes_per_second, 312.5e6);
  EXPECT_EQ(parse_link("64kbit").bytes_per_second, 8e3);
  EXPECT_EQ(parse_link("1gbit,0.5ms").latency_s, 0.5e-3);
  EXPECT_EQ(parse_link("1gbit").latency_s, 0.0);
  EXPECT_DOUBLE_EQ(parse_link("none,50us").latency_s, 50e-6);
  for (const char* bad : {"", "mbit", "100 mbit", "0mbit", "-1mbit", "1mbit,", "1mbit,x", "nanmbit", "100Mbit/s"})
    EXPECT_THROW(parse_link(bad), Error) << bad;
}

// What the command line lets through, the ranks must understand.
TEST(EmulatedLink, ReadsRatesAsTheCommandLineDoes) {
  for (const char* rate : {"100Mbit", "1tbit", "1mibit", "10mbps", "8000", "2.5GBIT"})
    EXPECT_EQ(parse_link(rate).bytes_per_second, parse_rate(rate)) << rate;
  const double unlimited_s = EmulatedLink(parse_link("none")).occupy(1'000'000'000'000, 1);
  EXPECT_LE(unlimited_s, monotonic_seconds());
}

// Reservations follow each other without a gap, whoever makes them.
TEST(EmulatedLink, IsOneQueue) {
  EmulatedLink link({.bytes_per_second = 1000, .latency_s = 0.25, .name = ""});
  const double before_s = monotonic_seconds();
  const double first = link.occupy(500, 2);
  EXPECT_GE(first, before_s + 1.0);
  EXPECT_DOUBLE_EQ(link.occupy(2000, 0), first + 2.0);
  EXPECT_DOUBLE_EQ(link.occupy(0, 1), first + 2.25);
}

struct EmulatedPair {
  std::vector<std::unique_ptr<Group>> hop1, hop2;
};

EmulatedPair emulated_pair(int size, const LinkSettings& settings) {
  EmulatedPair pair{make_local_groups(size, 30'000), make_local_groups(size, 30'000)};
  for (std::size_t rank = 0; rank < pair.hop1.size(); ++rank) {
    const auto link = std::make_shared<EmulatedLink>(settings);
    pair.hop1[rank] = make_emulated_group(std::move(pair.hop1[rank]), link);
    pair.hop2[rank] = make_emulated_group(std::move(pair.hop2[rank]), link);
  }
  return pair;
}

template <typename Function>
void on_every_rank(EmulatedPair& pair, Function function) {
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < pair.hop1.size(); ++rank)
    threads.emplace_back([&, rank] { function(*pair.hop1[rank], *pair.hop2[rank]); });
  for (auto& thread : threads) thread.join();
}

TEST(EmulatedLink, ChangesNoResultAndNoCounter) {
  for (const int size : {1, 2, 3}) {
    EmulatedPair pair = emulated_pair(size, {.bytes_per_second = 1e12, .name = "fast"});
    on_every_rank(pair, [](Group& hop1, Group& hop2) {
      check_every_operation(hop1);
      check_every_operation(hop2);
      check_counters(hop1);
    });
    EXPECT_EQ(pair.hop1[0]->description(), "local + emulated link of fast");
  }
}

// The one direction that clocks can promise: never faster than the link. Both groups share it.
TEST(EmulatedLink, IsALowerBoundForBothGroupsTogether) {
  EmulatedPair pair = emulated_pair(2, {.bytes_per_second = 1e6, .latency_s = 0.01, .name = "8mbit"});
  on_every_rank(pair, [](Group& hop1, Group& hop2) {
    const double begin_s = monotonic_seconds();
    at::Tensor in = at::zeros({50'000}, at::kByte), out = at::empty({100'000}, at::kByte);
    at::Tensor other = at::empty({100'000}, at::kByte);
    Handle one = hop1.all_gather(out, in, {.what = "x"});
    Handle two = hop2.all_gather(other, in, {.what = "x"});
    one->wait();
    two->wait();
    EXPECT_GE(monotonic_seconds() - begin_s, 0.12);  // twice 50 ms and one message of 10 ms each
  });
}

TEST(EmulatedLink, StartsWithoutWaiting) {
  EmulatedPair pair = emulated_pair(1, {.bytes_per_second = 1, .latency_s = 1e6, .name = "dead"});
  EmulatedPair two = emulated_pair(2, {.bytes_per_second = 1, .name = "dead"});
  // A start that slept would need two million seconds here.
  const Handle send = two.hop1[0]->send(at::zeros({2'000'000}, at::kByte), 1, {.what = "x"});
  EXPECT_NE(send, nullptr);
}

}  // namespace
}  // namespace thinwire::comm
